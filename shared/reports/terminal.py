"""Verdicts in the terminal, for whoever has just made a report."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from shared.errors import ReplicationError

STYLES = {"reproduced": "green", "contradicted": "red", "inconclusive": "yellow", "not tested": "dim"}


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
    table.add_column("Verdict", no_wrap=True)
    table.add_column("The paper says")
    for claim in claims:
        verdict = claim["verdict"]
        table.add_row(claim["id"], f"[{STYLES.get(verdict, '')}]{verdict}[/]", claim["statement"])
    console.print(table)
    console.print(f"Open {folder / 'index.html'} in a browser, or read {folder / 'README.md'}.", soft_wrap=True)
