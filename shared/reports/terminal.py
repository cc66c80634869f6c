"""Prints the verdicts of a report in the terminal."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from shared.errors import ReplicationError
from shared.reports.verdicts import effect_text

STYLES = {
    "reproduced": "green", "contradicted": "red", "inconclusive": "yellow", "verified": "green", "refuted": "red",
    "not tested": "dim",
}  # fmt: skip


def print_verdicts(folder: Path, console: Console | None = None) -> None:
    """Print a row per claim of a report, and where its pages are.

    Args:
        folder: ``reports/<scale>/<paper>``.
        console: where to; the terminal by default.

    Raises:
        ReplicationError: there is no report.
    """
    console = console or Console()
    try:
        claims = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReplicationError(f"{folder} is no whole report ({error}); run its report stage.") from None
    table = Table(title=f"{claims[0]['paper']}: what the runs say of its claims", title_justify="left")
    table.add_column("Claim", no_wrap=True)
    table.add_column("Verdict")
    table.add_column("Effect")
    table.add_column("The paper says")
    for claim in claims:
        verdict, lead = claim["verdict"], claim["lead"]
        how = f": {claim['how']}" if claim["how"] else ""
        effect = "–" if lead is None else effect_text(lead)
        table.add_row(claim["id"], f"[{STYLES[verdict]}]{verdict}[/]{how}", escape(effect), escape(claim["statement"]))
    console.print(table)
    console.print(f"Open {folder / 'index.html'} in a browser, or read {folder / 'README.md'}.", soft_wrap=True)
