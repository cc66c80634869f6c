"""``python -m shared.pipeline <command> <name>``: the stages that DVC runs, and tools around them."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shared.claims.rules import SCALES
from shared.data.opening import visible
from shared.errors import ReplicationError, system_sentence
from shared.pipeline.config import load_params

EVERY = 0.5
"""Seconds between two looks at the parent."""
UNREAD = 128 + signal.SIGPIPE
"""The status of a command whose output nobody reads any more, as shells have it of programs that the signal ends."""


class Command(NamedTuple):
    """What a command does, and where; its module is imported when it is asked for.

    Attributes:
        calls: a module of this package and its function, which takes the name, the scale and, by name, the options.
        name: what the name is of, with a question mark if it may be left out; empty where there is none.
        text: says what the command does.
        options: keys of :data:`OPTIONS`.
        scaled: whether it takes a scale, that of params.yaml unless given.
    """

    calls: str
    name: str
    text: str
    options: tuple[str, ...] = ()
    scaled: bool = True


OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "input": {"help": "a text; an empty one is told what the model reads"},
    "other": {"metavar": "<other>", "help": "what it is compared with; both are variants, or neither is"},
    "dataset": {"help": "its name"},
    "--all": {"action": "store_true", "dest": "everything", "help": "variants that run at no scale, too"},
    "--columns": {
        "nargs": "+", "default": (), "metavar": "column",
        "help": "of a table: those that are read, if line 1 names them, else the names of all"
    },
    "--data": {"action": "store_true", "help": "<name> is a card's: say what a look at its data shows"},
    "--from": {"nargs": "+", "dest": "files", "required": True, "metavar": "file", "help": "table, texts or folder"},
    "--kind": {"help": "of its tasks; default: translation, and of new data what the files look like"},
    "--only": {
        "nargs": "+", "metavar": "variant", "help": "try these, and keep what search.json says of others; default: all"
    },
    "papers": {"nargs": "*", "metavar": "<paper>", "help": "those that DVC sees, which saves its time; default: all"},
    "--page": {"action": "store_true", "help": "also write reports/tried/<paper>.<variant>.html"},
    "--paper": {"help": "of which alone runs are compared"},
    "--scale": {"choices": SCALES, "help": "default: the scale with the better evidence"},
    "--scales": {"nargs": "+", "choices": SCALES, "help": "beside smoke, which tests need; default: quick"},
    "--percent": {
        "nargs": 2, "type": int, "default": (5, 5), "metavar": ("valid", "test"), "help": "of the texts; default: 5 5"
    },
    "--seed": {"type": int, "help": "of the run, default: the first that is trained; or of the draw"},
    "--seeds": {"type": int, "nargs": "+", "metavar": "seed", "help": "a part of the planned seeds; default: all"},
    "--suite": {"action": "store_true", "help": "also find all that the tests would refuse; this takes longer"},
}  # fmt: skip
"""Further arguments, those without dashes by their place; and what ``argparse`` is told of them."""
PAPER, TASK, VARIANT = "paper", "paper.task", "paper.variant"
COMMANDS = {
    "check": Command(
        "check.check_stage", "paper?", "find mistakes in what a paper, or each, says", ("--suite", "--data")
    ),
    "data": Command(
        "stages.data_stage", "new", "write the card of a data set of your own: data new my_corpus --from pairs.tsv",
        ("dataset", "--from", "--kind", "--columns", "--percent", "--seed"), scaled=False,
    ),
    "fetch": Command("stages.fetch_stage", TASK, "obtain and verify the data of <paper>.<task>"),
    "features": Command("stages.features_stage", TASK, "encode the pictures of <paper>.<task>"),
    "prepare": Command("stages.prepare_stage", TASK, "tokenise and encode the data of <paper>.<task>"),
    "train": Command("runs.train_stage", VARIANT, "train all seeds; continues a killed run", ("--seeds",)),
    "evaluate": Command("runs.evaluate_stage", VARIANT, "score all seeds of <paper>.<variant>", ("--seeds",)),
    "report": Command("report.report_stage", PAPER, "decide the claims of <paper> and write its report"),
    "pack": Command("pack.pack_stage", PAPER, "keep what the runs of <paper> have left in one file for git"),
    "unpack": Command("pack.unpack_stage", PAPER, "put it back, so that a report needs no training"),
    "verdicts": Command("show.verdicts_stage", PAPER, "print the verdicts of <paper>'s report"),
    "export": Command("report.export_stage", PAPER, "write <paper>'s page as one file that can be sent", scaled=False),
    "list": Command(
        "show.list_runs", "paper?", "list variants, tasks, and what is trained and judged", ("--all",), scaled=False
    ),
    "show": Command("show.show_claim", "claim", "say what became of a claim, and how", ("--scale",), scaled=False),
    "try": Command("trying.try_stage", VARIANT, "give a trained model one input", ("input", "--seed", "--page")),
    "publish": Command(
        "trying.publish_stage", VARIANT, "let the weights of a run come with the project, for 'try'", ("--seed",)
    ),
    "compare": Command(
        "compare.compare_stage", "one", "compare two variants, scales, folders or git revisions", ("other", "--paper")
    ),
    "freeze": Command("plan.freeze_stage", PAPER, "write down how the claims of <paper> will be decided"),
    "estimate": Command("costs.estimate_stage", VARIANT, "say what a variant or a paper costs"),
    "search": Command(
        "search.search_stage", PAPER, "try what search.yaml of <paper> lists, on pilot seeds", ("--only",)
    ),
    "use": Command("config.use_scale", "scale", "make <scale> the default one", ("papers",), scaled=False),
    "new": Command(
        "new.new_replication", PAPER, "start the folder of a replication", ("--kind", "--scales"), scaled=False
    ),
    "summarize": Command("report.summarize_stage", "", "gather all reports into one page", scaled=False),
    "costs": Command("costs.write_costs", "", "write docs/COSTS.md: what the paper scale costs", scaled=False),
    "reference": Command("reference.write_reference", "", "write docs/REFERENCE.md from the code", scaled=False),
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 if it worked, 2 after an error that the user can act on, 141 if nobody reads its output."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal of another encoding shows a question mark
    options = vars(parser().parse_args(arguments))
    end_with_dvc()
    try:
        command = COMMANDS[options.pop("command")]
        module, _, function = command.calls.partition(".")
        given = [options.pop("name")] if command.name else []
        if command.scaled:
            given.append(options.pop("scale") or load_params().scale)
        call = getattr(importlib.import_module(f"shared.pipeline.{module}"), function)
        call(*given, **options)
        sys.stdout.flush()  # here, or a closed pipe would be noticed when nothing can catch it any more
    except BrokenPipeError:
        if not _nobody_reads():  # it is a pipe to another process, and something is wrong
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is left to be flushed
        return UNREAD
    except SystemExit as ended:
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        return UNREAD  # rich has done the same
    except (ReplicationError, OSError, RuntimeError) as error:
        sentence = error if isinstance(error, ReplicationError) else system_sentence(error)
        if sentence is None:
            raise
        print("error:", "\n".join(map(visible, str(sentence).split("\n"))), file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupted:
        print(f"interrupted; {interrupted or 'the same command continues'}.", file=sys.stderr)
        return 130
    return 0


def _nobody_reads() -> bool:
    """Whether the output is a pipe that was closed, as by ``head``."""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in output.poll(0))


def end_with_dvc() -> None:
    """Make this process end, as after SIGTERM, when DVC does; nothing happens where DVC has not started it."""
    if "DVC_STAGE" in os.environ:
        parent = os.getppid()
        threading.Thread(target=_watch, args=(parent, _starter_of_shell(parent)), daemon=True).start()


def _watch(parent: int, starter: int | None) -> None:
    while os.getppid() == parent and (starter is None or _parent_of(parent) == starter):
        time.sleep(EVERY)
    os.kill(os.getpid(), signal.SIGTERM)


def _starter_of_shell(pid: int) -> int | None:
    """The parent of ``sh -c command``, which DVC starts and some shells replace by the command; None if it is none."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:  # there is no /proc, or the process has ended
        return None
    return _parent_of(pid) if words[-2:-1] == [b"-c"] else None


def _parent_of(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def parser() -> argparse.ArgumentParser:
    """Of the command line."""
    whole = argparse.ArgumentParser(prog="python -m shared.pipeline", description=__doc__)
    commands = whole.add_subparsers(dest="command", required=True, metavar="command")
    for name, command in COMMANDS.items():
        sub = commands.add_parser(name, help=command.text, description=command.text)
        if command.name:
            nargs = "?" if command.name.endswith("?") else None
            sub.add_argument("name", metavar=f"<{command.name.rstrip('?')}>", nargs=nargs)
        if command.scaled:
            sub.add_argument("--scale", choices=SCALES, help="default: the scale in params.yaml")
        for flag in command.options:
            sub.add_argument(flag, **OPTIONS[flag])
    return whole


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that nothing half-written is left
    sys.exit(main())
