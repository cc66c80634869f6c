"""What evaluation leaves of every test example, whatever the task: one record each, for claims and reports."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.metrics.registry import corpus_values

Example = dict[str, Any]


def write_examples(out: Path, examples: Sequence[Example]) -> None:
    """Write ``examples.jsonl.gz`` into ``out``; with no time in it, so that same results are same bytes."""
    lines = "".join(json.dumps(example, ensure_ascii=False) + "\n" for example in examples)
    write_lines(out, lines.encode())


def write_lines(out: Path, lines: bytes) -> None:
    """Write the lines of examples, as :func:`write_examples` does."""
    with gzip.GzipFile(out / "examples.jsonl.gz", "wb", mtime=0) as file:
        file.write(lines)


def judged(splits: Mapping[str, Sequence[Example]]) -> dict[str, float]:
    """Every measure of the first test split, and of the others with the split's name before it: ``hard.accuracy``."""
    metrics: dict[str, float] = {}
    for number, (split, examples) in enumerate(splits.items()):
        prefix = "" if number == 0 else f"{split}."
        metrics |= {prefix + name: value for name, value in corpus_values(examples).items()}
    return metrics
