"""The command ``compare``: two variants, scales, folders or revisions, in the terminal and as a page."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from shared.claims.results import RunResults, load_results
from shared.claims.scales import SCALES
from shared.config import flat, load_yaml, merge, near
from shared.errors import ReplicationError
from shared.records import read_json, read_record
from shared.reports.comparison import Member, Pair, Settings, Side, comparison_page, shared_pairs
from shared.reports.document import slug
from shared.reports.page import write_page
from shared.reports.terminal import print_blocks
from shared.tasks.kinds import load_measures

COMPARISONS = Path("reports/comparisons")
KEPT = ("runs", "reports", "replications")
"""Folders of a revision that a comparison reads."""
FORMS = "a variant such as bahdanau.rnnsearch-50, a scale, a folder with runs, or a revision that git knows"


def compare_stage(
    left: str, scale: str, *, other: str, paper: str | None = None, console: Console | None = None
) -> None:
    """Compare ``left`` with ``other``, print what differs and write it into ``reports/comparisons``.

    Args:
        left, other: each a variant (then both are), a scale, a folder of a checkout or of its runs, or a revision.
        scale: of the runs, where the names do not say it.
        paper: of which alone runs are compared.
        console: where to; the terminal by default.

    Raises:
        ReplicationError: a name means nothing, a side has no runs, or the two share no variant.
    """
    load_measures()
    with ExitStack() as temporary:
        if (chosen := _variants(left, other)) is not None:
            sides = _of_variant(chosen.left, scale), _of_variant(chosen.right, scale)
        else:
            only = None if paper is None else [paper]
            sides = _named(left, scale, only, temporary), _named(other, scale, only, temporary)
            if not shared_pairs(*sides):
                raise ReplicationError(
                    f"'{left}' and '{other}' share no variant of a paper, so nothing can be compared."
                )
        folder = COMPARISONS / "--".join(slug(side.label) for side in sides)
        shutil.rmtree(folder / "figures", ignore_errors=True)  # of an earlier comparison of the two
        blocks = comparison_page(*sides, folder / "figures", chosen)
        write_page(blocks, folder, title=f"{sides[0].label} and {sides[1].label}")
    console = console or Console(highlight=False)
    print_blocks(blocks, console)
    console.print(f"With the learning curves: {folder / 'index.html'}", soft_wrap=True)


def _variants(left: str, other: str) -> Pair | None:
    """The two variants that the names are; None where neither is one.

    Raises:
        ReplicationError: only one of them is.
    """
    members = [member for name in (left, other) if (member := _variant(name)) is not None]
    if len(members) == 1:
        raise ReplicationError(f"'{left}' and '{other}': a variant can be compared with a variant only.")
    return Pair(*members) if members else None


def _of_variant(member: Member, scale: str) -> Side:
    side = replace(_side(Path(), scale, str(member), [member.paper]), claims={})
    known = [variant for variant, run in side.runs[member.paper].items() if run.seeds]
    if member.variant not in known:
        raise ReplicationError(
            f"there are no results of '{member}' at the {scale} scale{near(member.variant, known)}; evaluate it "
            "first, or give another --scale."
        )
    return side


def _variant(name: str) -> Member | None:
    """``<paper>.<variant>`` where there is such a paper; whether it has results is seen later."""
    paper, dot, variant = name.partition(".")
    there = bool(dot) and variant != "" and (Path("replications") / paper / "variants.yaml").is_file()
    return Member(paper, variant) if there else None


def _named(name: str, scale: str, papers: list[str] | None, temporary: ExitStack) -> Side:
    """What a scale, a folder or a revision stands for."""
    if name in SCALES:
        return _side(Path(), name, name, papers)
    if Path(name).is_dir():
        root, of, inner = _place(Path(name), scale)
        return _side(root, of, name, [inner] if inner else papers)
    if (commit := _commit(name)) is None:
        raise ReplicationError(f"'{name}' is not {FORMS}{near(name, SCALES)}.")
    folder = Path(temporary.enter_context(tempfile.TemporaryDirectory()))
    _extract(commit, name, folder)
    return _side(folder, scale, name, papers)


def _place(folder: Path, scale: str) -> tuple[Path, str, str]:
    """The checkout, the scale and the paper, if any, of a folder: a checkout, or some of its runs or reports."""
    parts = folder.resolve().parts
    for at in range(len(parts) - 1, 0, -1):
        if parts[at] in ("runs", "reports") and len(parts) > at + 1 and parts[at + 1] in SCALES:
            return Path(*parts[:at]), parts[at + 1], "".join(parts[at + 2 : at + 3])
    return folder, scale, ""


def _commit(name: str) -> str | None:
    """The commit of a revision; None if there is none."""
    command = ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ReplicationError("git is not installed, and revisions cannot be compared without it.") from None
    return found.stdout.strip() or None


def _extract(commit: str, name: str, folder: Path) -> None:
    """Write what git keeps of a revision's runs, reports and settings into ``folder``."""
    held = subprocess.run(["git", "ls-tree", "--name-only", commit, *KEPT], capture_output=True, text=True, check=True)
    kept = held.stdout.split()
    if "runs" not in kept:
        raise ReplicationError(f"the revision '{name}' has no runs.")
    packed = subprocess.run(["git", "archive", commit, *kept], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")


def _side(root: Path, scale: str, label: str, papers: list[str] | None) -> Side:
    """The runs of a checkout at a scale, with all that is known of them.

    Raises:
        ReplicationError: there are none.
    """
    folder = root / "runs" / scale
    names = papers or sorted(path.name for path in folder.glob("*") if any(path.glob("*/metrics.json")))
    runs = {name: load_results(folder / name) for name in names if any((folder / name).glob("*/metrics.json"))}
    if not runs:
        of = f" of {', '.join(papers)}" if papers else ""
        where = folder.relative_to(root)  # the folder of a revision is a temporary one
        raise ReplicationError(f"'{label}' has no results{of} in {where}; name what has some, or give another --scale.")
    settings = {name: dict(_settings(root, name, scale, runs[name])) for name in runs}
    return Side(
        label if label == scale else f"{label} ({scale})",
        runs,
        settings,
        {name: dict(_data(folder / name, settings[name], runs[name])) for name in runs},
        {name: found for name in runs if (found := _claims(root / "reports" / scale / name / "claims.json"))},
    )


def _settings(root: Path, paper: str, scale: str, runs: Mapping[str, RunResults]) -> Iterator[tuple[str, Settings]]:
    """What the files of a checkout, perhaps an old one, say of each variant; nothing where their form is another."""
    folder = root / "replications" / paper
    try:
        at_scale, everywhere = load_yaml(folder / scale / "params.yaml"), load_yaml(folder / "variants.yaml")
        for name in runs:
            own, identity = at_scale["variants"].get(name), everywhere["variants"].get(name)
            if own is not None and identity is not None:
                yield name, flat(merge(merge(at_scale["tasks"][own["task"]], identity), own))
    except (ReplicationError, KeyError, TypeError, AttributeError):
        return


def _data(folder: Path, settings: Mapping[str, Settings], runs: Mapping[str, RunResults]) -> Iterator[tuple[str, str]]:
    """A digest of each task's fetched files and of how its corpus is read."""
    own = {runs[name].task: of_variant for name, of_variant in settings.items()}  # lent variants have no settings here
    for task, of_variant in own.items():
        record = folder / "fetched" / f"{task}.json"
        if task and record.is_file():
            files = read_record(record, "run its fetch stage again").get("files")
            corpus = {key: value for key, value in of_variant.items() if key.startswith("corpus.")}
            yield task, hashlib.sha256(json.dumps([files, corpus], sort_keys=True).encode()).hexdigest()


def _claims(path: Path) -> list[dict[str, Any]]:
    found = read_json(path, "run its report stage again", list) if path.exists() else []
    return [entry for entry in found if isinstance(entry, dict) and {"id", "verdict", "how", "lead"} <= entry.keys()]
