"""Speed beside other implementations, as ratios within one run.

    python -m benchmarks list                          what can be measured, and whether the code has changed since
    python -m benchmarks run [name ...] [--turns 9]
    python -m benchmarks page                          write reports/speed of all records

A benchmark is a file of this folder with ``COMPARISONS``, from a name to a function that makes contenders, from a name
to what is called. Contenders take turns, so that other load slows all of them alike. What counts are processor seconds
of one thread, and of each contender the ratio to the first one of its comparison in the same turn: the median over the
turns, and between which ratios half of them lie. ``run`` writes ``benchmarks/<name>.json``. Where contenders are sizes,
which ``AXES`` says of a comparison, it measures the memory, too.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import os
import resource
import statistics
import time
from collections.abc import Mapping
from pathlib import Path

import torch

from benchmarks import page
from benchmarks.steps import Step
from shared.pipeline.code import Sources
from shared.pipeline.files import write_json
from shared.pipeline.provenance import hash_of, machine, now, revision
from shared.records import read_if_whole

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.py") if "\nCOMPARISONS" in path.read_text(encoding="utf-8"))
LEAST = 7
"""Turns; with fewer, a median and quartiles say little."""
UNMEASURED = "not measured"
STARTED = 3
"""How a copy of this process ends whose step has started other processes."""


def measure(contenders: Mapping[str, Step], turns: int) -> dict[str, dict[str, float]]:
    """Milliseconds of processor time of each contender, after a call to warm up, and its ratio to the first one."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(turns + 1):
        for name, step in contenders.items():
            begin = processor_seconds()
            step()
            if turn:
                seconds[name].append(processor_seconds() - begin)
    first = next(iter(seconds.values()))
    figures = {}
    for name, taken in seconds.items():
        low, ratio, high = statistics.quantiles((a / b for a, b in zip(taken, first, strict=True)), method="inclusive")
        figures[name] = {"milliseconds": round(1000 * statistics.median(taken), 3), "ratio": round(ratio, 3),
                         "from": round(low, 3), "to": round(high, 3)}  # fmt: skip
    return figures


def processor_seconds() -> float:
    """Processor seconds of this process and of those that it started and that have ended."""
    ended = os.times()
    return time.process_time() + ended.children_user + ended.children_system


def peaks(contenders: Mapping[str, Step]) -> dict[str, float]:
    """Megabytes by which copies of this process grow while each makes one step, before this one has made any.

    {} where a step starts other processes, whose memory this does not tell.
    """
    found = {}
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # or a step is given memory that this process has freed and still holds
    for name, step in {"nothing": lambda: None, **contenders}.items():
        if not (child := os.fork()):
            step()
            os._exit(STARTED if resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss else 0)
        _, status, used = os.wait4(child, 0)
        if os.waitstatus_to_exitcode(status) == STARTED:
            return {}
        assert status == 0, f"a copy of this process failed at {name}"
        found[name] = used.ru_maxrss / 1024
    return {name: round(found[name] - found["nothing"], 1) for name in contenders}


def code_of(name: str) -> str:
    """One hash of the code that a benchmark measures: of its file, and of what that imports of this project."""
    sources = Sources()
    return hash_of({path: sources.found(path)["digest"] for path in sources.closure([f"benchmarks/{name}.py"])})


def age(name: str, folder: Path) -> str:
    """When a benchmark was measured, and whether what it measures has changed since."""
    record = read_if_whole(folder / f"{name}.json", {"code": str, "date": str})
    if record is None:
        return UNMEASURED
    stale = record["code"] != code_of(name)
    return f"measured on {record['date']}" + ("; stale: the code has changed" if stale else "")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the results; default: this one")
    commands.add_parser("list", help="what can be measured, and when it was")
    commands.add_parser("page", help="write reports/speed of all records")
    run = commands.add_parser("run", help="measure")
    run.add_argument("names", nargs="*", metavar="name", help="of benchmarks; default: all")
    run.add_argument("--turns", type=int, default=9, help=f"at least {LEAST}; default: 9")
    options = parser.parse_args()
    if options.command == "run" and (options.turns < LEAST or not set(options.names) <= set(NAMES)):
        parser.error(f"at least {LEAST} turns, of: {', '.join(NAMES)}")
    torch.set_num_threads(1)
    modules = {name: importlib.import_module(f"benchmarks.{name}") for name in getattr(options, "names", None) or NAMES}
    ages = {name: age(name, options.out) for name in modules}
    if options.command == "page":
        paths = {name: options.out / f"{name}.json" for name, said in ages.items() if said != UNMEASURED}
        page.write(modules, {name: json.loads(path.read_text()) for name, path in paths.items()}, ages, Path("reports"))
        return
    for name, module in modules.items():
        if options.command == "list":
            said = f"{name}: {(module.__doc__ or '').splitlines()[0]} ({ages[name]})"
            print(said, *module.COMPARISONS, sep="\n    ")
            continue
        figures = {}
        for comparison, of in module.COMPARISONS.items():
            torch.manual_seed(0)
            contenders = of()
            grown = peaks(contenders) if comparison in getattr(module, "AXES", {}) else {}
            figures[comparison] = measure(contenders, options.turns)
            for size, megabytes in grown.items():
                figures[comparison][size]["megabytes"] = megabytes
            print(name, comparison, json.dumps(figures[comparison], indent=1), sep=": ", flush=True)
        made_by = {"date": now()[:10], **revision(), "code": code_of(name), "torch": torch.__version__, **machine()}
        write_json(options.out / f"{name}.json", made_by | {"turns": options.turns, "comparisons": figures})


if __name__ == "__main__":
    main()
