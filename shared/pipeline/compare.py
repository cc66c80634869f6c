"""The command ``compare``: two variants, scales, folders or revisions, in the terminal and as a page.

The page compares their settings, measures and verdicts; its tables are the terminal's.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from shared.claims.estimates import Difference, difference, shared_metrics
from shared.claims.results import RunResults, load_results, read_mean
from shared.claims.rules import SCALES
from shared.claims.words import number_of
from shared.config import check_name, flat, load_yaml, merge, near
from shared.errors import ReplicationError
from shared.metrics.registry import measure, split_of
from shared.pipeline.provenance import git, hash_of
from shared.records import read_record
from shared.reports import document as doc
from shared.reports.curves import LOSS, draw_curves, read_curves
from shared.reports.document import SPREAD, code, plain, signed, slug, strong, with_ends
from shared.reports.page import print_blocks, write_page
from shared.reports.verdicts import Entry, claims_of, found_text, verdict_text
from shared.tasks.kinds import load_measures

COMPARISONS = Path("reports/comparisons")
KEPT = ("runs", "reports", "replications")
"""Folders of a revision that a comparison reads."""
Settings = Mapping[str, Any]
"""Dotted key to value, such as ``training.updates`` to 400."""
Pair = tuple[str, str]
"""Two variants that are compared, one of each side."""
ABSENT = "–"
ENTRY = {"id", "verdict", "how", "lead"}
"""What is compared of an entry of claims.json; those of old revisions may lack some."""


@dataclass(frozen=True)
class Side:
    """One of the two collections; a variant is called ``<paper>.<variant>``.

    Attributes:
        label: what it is called.
        runs: variant to results; all have some.
        settings: variant to settings; one whose settings cannot be found is left out.
        data: variant to the digest of its data as they were fetched, where that is known.
        claims: paper to the entries of its report's claims.json; none where there is no report.
    """

    label: str
    runs: dict[str, RunResults] = field(default_factory=dict)
    settings: dict[str, Settings] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    claims: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def variants(self) -> list[str]:
        """Those that have runs of their own, which ensembles have not."""
        return [name for name, run in self.runs.items() if not run.members]


def compare_stage(left: str, scale: str, *, other: str, paper: str | None = None) -> None:
    """Compare ``left`` with ``other``, print what differs and write it into ``reports/comparisons``.

    Args:
        left, other: each a variant (then both are), a scale, a folder of a checkout or of its runs, or a revision.
        scale: of the runs, where the names do not say it.
        paper: of which alone runs are compared.

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
            sides = _of_name(left, scale, paper, temporary), _of_name(other, scale, paper, temporary)
            pairs = [(name, name) for name in sides[0].variants if name in sides[1].variants]
            if not pairs:
                raise ReplicationError(f"'{left}' and '{other}' share no variant of a paper; nothing can be compared.")
        folder = COMPARISONS / "--".join(slug(side.label) for side in sides)
        shutil.rmtree(folder / "figures", ignore_errors=True)  # of an earlier comparison of the two
        blocks = comparison_page(*sides, pairs, folder / "figures", whole=not of_variants)
        write_page(blocks, folder, title=f"{sides[0].label} and {sides[1].label}")
    console = Console(highlight=False)
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


def _of_name(name: str, scale: str, paper: str | None, temporary: ExitStack) -> Side:
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
        settings = dict(_settings_of(root, name, scale))
        for variant, run in load_results(folder / name).items():
            if run.seeds:
                side.runs[f"{name}.{variant}"] = run
            if own := settings.get(variant):
                side.settings[f"{name}.{variant}"] = own
                record = folder / name / "fetched" / f"{run.task}.json"
                if record.is_file():
                    corpus = {key: value for key, value in own.items() if key.startswith("corpus.")}
                    files = read_record(record, "run its fetch stage again").get("files")
                    side.data[f"{name}.{variant}"] = hash_of([files, corpus])
        if claims := [entry for entry in claims_of(root / "reports" / scale / name) if entry.keys() >= ENTRY]:
            side.claims[name] = claims
    if not side.runs:
        of, where = f" of {paper}" if paper else "", folder.relative_to(root)  # the folder of a revision is temporary
        raise ReplicationError(f"'{label}' has no results{of} in {where}; name what has some, or give another --scale.")
    return side


def _settings_of(root: Path, paper: str, scale: str) -> Iterator[tuple[str, Settings]]:
    """What the files of a checkout, perhaps an old one, say of each variant; nothing where their form is another."""
    folder = root / "replications" / paper
    try:
        at_scale, everywhere = load_yaml(folder / scale / "params.yaml"), load_yaml(folder / "variants.yaml")
        for name in at_scale["variants"].keys() & everywhere["variants"].keys():
            own, identity = at_scale["variants"][name], everywhere["variants"][name]
            yield name, flat(merge(merge(at_scale["tasks"][own["task"]], identity), own))
    except (ReplicationError, KeyError, TypeError, AttributeError):
        return


def comparison_page(left: Side, right: Side, pairs: Sequence[Pair], folder: Path, *, whole: bool) -> list[doc.Block]:
    """What the page of a comparison shows; its figures are drawn into ``folder``.

    Args:
        left, right: the sides.
        pairs: the variants that are compared.
        folder: of the figures.
        whole: whether verdicts are compared, too, and it is said what only one side has.
    """
    changed = [pair for pair in pairs if left.runs[pair[0]].metrics != right.runs[pair[1]].metrics]
    equal = len(pairs) - len(changed)
    compared = number_of(len(pairs), "variant is", "variants are")
    said = f"{compared} compared, {equal} of them with the same numbers in every seed."
    if len(pairs) == 1:
        said = "They have the same numbers in every seed." if equal else "Differences are the second less the first."
    blocks: list[doc.Block] = [doc.Heading(f"{left.label} and {right.label}", level=1), doc.Paragraph(said)]
    if whole:
        blocks += [*_alone(left, right), *_alone(right, left)]
    if whole and left.claims and right.claims:
        blocks += [doc.Heading("Verdicts"), _verdicts(left, right)]
    blocks += [doc.Heading("Settings"), *_settings(left, right, pairs)]
    return [*blocks, doc.Heading("Measures"), *_measures(left, right, changed), *_curves(left, right, changed, folder)]


def _named(pair: Pair) -> str:
    return pair[0] if pair[0] == pair[1] else " and ".join(pair)


def _alone(side: Side, other: Side) -> list[doc.Block]:
    names = [code(name) for name in side.variants if name not in other.variants]
    said = f"Runs in {side.label} alone: {number_of(len(names), 'variant')}"
    return [doc.Details(said, [doc.Bullets(names)])] if names else []


def _verdicts(left: Side, right: Side) -> doc.Block:
    """A table of the claims whose verdict differs, of papers that both sides have a report of."""
    rows = []
    for paper in [paper for paper in left.claims if paper in right.claims]:
        ours, theirs = ({entry["id"]: entry for entry in side.claims[paper]} for side in (left, right))
        for claim in {**ours, **theirs}:
            pair = ours.get(claim), theirs.get(claim)
            if len({entry["verdict"] if entry else None for entry in pair}) > 1:
                rows.append([claim, *(cell for entry in pair for cell in _verdict(entry))])
    columns = ("Claim", left.label, "Effect", right.label, "Effect there")
    return doc.Table(columns, rows, "lllll") if rows else doc.Paragraph("No verdict differs.")


def _verdict(entry: Entry | None) -> tuple[str, str]:
    return (verdict_text(entry), found_text(entry)) if entry else (ABSENT, ABSENT)


def _settings(left: Side, right: Side, pairs: Sequence[Pair]) -> list[doc.Block]:
    """A table of the settings that differ; variants that differ in the same way share its rows."""
    groups: dict[tuple[tuple[str, str, str], ...], list[str]] = defaultdict(list)
    known = [pair for pair in pairs if pair[0] in left.settings and pair[1] in right.settings]
    for pair in known:
        ours, theirs = left.settings[pair[0]], right.settings[pair[1]]
        keys = sorted(key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key))
        values = [[ABSENT if side.get(key) is None else str(side[key]) for key in keys] for side in (ours, theirs)]
        groups[tuple(zip(keys, *values, strict=True))].append(_named(pair))
    groups.pop((), None)  # those that are alike
    if not groups:
        alike = len(known) == len(pairs)
        return [doc.Paragraph("No setting differs." if alike else "The settings of one of the two are not at hand.")]
    blocks: list[doc.Block] = []
    for rows, names in groups.items():
        table = doc.Table(("Setting", left.label, right.label), [[*map(code, row)] for row in rows], "lll")
        blocks.append(table if len(pairs) == 1 else doc.Details(", ".join(names), [table]))
    return blocks


def _measures(left: Side, right: Side, changed: Sequence[Pair]) -> list[doc.Block]:
    """A table of differences for each pair whose numbers differ; the measures that are better one way or the other."""
    found = {pair: _differences(left, right, pair) for pair in changed}
    shown = {pair: measures for pair, measures in found.items() if measures}
    blocks: list[doc.Block] = []
    for pair, measures in shown.items():
        rows = [_measure_row(each, left.runs[pair[0]].token) for each in measures]
        table = doc.Table(("Measure", left.label, right.label, "Difference, 95 %", "From"), rows, "lrrrl")
        sure = sum(each.sure for each in measures)
        said = f"{_named(pair)}: 0 lies outside of {sure} of {number_of(len(measures), 'interval')}"
        blocks.append(table if len(shown) == 1 else doc.Details(said, [table]))
    if apart := [_named(pair) for pair in changed if pair not in shown]:
        blocks.append(doc.Paragraph(f"No measure in common that is better one way: {', '.join(apart)}."))
    return blocks or [doc.Paragraph("No measure differs.")]


def _differences(left: Side, right: Side, pair: Pair) -> list[Difference]:
    ours, theirs = left.runs[pair[0]], right.runs[pair[1]]
    here, there = left.data.get(pair[0]), right.data.get(pair[1])
    same = not (ours.task or theirs.task) or (here is not None and here == there)  # a study has no task and no data
    return [difference(ours, theirs, metric, same_data=same) for metric in shared_metrics(ours, theirs)]


def _measure_row(found: Difference, token: str) -> list[str]:
    split, name = split_of(found.metric)
    of = measure(name)
    title = of.title.format(token=token) + (f", split {split}" if split else "")
    shown = signed(found.value, of.digits)
    if found.interval is not None:
        shown = with_ends(shown, (signed(end, of.digits) for end in found.interval))
    return [
        f"{title}{' ↓' if of.better == 'lower' else ' ↑'}", plain(found.left, of.digits), plain(found.right, of.digits),
        strong(shown) if found.sure else shown, found.based_on,
    ]  # fmt: skip


def _curves(left: Side, right: Side, changed: Sequence[Pair], folder: Path) -> list[doc.Block]:
    """Both sides' loss on validation, laid over each other, of every pair whose numbers differ."""
    figures: list[doc.Block] = []
    for pair in changed:
        runs = [replace(side.runs[name], variant=side.label) for side, name in zip((left, right), pair, strict=True)]
        seeds = [read_curves(run, metric=LOSS.metric, split="valid") for run in runs]
        curves = seeds if all(seeds) else [read_mean(run.folder / "curve.csv") for run in runs]
        path = folder / f"loss_{'--'.join(pair)}.png"
        if draw_curves(runs, curves, path, x="Updates", y=LOSS.label.format(token=runs[0].token)):
            said = SPREAD if all(seeds) else "mean over seeds."
            figures.append(doc.Figure(path, f"{_named(pair)}. {LOSS.caption}: {said}"))
    return [doc.Heading("Learning curves"), *figures] if figures else []
