"""``python -m shared.pipeline <command> <name>``: the stages that DVC runs, and tools around them."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

from shared.errors import ReplicationError
from shared.pipeline.config import SCALES, load_params


class Command(NamedTuple):
    """What a command does, and where; its module is imported when it is asked for. ``name`` None: it takes no name."""

    module: str
    function: str
    name: str | None
    text: str
    scaled: bool = True


COMMANDS = {
    "check": Command("check", "check_stage", "paper", "find mistakes in what <paper>, or every paper, says"),
    "fetch": Command("stages", "fetch_stage", "paper.task", "obtain and verify the data of <paper>.<task>"),
    "features": Command("stages", "features_stage", "paper.task", "encode the pictures of <paper>.<task>"),
    "prepare": Command("stages", "prepare_stage", "paper.task", "tokenise and encode the data of <paper>.<task>"),
    "train": Command("train", "train_stage", "paper.variant", "train all seeds; continues a killed run"),
    "evaluate": Command("evaluate", "evaluate_stage", "paper.variant", "score all seeds of <paper>.<variant>"),
    "lend": Command("lend", "lend_stage", "paper.variant", "copy another paper's results for <paper>.<variant>"),
    "report": Command("stages", "report_stage", "paper", "decide the claims of <paper> and write its report"),
    "verdicts": Command("stages", "verdicts_stage", "paper", "print the verdicts of <paper>'s report"),
    "freeze": Command("freeze", "freeze_stage", "paper", "write down how the claims of <paper> will be decided"),
    "estimate": Command("estimate", "estimate_stage", "paper.variant", "say what a variant or a paper costs"),
    "search": Command("search", "search_stage", "paper", "try what search.yaml of <paper> lists, on pilot seeds"),
    "use": Command("use", "use_scale", "scale", "make <scale> the default one", scaled=False),
    "new": Command("new", "new_replication", "paper", "start the folder of a replication", scaled=False),
    "summarize": Command("stages", "summarize_stage", None, "gather all reports into one page", scaled=False),
    "reference": Command("reference", "write_reference", None, "write docs/REFERENCE.md from the code", scaled=False),
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 if it worked, 2 after an error that the user can act on."""
    options = parser().parse_args(arguments)
    try:
        command = COMMANDS[options.command]
        function = getattr(importlib.import_module(f"shared.pipeline.{command.module}"), command.function)
        if command.scaled:
            function(options.name, options.scale or load_params().scale)
        elif options.command == "new":
            function(options.name, options.kind)
        elif command.name is None:
            function()
        else:
            function(options.name)
    except ReplicationError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; the same command continues.", file=sys.stderr)
        return 130
    return 0


def parser() -> argparse.ArgumentParser:
    """Of the command line."""
    whole = argparse.ArgumentParser(prog="python -m shared.pipeline", description=__doc__)
    commands = whole.add_subparsers(dest="command", required=True, metavar="command")
    for name, command in COMMANDS.items():
        sub = commands.add_parser(name, help=command.text, description=command.text)
        optional = {"nargs": "?"} if name == "check" else {}
        if command.name is not None:
            sub.add_argument("name", metavar=f"<{command.name}>", **optional)  # type: ignore[arg-type]
        if command.scaled:
            sub.add_argument("--scale", choices=SCALES, help="default: the scale in params.yaml")
        if name == "new":
            sub.add_argument("--kind", default="translation", help="of its tasks; default: translation")
    return whole


if __name__ == "__main__":
    sys.exit(main())
