"""What evaluation leaves of every test example, whatever the task: one record each, for claims and reports."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shared.data.storage import reading_arrays
from shared.errors import ReplicationError
from shared.metrics.registry import corpus_values

if TYPE_CHECKING:
    from shared.reports.exhibits import Results

Example = dict[str, Any]


def write_lines(out: Path, lines: bytes) -> None:
    """Write ``examples.jsonl.gz`` into ``out``; with no time in it, so that same results are same bytes."""
    with gzip.GzipFile(out / "examples.jsonl.gz", "wb", mtime=0) as file:
        file.write(lines)


def records(split: str, columns: Mapping[str, Sequence[Any]]) -> list[Example]:
    """A record for every example of a split, with its value of every column; where that is None, without the column."""
    return [
        {"id": f"{split}-{i}", "split": split}
        | {name: value for name, value in zip(columns, values, strict=True) if value is not None}
        for i, values in enumerate(zip(*columns.values(), strict=True))
    ]


def write_records(
    out: Path, splits: Mapping[str, Sequence[Example]],
    values: Callable[[Sequence[Example]], Mapping[str, float]] = corpus_values,
) -> dict[str, float]:  # fmt: skip
    """Write ``examples.jsonl.gz`` of all test splits into ``out``, which is made if need be, and compute what they say.

    Args:
        out: of a seed.
        splits: to its examples.
        values: from the examples of a split to every measure of it.

    Returns:
        Every measure of the first split, and of the others with the split's name before it: ``hard.accuracy``.
    """
    out.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(example, ensure_ascii=False) + "\n" for examples in splits.values() for example in examples]
    write_lines(out, "".join(lines).encode())
    metrics: dict[str, float] = {}
    for number, (split, examples) in enumerate(splits.items()):
        prefix = "" if number == 0 else f"{split}."
        metrics |= {prefix + name: value for name, value in values(examples).items()}
    return metrics


def write_kept(path: Path, kept: Sequence[Mapping[str, Any]], **alike: Any) -> None:
    """Write what figures need of some examples into an ``.npz``: of the k-th, from 0, its arrays as ``<name>_<k>``.

    Args:
        path: of the file, which is not written if nothing was kept.
        kept: of each example its arrays by name.
        alike: arrays that are the same for all of them, under their own names.
    """
    if kept:
        arrays = {f"{name}_{k}": array for k, example in enumerate(kept) for name, array in example.items()}
        np.savez_compressed(path, **alike, **arrays)


def read_kept(path: Path) -> list[dict[str, NDArray[Any]]]:
    """What :func:`write_kept` wrote: of each example its arrays by name, with those that all have; [] without a file.

    Raises:
        ReplicationError: the file is damaged.
    """
    kept: dict[int, dict[str, NDArray[Any]]] = defaultdict(dict)
    alike: dict[str, NDArray[Any]] = {}
    for key, array in read_arrays(path).items():
        name, _, number = key.rpartition("_")
        (kept[int(number)] if number.isdecimal() else alike)[name or key] = array
    return [kept[number] | alike for number in sorted(kept)]


def read_arrays(path: Path, *names: str) -> dict[str, NDArray[Any]]:
    """Arrays that evaluation has left in an ``.npz``, all or those of some names; none without a file.

    Raises:
        ReplicationError: the file is damaged, or lacks a name.
    """
    if not path.exists():
        return {}
    with reading_arrays(path, "run its evaluate stage again"), path.open("rb") as file, np.load(file) as arrays:
        return {name: arrays[name] for name in names or arrays}


def kept_of(results: Results, variant: str) -> list[dict[str, NDArray[Any]]]:
    """What the first seed of a variant has kept in its ``attention.npz``; [] if it was not run or does not attend."""
    run = results.get(variant)
    return read_kept(run.attention(run.seeds[0])) if run and run.seeds else []


def kept_alike(results: Results, variants: Sequence[str], names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """What several variants have kept of the same examples, by variant, without those that have kept nothing.

    Args:
        results: of all variants.
        variants: which are compared.
        names: of the arrays that say which example it is, such as its words.

    Raises:
        ReplicationError: they have kept different examples.
    """
    found = {variant: kept for variant in variants if (kept := kept_of(results, variant))}
    of = {variant: [[each[name].tolist() for name in names] for each in kept] for variant, kept in found.items()}
    first = next(iter(found), "")
    for variant in found:
        if of[variant] != of[first]:
            raise ReplicationError(
                f"the attention kept of {variant} is not of the same texts as that of {first}; evaluate both again."
            )
    return found
