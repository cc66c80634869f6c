"""Stages of a project of toys, each in a process group of its own, so that it can be killed.

The program is a server: it imports once what stages import, prints a line, then forks a child for each line of JSON on
its standard input, ``{"folder": …, "arguments": […], "output": file, "largest": bytes of a file or null, "temporary":
folder or null}``, and answers ``{"pid": …}`` at once and ``{"pid": …, "status": …}`` when the child has ended. The fork
server of such a child is forked too, instead of started.
"""

import contextlib
import importlib
import json
import multiprocessing.util
import os
import resource
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from typing import Any

IMPORTED = (
    "shared.training.preload", "shared.data.fetch", "shared.pipeline.runs", "shared.pipeline.stages",
    "shared.reports.report", "tests.pipeline.toys", "scipy.stats", "matplotlib.figure",
)  # fmt: skip
_start_program = multiprocessing.util.spawnv_passfds


def fork_server(path: str | bytes, arguments: Sequence[Any], passed: Sequence[int]) -> int:
    """Stand in for ``spawnv_passfds``: fork the server of workers, which then has imported all; start all else."""
    code = os.fsdecode(arguments[-1])
    if "multiprocessing.forkserver" not in code:
        return _start_program(path, arguments, passed)
    pid = os.fork()
    if pid:
        return pid
    try:
        kept = {0, 1, 2, *passed}
        for file in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208  (as exec does, or it would live for ever)
            if file not in kept:
                try:
                    os.close(file)
                except OSError:
                    continue
        exec(code, {"__name__": "forked"})
    finally:
        os._exit(0)


def run(arguments: Sequence[str]) -> int:
    """Run a command of the pipeline in the current folder; the toys' pictures have an encoder without weights."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background may ignore it
    if arguments[0] == "features":
        from shared.tasks.captioning import corpus
        from tests.tasks.captioning.squares import Colours

        corpus.fetch = lambda dataset, **_: None  # type: ignore[assignment]
        corpus.build_encoder = lambda config, **_: Colours()  # type: ignore[assignment]
    from shared.pipeline.__main__ import main

    return main(arguments)


def child(request: dict[str, Any]) -> None:
    """Run a command, its output going to a file, and end this process."""
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(request["folder"])
    if request["largest"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["largest"], resource.RLIM_INFINITY))
    if request["temporary"] is not None:
        os.environ["TMPDIR"], tempfile.tempdir = request["temporary"], None
    sys.path.insert(0, request["folder"])
    status = 1
    try:
        status = run(request["arguments"])
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def serve() -> None:
    """Serve until the standard input ends."""
    for name in IMPORTED:
        importlib.import_module(name)
    import torch

    torch.set_num_threads(1)
    multiprocessing.util.spawnv_passfds = fork_server
    print("ready", flush=True)
    running: set[int] = set()
    while True:
        if select.select([0], [], [], 0.01 if running else None)[0]:
            if not (line := os.read(0, 1 << 16)):  # one line, as the next is sent after the answer
                return
            running.add(start(json.loads(line)))
        for pid in [*running]:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                running.remove(pid)
                print(json.dumps({"pid": pid, "status": os.waitstatus_to_exitcode(status)}), flush=True)


def start(request: dict[str, Any]) -> int:
    """Fork a child that leads a group."""
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        child(request)
    with contextlib.suppress(PermissionError, ProcessLookupError):
        os.setpgid(pid, pid)
    print(json.dumps({"pid": pid}), flush=True)
    return pid
