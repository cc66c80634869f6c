"""The command ``compare``: two variants, scales, folders or revisions, in the terminal and as a page."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console

from shared.claims.results import load_results
from shared.claims.scales import SCALES
from shared.config import check_name, flat, load_yaml, merge, near
from shared.errors import ReplicationError
from shared.pipeline.provenance import git, hash_of
from shared.records import read_json, read_record
from shared.reports.comparison import Settings, Side, comparison_page, shared_pairs
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
    of_variants = _is_variant(left)
    if of_variants != _is_variant(other):
        raise ReplicationError(f"'{left}' and '{other}': a variant can be compared with a variant only.")
    with ExitStack() as temporary:
        if of_variants:
            sides, pairs = (_of_variant(left, scale), _of_variant(other, scale)), [(left, other)]
        else:
            sides = _named(left, scale, paper, temporary), _named(other, scale, paper, temporary)
            if not (pairs := shared_pairs(*sides)):
                raise ReplicationError(f"'{left}' and '{other}' share no variant of a paper; nothing can be compared.")
        folder = COMPARISONS / "--".join(slug(side.label) for side in sides)
        shutil.rmtree(folder / "figures", ignore_errors=True)  # of an earlier comparison of the two
        blocks = comparison_page(*sides, pairs, folder / "figures", whole=not of_variants)
        write_page(blocks, folder, title=f"{sides[0].label} and {sides[1].label}")
    console = console or Console(highlight=False)
    print_blocks(blocks, console)
    console.print(f"With the learning curves: {folder / 'index.html'}", soft_wrap=True)


def _is_variant(name: str) -> bool:
    """Whether it is ``<paper>.<variant>`` of a paper that there is; whether it has results is seen later."""
    paper, _, variant = name.partition(".")
    return bool(variant) and Path("replications", paper, "variants.yaml").is_file()


def _of_variant(name: str, scale: str) -> Side:
    paper, _, variant = name.partition(".")
    side = _side(Path(), scale, name, paper)
    known = [each.removeprefix(f"{paper}.") for each in side.runs]
    check_name(variant, known, f"the {scale} scale has no results of {paper}'s variant")
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
    folder, side = root / "runs" / scale, Side(label if label == scale else f"{label} ({scale})")
    for name in sorted({path.parents[1].name for path in folder.glob(f"{paper or '*'}/*/metrics.json")}):
        settings = dict(_settings(root, name, scale))
        for variant, run in load_results(folder / name).items():
            if run.seeds:
                side.runs[f"{name}.{variant}"] = run
            if own := settings.get(variant):
                side.settings[f"{name}.{variant}"] = own
                record = folder / name / "fetched" / f"{run.task}.json"
                if record.is_file():
                    corpus = {key: value for key, value in own.items() if key.startswith("corpus.")}
                    files = read_record(record, "run its fetch stage again").get("files")
                    side.data[name, run.task] = hash_of([files, corpus])
        if claims := _claims(root / "reports" / scale / name / "claims.json"):
            side.claims[name] = claims
    if not side.runs:
        of, where = f" of {paper}" if paper else "", folder.relative_to(root)  # the folder of a revision is temporary
        raise ReplicationError(f"'{label}' has no results{of} in {where}; name what has some, or give another --scale.")
    return side


def _settings(root: Path, paper: str, scale: str) -> Iterator[tuple[str, Settings]]:
    """What the files of a checkout, perhaps an old one, say of each variant; nothing where their form is another."""
    folder = root / "replications" / paper
    try:
        at_scale, everywhere = load_yaml(folder / scale / "params.yaml"), load_yaml(folder / "variants.yaml")
        for name in at_scale["variants"].keys() & everywhere["variants"].keys():
            own, identity = at_scale["variants"][name], everywhere["variants"][name]
            yield name, flat(merge(merge(at_scale["tasks"][own["task"]], identity), own))
    except (ReplicationError, KeyError, TypeError, AttributeError):
        return


def _claims(path: Path) -> list[dict[str, Any]]:
    found = read_json(path, "run its report stage again", list) if path.exists() else []
    return [entry for entry in found if isinstance(entry, dict) and {"id", "verdict", "how", "lead"} <= entry.keys()]
