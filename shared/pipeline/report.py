"""The stages that decide claims and show them: the report of a paper, and the pages of all papers."""

from __future__ import annotations

from pathlib import Path

from shared.claims.outcomes import Evidence
from shared.claims.rules import TESTS
from shared.data.cards import load_card
from shared.pipeline.config import ScaleFile, load_params, scales_of
from shared.pipeline.files import REPLICATIONS, alone, made_anew, paper_folder, run_folder, write_text
from shared.records import read_record
from shared.reports import document as doc
from shared.reports.paper import Paper
from shared.tasks.kinds import load_measures, part_of
from shared.tasks.settings import trains_network

LARGER = {"quick": "bench", "bench": "paper_scale"}
"""Each scale to the larger scale that decides the claims that it could not decide."""
COMPOSING = ("scenes",)
"""Readers that compose new examples from the fetched data; these examples are published nowhere else."""


@alone("reports")
def report_stage(paper: str, scale: str) -> None:
    """Decide the paper's claims, write ``reports/<scale>/<paper>``, and the paper's page anew."""
    from shared.claims import attempts
    from shared.pipeline import plan as plans
    from shared.pipeline import search
    from shared.reports import exhibits, naming, site, verdicts
    from shared.reports.plans import Frozen
    from shared.reports.report import describe_data, write_report

    load_measures()
    settings = ScaleFile(paper, scale)
    kind, left_out = part_of(settings.kind, "report").REPORT, _not_run(settings)
    folder, final = REPLICATIONS / paper, Path("reports") / scale / paper
    plan, ledger, judged = plans.load_plan(settings), plans.ledger_of(settings), settings.judged()
    frozen = Frozen(
        plan, plans.load_found(settings), plans.changes(settings), *search.in_use(settings), ledger,
        search.untuned(settings), plans.confirming(plan),
    )  # fmt: skip
    said = {
        task: describe_data(load_card(settings.dataset(task)), settings.corpus(task)) + _left_out(settings, task)
        for task in settings.tasks
    }
    names, colours = naming.load_names(folder), naming.load_colours(naming.FILE)
    with naming.use_names(names, colours), made_anew(final) as partial:
        write_report(
            folder, run_folder(paper, scale), partial, scale=scale, left_out=left_out, judged=judged,
            deviations=settings.deviations, figures=exhibits.load_exhibits(paper, kind.figures), kind=kind,
            evidence=evidence_of(settings), frozen=frozen, larger=_larger(paper, scale), data=said,
            today={variant: settings.run(variant).model_dump(mode="json") for variant in judged},
        )  # fmt: skip
    if scale != TESTS:
        attempts.append_lines(plans.ledger_path(settings), ledger.new_lines(verdicts.claims_of(final)))
    site.write_papers(Path("reports"), _facts(), paper)


def evidence_of(settings: ScaleFile) -> dict[str, Evidence]:
    """Map each variant with results to its evidence, which is "measured" for a study that trains no network."""
    paper = Paper.load(REPLICATIONS / settings.paper / "paper.yaml")
    data = {task: _of_data(settings, task, paper) for task in settings.tasks}
    found: dict[str, Evidence] = {}
    for variant in settings.judged():
        trained = trains_network(settings.run(variant), settings.models)
        found[variant] = data[settings.task_of(variant)] if trained else "measured"
    return found


def _of_data(settings: ScaleFile, task: str, paper: Paper) -> Evidence:
    """The evidence of one task; downscaled pictures do not count as the paper's data."""
    dataset = settings.dataset(task)
    if dataset in paper.data and getattr(settings.corpus(task), "pool", 1) == 1:
        return "paper's data"
    card = load_card(dataset)
    composed = card.reader is not None and card.reader.name in COMPOSING
    generated = composed or all(source.kind == "generated" for source in card.sources)
    return "generated" if generated else "own data" if card.own else "standard data"


def _left_out(settings: ScaleFile, task: str) -> list[doc.Block]:
    """What the record of fetching says was left out, or is there and not used, by split and reason."""
    path = run_folder(settings.paper, settings.scale) / "fetched" / f"{task}.json"
    record = read_record(path, "fetch its data again", {"files": dict}) if path.is_file() else {}
    found = [
        f"{count:,} of {split} ({reason})"
        for split, reasons in record.get("left_out", {}).items() for reason, count in reasons.items()
    ]  # fmt: skip
    return [doc.Paragraph(f"Left out: {'; '.join(found)}.")] if found else []


def _larger(paper: str, scale: str) -> tuple[str, list[str]] | None:
    """The scale that is to decide what this one does not, and the variants that run there."""
    larger = LARGER.get(scale, "")
    return (larger, ScaleFile(paper, larger).judged()) if larger in scales_of(paper) else None


def _not_run(settings: ScaleFile) -> dict[str, str]:
    """Variant to the reason why it has no results: it is left out, not trained and judged yet, or not here."""
    from shared.claims.results import RunResults

    reasons = dict(settings.left_out)
    for variant in settings.judged():
        folder = settings.folder(variant)
        if not (folder / "metrics.json").is_file():
            reasons[variant] = "planned at this scale, not trained yet"
            continue
        found, name = RunResults.load(folder), ".".join(folder.parts[-2:])
        others = f"{folder}/metrics.json has numbers of another machine's runs"
        if not found.is_here:
            reasons[variant] = "planned at this scale; its runs are on another machine"
            print(f"{name}: left out, for {others}, which are not here; train it, or unpack what its runs have left.")
        elif not found.is_judged_here:
            reasons[variant] = "planned at this scale; not judged on this machine; run its evaluate stage"
            evaluate = f"python -m shared.pipeline evaluate {name} --scale {settings.scale}"
            print(f"{name}: left out, for its runs were not judged on this machine and {others}; run '{evaluate}'.")
    return reasons


def export_stage(paper: str) -> None:
    """Write a paper's page, its pictures inside, as one file that can be sent."""
    from shared.reports.page import as_one_file

    paper_folder(paper)
    text = as_one_file(Path("reports") / paper / "index.html")
    path = Path("reports") / "exported" / f"{paper}.html"
    write_text(path, text)
    print(f"{path} is written.")


def summarize_stage() -> None:
    """Gather all reports into ``reports/README.md`` and the verdict tables of the READMEs."""
    from shared.reports.site import summarize

    load_measures()
    readmes = [Path("README.md"), *sorted(REPLICATIONS.glob("*/README.md"))]
    summarize(Path("reports"), readmes, _facts())


def _facts() -> dict[str, Paper]:
    """Of all papers, in their order."""
    return {name: Paper.load(REPLICATIONS / name / "paper.yaml") for name in load_params().papers}
