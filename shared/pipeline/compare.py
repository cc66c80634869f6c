"""The command ``compare``: two variants, scales, folders or revisions, in the terminal and as a page."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from shared.claims.results import RunResults, load_results
from shared.claims.scales import SCALES
from shared.config import check_name, flat, load_yaml, merge, near
from shared.errors import ReplicationError
from shared.pipeline.provenance import git, hash_of
from shared.records import read_json, read_record
from shared.reports.comparison import Member, Pair, Settings, Side, comparison_page, shared_pairs
from shared.reports.document import slug
from shared.reports.page import write_page
from shared.reports.terminal import print_blocks
from shared.tasks.kinds import load_measures

COMPARISONS = Path("reports/comparisons")
KEPT = ("runs", "reports", "replications")
"""Folders of a revision that a comparison reads."""


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
    members = [member for name in (left, other) if (member := _variant(name)) is not None]
    if len(members) == 1:
        raise ReplicationError(f"'{left}' and '{other}': a variant can be compared with a variant only.")
    chosen = Pair(*members) if members else None
    with ExitStack() as temporary:
        if chosen is not None:
            sides = _of_variant(chosen.left, scale), _of_variant(chosen.right, scale)
        else:
            sides = _named(left, scale, paper, temporary), _named(other, scale, paper, temporary)
            if not shared_pairs(*sides):
                raise ReplicationError(f"'{left}' and '{other}' share no variant of a paper; nothing can be compared.")
        folder = COMPARISONS / "--".join(slug(side.label) for side in sides)
        shutil.rmtree(folder / "figures", ignore_errors=True)  # of an earlier comparison of the two
        blocks = comparison_page(*sides, folder / "figures", chosen)
        write_page(blocks, folder, title=f"{sides[0].label} and {sides[1].label}")
    console = console or Console(highlight=False)
    print_blocks(blocks, console)
    console.print(f"With the learning curves: {folder / 'index.html'}", soft_wrap=True)


def _variant(name: str) -> Member | None:
    """``<paper>.<variant>`` where there is such a paper; whether it has results is seen later."""
    paper, _, variant = name.partition(".")
    return Member(paper, variant) if variant and Path("replications", paper, "variants.yaml").is_file() else None


def _of_variant(member: Member, scale: str) -> Side:
    side = replace(_side(Path(), scale, str(member), member.paper), claims={})
    known = [variant for variant, run in side.runs[member.paper].items() if run.seeds]
    check_name(member.variant, known, f"the {scale} scale has no results of {member.paper}'s variant")
    return side


def _named(name: str, scale: str, paper: str | None, temporary: ExitStack) -> Side:
    """What a scale, a folder (a checkout, or some of its runs or reports) or a revision stands for."""
    if name in SCALES:
        return _side(Path(), name, name, paper)
    if Path(name).is_dir():
        parts = Path(name).resolve().parts
        for at in reversed(range(1, len(parts) - 1)):
            if parts[at] in ("runs", "reports") and parts[at + 1] in SCALES:
                return _side(Path(*parts[:at]), parts[at + 1], name, "".join(parts[at + 2 : at + 3]) or paper)
        return _side(Path(name), scale, name, paper)
    folder = Path(temporary.enter_context(tempfile.TemporaryDirectory()))
    _extract(name, folder)
    return _side(folder, scale, name, paper)


def _extract(name: str, folder: Path) -> None:
    """Write what git keeps of a revision's runs, reports and settings into ``folder``."""
    if not (commit := git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")):
        raise ReplicationError(
            f"'{name}' is not a variant such as bahdanau.rnnsearch-50, a scale, a folder with runs, or a revision that "
            f"git, if it is installed, knows{near(name, SCALES)}."
        )
    kept = (git("ls-tree", "--name-only", commit, *KEPT) or "").split()
    if "runs" not in kept:
        raise ReplicationError(f"the revision '{name}' has no runs.")
    archive = folder / "kept.zip"
    git("archive", "-0", f"--output={archive}", commit, *kept)
    shutil.unpack_archive(archive, folder)


def _side(root: Path, scale: str, label: str, paper: str | None) -> Side:
    """The runs of a checkout at a scale, of one paper or of all, with all that is known of them.

    Raises:
        ReplicationError: there are none.
    """
    folder = root / "runs" / scale
    names = sorted({path.parents[1].name for path in folder.glob(f"{paper or '*'}/*/metrics.json")})
    runs = {name: load_results(folder / name) for name in names}
    if not runs:
        of, where = f" of {paper}" if paper else "", folder.relative_to(root)  # the folder of a revision is temporary
        raise ReplicationError(f"'{label}' has no results{of} in {where}; name what has some, or give another --scale.")
    settings = {name: dict(_settings(root, name, scale, runs[name])) for name in runs}
    reports = {name: root / "reports" / scale / name / "claims.json" for name in runs}
    return Side(
        label if label == scale else f"{label} ({scale})",
        runs,
        settings,
        {name: dict(_data(folder / name, settings[name], runs[name])) for name in runs},
        {name: _claims(path) for name, path in reports.items() if path.exists() and _claims(path)},
    )


def _settings(root: Path, paper: str, scale: str, runs: Mapping[str, RunResults]) -> Iterator[tuple[str, Settings]]:
    """What the files of a checkout, perhaps an old one, say of each variant; nothing where their form is another."""
    folder = root / "replications" / paper
    try:
        at_scale, everywhere = load_yaml(folder / scale / "params.yaml"), load_yaml(folder / "variants.yaml")
        for name in runs.keys() & at_scale["variants"].keys() & everywhere["variants"].keys():
            own, identity = at_scale["variants"][name], everywhere["variants"][name]
            yield name, flat(merge(merge(at_scale["tasks"][own["task"]], identity), own))
    except (ReplicationError, KeyError, TypeError, AttributeError):
        return


def _data(folder: Path, settings: Mapping[str, Settings], runs: Mapping[str, RunResults]) -> Iterator[tuple[str, str]]:
    """A digest of each task's fetched files and of how its corpus is read."""
    for name, of_variant in settings.items():
        record = folder / "fetched" / f"{(task := runs[name].task)}.json"
        if task and record.is_file():
            corpus = {key: value for key, value in of_variant.items() if key.startswith("corpus.")}
            yield task, hash_of([read_record(record, "run its fetch stage again").get("files"), corpus])


def _claims(path: Path) -> list[dict[str, Any]]:
    found = read_json(path, "run its report stage again", list)
    return [entry for entry in found if isinstance(entry, dict) and {"id", "verdict", "how", "lead"} <= entry.keys()]
