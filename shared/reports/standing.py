"""Whether the runs behind a page are what the project would make today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.claims.results import RunResults
from shared.reports.document import Block, Paragraph, Strong, listed
from shared.reports.naming import called

Results = Mapping[str, RunResults]
TRAINED_BY = ("corpus", "model", "training")
"""Sections of a run's settings that its weights depend on; judging is done again whenever its own change."""


def stale_variants(results: Results, settings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The variants that were trained with other settings than those of today.

    Args:
        results: of all variants.
        settings: variant to its settings of today, as they are recorded with a run.
    """
    return [variant for variant, run in results.items() if variant in settings and _differs(run, settings[variant])]


def _differs(run: RunResults, today: Mapping[str, Any]) -> bool:
    return any(record["parameters"][key] != today[key] for record in run.runs.values() for key in TRAINED_BY)


def standing(results: Results, stale: Sequence[str]) -> list[Block]:
    """A sentence that says that the runs are of clean commits and today's settings, and judged, or which are not."""
    dirty = [name for name, run in results.items() if any(each.get("git_dirty") for each in run.runs.values())]
    unknown = [
        name for name, run in results.items() if any(each.get("git_commit") is None for each in run.runs.values())
    ]
    again = [name for name, run in results.items() if run.is_trained_again]
    if not any(run.runs for run in results.values()):
        return []
    blocks: list[Block] = [
        Paragraph((Strong(f"⚠ {what}:"), " ", *listed(map(called, variants)), f" {said}."))
        for what, variants, said in (
            ("Uncommitted", dirty, "had runs with changes that no commit has; nobody else can repeat them exactly"),
            ("Of no known commit", unknown, "had runs in a folder without git; nobody can tell which code they had"),
            ("Stale", stale, "had runs with other settings than those of today; train again"),
            ("Judged before", again, "were trained again since they were judged; run evaluate"),
        )
        if variants
    ]
    return blocks or [Paragraph((Strong("✔ Current:"), " all runs are of committed code, with the settings of today."))]
