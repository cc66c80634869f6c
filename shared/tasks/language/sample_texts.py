"""Text that language models wrote, beside what they were to continue."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from shared.claims.results import RunResults
from shared.errors import ReplicationError
from shared.reports.document import Block, Paragraph, Table, Text
from shared.tasks.language.memory_figures import evaluation

LINE_END = "¶"
EXPLAINED = (
    f"Text written by the models (of their first seeds): each reads the beginning, a part of the test text, and draws "
    f"what comes after it symbol by symbol, {{drawn}}. {LINE_END} is the end of a line."
)


def sample_tables(results: Mapping[str, RunResults], variants: Sequence[str]) -> list[Block]:
    """A table for all variants that continue the same beginnings in the same way: those, theirs, and the true text.

    Args:
        results: all variants.
        variants: those asked for; one that was not run, or wrote nothing, is left out.

    Raises:
        ReplicationError: a file of samples cannot be read.
    """
    tables: dict[tuple[str, str], tuple[list[str], list[list[Text]]]] = {}
    for run in (results[variant] for variant in variants if variant in results):
        samples = _read(run)
        if not samples:
            continue
        key = (_drawn(run), json.dumps([(sample["prompt"], sample["true"]) for sample in samples]))
        columns, rows = tables.setdefault(key, ([], [[_shown(sample["prompt"])] for sample in samples]))
        columns.append(run.variant)
        for row, sample in zip(rows, samples, strict=True):
            row.append(_shown(sample["text"]))
    blocks: list[Block] = []
    for (drawn, texts), (columns, rows) in tables.items():
        whole = [[*row, _shown(true)] for row, (_, true) in zip(rows, json.loads(texts), strict=True)]
        heads = ("Beginning", *(f"Continued by {variant}" for variant in columns), "True continuation")
        blocks += [Paragraph(EXPLAINED.format(drawn=drawn)), Table(heads, whole, "t" * len(heads))]
    return blocks


def _read(run: RunResults) -> list[dict[str, str]]:
    """The samples of the first seed; empty if it wrote none."""
    path = run.samples(run.seeds[0]) if run.seeds else None
    if path is None or not path.exists():
        return []
    try:
        found: list[dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ReplicationError(f"{path} cannot be read ({error}); run its evaluate stage again.") from None
    return found


def _drawn(run: RunResults) -> str:
    """How its symbols were drawn."""
    settings: Mapping[str, Any] = evaluation(run, run.seeds[0])["samples"]
    said = [f"at temperature {settings['temperature']:g}"]
    if settings["top_k"] is not None:
        said.append(f"from the {settings['top_k']} likeliest")
    if settings["top_p"] is not None:
        said.append(f"from the likeliest that have {settings['top_p']:g} of the probability together")
    return ", ".join(said)


def _shown(text: str) -> str:
    """In one line, as cells of tables are."""
    return f" {LINE_END} ".join(line.strip() for line in text.split("\n"))
