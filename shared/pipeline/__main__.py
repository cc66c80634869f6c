"""``python -m shared.pipeline <stage> <name>``: the stages that DVC runs, for use without it as well."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from shared.errors import ReplicationError
from shared.pipeline import stages
from shared.pipeline.config import SCALES, load_params

STAGES: dict[str, tuple[Callable[[str, str], None], str]] = {
    "fetch": (stages.fetch_stage, "obtain and verify the data of <paper>.<task>"),
    "features": (stages.features_stage, "run the image encoder over the pictures of <paper>.<task>"),
    "prepare": (stages.prepare_stage, "tokenise and encode the data of <paper>.<task>"),
    "code": (stages.code_stage, "write down which code the results of a paper depend on: <paper>"),
    "train": (stages.train_stage, "train all seeds of <paper>.<variant>; continues a killed run"),
    "evaluate": (stages.evaluate_stage, "score all seeds of <paper>.<variant>"),
    "rehearse": (stages.rehearse_stage, "make one real update and estimate the cost of <paper>.<variant>"),
    "report": (stages.report_stage, "decide the claims of <paper> and write its report"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one stage; 0 if it worked, 2 after an error that the user can act on."""
    options = _parser().parse_args(arguments)
    try:
        if options.stage == "summarize":
            stages.summarize_stage()
        elif options.stage == "new":
            from shared.pipeline.new import new_replication

            new_replication(options.name)
        else:
            STAGES[options.stage][0](options.name, options.scale or load_params().scale)
    except ReplicationError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; the same command continues.", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m shared.pipeline", description=__doc__)
    commands = parser.add_subparsers(dest="stage", required=True, metavar="stage")
    for stage, (_, text) in STAGES.items():
        command = commands.add_parser(stage, help=text, description=text)
        command.add_argument("name", help="<paper>" if stage == "report" else text.rsplit(" ", 1)[-1])
        command.add_argument("--scale", choices=SCALES, help="default: the scale in params.yaml")
    commands.add_parser("summarize", help="gather all reports into one page")
    commands.add_parser("new", help="start a replication folder").add_argument("name", help="<paper>")
    return parser


if __name__ == "__main__":
    sys.exit(main())
