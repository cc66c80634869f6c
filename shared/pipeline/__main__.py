"""``python -m shared.pipeline <command> <name>``: the stages that DVC runs, and tools around them."""

from __future__ import annotations

import argparse
import importlib
import os
import select
import signal
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from shared.claims.scales import SCALES
from shared.errors import ReplicationError
from shared.pipeline.config import load_params
from shared.pipeline.processes import end_with_dvc
from shared.training.disk import disk_sentence

Argument = Mapping[str, Any]
"""What ``argparse`` is told of an argument."""
OPTIONAL: Argument = {"nargs": "?"}
SCALE: Argument = {"choices": SCALES, "help": "default: the scale in params.yaml"}


UNREAD = 128 + signal.SIGPIPE
"""The status of a command whose output nobody reads any more, as shells have it of programs that the signal ends."""


class Command(NamedTuple):
    """What a command does, and where; its module is imported when it is asked for.

    Attributes:
        module, function: what is called, with the name, the scale and the further arguments, as far as it takes them.
        name: what the name is of; None: it takes no name.
        text: says what it does.
        scaled: whether it takes a scale, that of params.yaml unless given.
        told: what ``argparse`` is told of the name.
        more: further arguments, by the names of the function's keywords; options with ``--`` before.
    """

    module: str
    function: str
    name: str | None
    text: str
    scaled: bool = True
    told: Argument = MappingProxyType({})
    more: Mapping[str, Argument] = MappingProxyType({})


KIND: Mapping[str, Argument] = {
    "--kind": {"default": "translation", "help": "of its tasks; default: translation"},
    "--scales": {"nargs": "+", "choices": SCALES, "help": "beside smoke, which tests need; default: quick"},
}
TRIED: Mapping[str, Argument] = {
    "input": {"help": "a text; an empty one is told what the model reads"},
    "--seed": {"type": int, "help": "of the run; default: the first that is trained"},
    "--page": {"action": "store_true", "help": "also write reports/tried/<paper>.<variant>.html"},
}
COMPARED: Mapping[str, Argument] = {
    "other": {"metavar": "<other>", "help": "what it is compared with; both are variants, or neither is"},
    "--paper": {"help": "of which alone runs are compared"},
}
SEEDS: Mapping[str, Argument] = {
    "--seeds": {"type": int, "nargs": "+", "metavar": "seed", "help": "a part of the planned seeds; default: all"},
}
ONLY: Mapping[str, Argument] = {
    "--only": {
        "nargs": "+", "metavar": "variant", "help": "try these, and keep what search.json says of others; default: all"
    },
}  # fmt: skip
SUITE: Mapping[str, Argument] = {
    "--suite": {"action": "store_true", "help": "also find all that the tests would refuse; this takes longer"},
}
BETTER: Argument = {"choices": SCALES, "help": "default: the scale with the better evidence"}
EXPLAINED: Mapping[str, Any] = {"scaled": False, "more": {"--scale": BETTER}}
EVERYTHING: Argument = {"action": "store_true", "dest": "everything", "help": "variants that run at no scale, too"}
LISTED: Mapping[str, Any] = {"scaled": False, "told": OPTIONAL, "more": {"--all": EVERYTHING}}
COMMANDS = {
    "check": Command(
        "check", "check_stage", "paper", "find mistakes in what a paper, or each, says", told=OPTIONAL, more=SUITE
    ),
    "fetch": Command("stages", "fetch_stage", "paper.task", "obtain and verify the data of <paper>.<task>"),
    "features": Command("stages", "features_stage", "paper.task", "encode the pictures of <paper>.<task>"),
    "prepare": Command("stages", "prepare_stage", "paper.task", "tokenise and encode the data of <paper>.<task>"),
    "train": Command("runs", "train_stage", "paper.variant", "train all seeds; continues a killed run", more=SEEDS),
    "evaluate": Command(
        "runs", "evaluate_stage", "paper.variant", "score all seeds of <paper>.<variant>", more=SEEDS
    ),
    "report": Command("report", "report_stage", "paper", "decide the claims of <paper> and write its report"),
    "pack": Command("pack", "pack_stage", "paper", "keep what the runs of <paper> have left in one file for git"),
    "unpack": Command("pack", "unpack_stage", "paper", "put it back, so that a report needs no training"),
    "verdicts": Command("report", "verdicts_stage", "paper", "print the verdicts of <paper>'s report"),
    "export": Command("report", "export_stage", "paper", "write <paper>'s page as one file that can be sent"),
    "list": Command("show", "list_runs", "paper", "list variants, tasks, and what is trained and judged", **LISTED),
    "show": Command("show", "show_claim", "claim", "say what became of a claim, and how", **EXPLAINED),
    "try": Command("trying", "try_stage", "paper.variant", "give a trained model one input", more=TRIED),
    "compare": Command(
        "compare", "compare_stage", "one", "compare two variants, scales, folders or git revisions", more=COMPARED
    ),
    "freeze": Command("plan", "freeze_stage", "paper", "write down how the claims of <paper> will be decided"),
    "estimate": Command("estimate", "estimate_stage", "paper.variant", "say what a variant or a paper costs"),
    "search": Command(
        "search", "search_stage", "paper", "try what search.yaml of <paper> lists, on pilot seeds", more=ONLY
    ),
    "use": Command("config", "use_scale", "scale", "make <scale> the default one", scaled=False),
    "new": Command("new", "new_replication", "paper", "start the folder of a replication", scaled=False, more=KIND),
    "summarize": Command("report", "summarize_stage", None, "gather all reports into one page", scaled=False),
    "licences": Command("licences", "write_licences", None, "write docs/LICENCES.md and docs/sbom.json", scaled=False),
    "costs": Command("costs", "write_costs", None, "write docs/COSTS.md: what the paper scale costs", scaled=False),
    "reference": Command("reference", "write_reference", None, "write docs/REFERENCE.md from the code", scaled=False),
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 if it worked, 2 after an error that the user can act on, 141 if nobody reads its output."""
    options = parser().parse_args(arguments)
    end_with_dvc()
    try:
        command = COMMANDS[options.command]
        function = getattr(importlib.import_module(f"shared.pipeline.{command.module}"), command.function)
        given = [] if command.name is None else [options.name]
        if command.scaled:
            given.append(options.scale or load_params().scale)
        names = [argument.get("dest", flag.lstrip("-")) for flag, argument in command.more.items()]
        function(*given, **{name: getattr(options, name) for name in names})
        sys.stdout.flush()  # here, or a closed pipe would be noticed when nothing can catch it any more
    except ReplicationError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        if not _nobody_reads():  # it is a pipe to another process, and something is wrong
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is left to be flushed
        return UNREAD
    except SystemExit as ended:
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        return UNREAD  # rich has done the same
    except (OSError, RuntimeError) as error:
        if (sentence := disk_sentence(error)) is None:
            raise
        print(f"error: {sentence}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; the same command continues.", file=sys.stderr)
        return 130
    return 0


def _nobody_reads() -> bool:
    """Whether the output is a pipe that was closed, as by ``head``."""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in output.poll(0))


def parser() -> argparse.ArgumentParser:
    """Of the command line."""
    whole = argparse.ArgumentParser(prog="python -m shared.pipeline", description=__doc__)
    commands = whole.add_subparsers(dest="command", required=True, metavar="command")
    for name, command in COMMANDS.items():
        sub = commands.add_parser(name, help=command.text, description=command.text)
        if command.name is not None:
            sub.add_argument("name", metavar=f"<{command.name}>", **command.told)
        if command.scaled:
            sub.add_argument("--scale", **SCALE)
        for flag, argument in command.more.items():
            sub.add_argument(flag, **argument)
    return whole


if __name__ == "__main__":
    sys.exit(main())
