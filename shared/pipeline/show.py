"""The commands ``show``, ``verdicts`` and ``list``: what became of claims, and how; what is trained and judged."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.table import Column, Table
from rich.text import Text

from shared.claims.outcomes import better
from shared.claims.results import RunResults
from shared.claims.rules import SCALES
from shared.claims.schema import load_claims
from shared.claims.words import number_of
from shared.config import near
from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile, scales_of
from shared.pipeline.files import REPLICATIONS, paper_folder
from shared.pipeline.provenance import git
from shared.reports import verdicts
from shared.reports.document import plain_text, sentence
from shared.reports.paper import Paper
from shared.reports.verdicts import Entry
from shared.tasks.kinds import load_measures, papers

REPORTS = Path("reports")
LEFT_OUT = "–"
STYLES = {
    "reproduced": "green", "contradicted": "red", "inconclusive": "yellow", "verified": "green", "refuted": "red",
    "not tested": "dim", "in part": "yellow", "mixed": "yellow",
}  # fmt: skip
LEGEND = (
    "Seeds with a checkpoint / with metrics, of all seeds. Checkpoints lie on the machine that has trained; metrics "
    f"come with the project. {LEFT_OUT}: does not run at this scale. 'list <paper>' says more, --all names what runs "
    "at no scale, too.\n"
)


def show_claim(name: str, *, scale: str | None = None) -> None:
    """Print a claim, its verdict at each scale with a report, and how one of them came about, as its report says.

    Args:
        name: the claim's id.
        scale: of the report that is explained; that with the better evidence unless given.

    Raises:
        ReplicationError: there is no such claim, or no report of it at this scale.
    """
    load_measures()
    console = Console(highlight=False)
    paper, entries = _reports_of(name)
    if scale is not None and scale not in entries:
        make = f"run 'python -m shared.pipeline use {scale} && dvc repro report@{paper}'"
        others = f"reports at these scales do: {', '.join(entries) or 'none'}"
        raise ReplicationError(f"no report at {scale} scale decides {name} ({others}); {make}.")
    entry = entries[scale] if scale else better(entries.values()) if entries else None
    claims = load_claims(REPLICATIONS / paper / "claims.yaml", entry["scale"] if entry else SCALES[0])
    claim = next(claim for claim in claims.claims if claim.id == name)
    short, in_paper = Paper.load(REPLICATIONS / paper / "paper.yaml").short, claim.in_paper
    console.print(Text.assemble((f"{claim.id}: {_line(claim.statement)}", "bold")))
    console.print(Text(f"{short}, {claim.where}."))
    for each, found in entries.items():
        tested = f"{verdicts.found_text(found)}; {verdicts.evidence_text(found)}"
        console.print(Text.assemble(f"{each}: ", _verdict(found), f"; {tested if found['lead'] else found['reason']}"))
    if entry is None:
        console.print(Text(f"The paper reports: {_line(in_paper.text)}."))
        console.print(f"No report says anything of it yet; run 'dvc repro report@{paper}'.")
        return
    if said := verdicts.disagreement([*entries.values()]):
        console.print(plain_text(said))
    if [claim.statement, in_paper.model_dump(mode="json")] != [entry["statement"], entry["in_paper"]]:
        console.print("claims.yaml has changed since this report; run the report stage again.")
    console.print(Text(f"How the verdict at {entry['scale']} scale came about:", style="bold"))
    console.print(Markdown(_card(REPORTS / entry["scale"] / paper / "README.md", name)))
    for each in entry["learned"]:
        if (floor := claims.floors.get(each["task"])) is not None:
            said = f"Floor of the task {each['task']} ({': '.join(verdicts.floor_text(floor))}): "
            said += f"{each['reached']} of {number_of(each['seeds'], 'seed')} of {each['variant']} reach it."
            console.print(Text(said + (f" It is exempt: {each['exempt']}." if each["exempt"] else "")))
    for each in entry["comparisons"]:
        kind = "Identity" if each["deciding"] else "Supporting comparison"
        if each["verdict"] != "not tested" and (each["kind"] == "exact" or not each["deciding"]):
            console.print(Text(f"{kind} '{each['name']}': {each['verdict']}; {verdicts.effect_text(each)}."))
    console.print(f"The verdict. {verdicts.say('verdict_rule')}")


def _reports_of(name: str) -> tuple[str, dict[str, Entry]]:
    """The paper of a claim, and the scales from the smallest to the entries of their reports' claims.json."""
    files = {paper: load_claims(REPLICATIONS / paper / "claims.yaml", SCALES[0]) for paper in _papers()}
    known = {claim.id: paper for paper, file in files.items() for claim in file.claims}
    if name not in known:
        upper = {claim.upper(): claim for claim in known}
        raise ReplicationError(f"there is no claim '{name}'{near(upper.get(name.upper(), name), known)}.")
    found = {scale: verdicts.claims_of(REPORTS / scale / known[name]) for scale in SCALES}
    return known[name], {scale: row for scale, rows in found.items() for row in rows if row["id"] == name}


def _papers() -> list[str]:
    if not (found := papers()):
        raise ReplicationError(f"{Path.cwd()} has no folder 'replications' with papers; go to the project's root.")
    return found


def _card(page: Path, claim: str) -> str:
    """What the page of a report says of a claim, without figures and tables."""
    card = page.read_text(encoding="utf-8").partition(f'<a id="{claim}"></a>')[2]
    card = re.split(r'\n<a id="|\n## ', card[card.find("**In the paper**") :])[0]
    return re.sub(r"(?m)^!\[.*\n\n.*|^[|<].*", "", card)  # a figure has its caption below


def _line(text: str) -> str:
    return " ".join(text.split())


def verdicts_stage(paper: str, scale: str) -> None:
    """Print a row per claim of a report, where its pages are, and whether its verdicts are those committed.

    Raises:
        ReplicationError: there is no report.
    """
    paper_folder(paper)
    if os.environ.get("REPLICATE_SHOWS_VERDICTS"):  # replicate.py prints them when DVC has had its last word
        return
    claims, console = [*verdicts.Report(REPORTS / scale / paper).claims.values()], Console()
    heads = Column("Claim", no_wrap=True), "Verdict", "Effect", "What was tested"
    table = Table(*heads, title=f"{claims[0]['paper']}: what the runs say of its claims", title_justify="left")
    for claim in claims:
        shown = Text(verdicts.found_text(claim)), Text(sentence(verdicts.in_short(claim)))
        table.add_row(claim["id"], _verdict(claim), *shown)
    console.print(table)
    page, whole = REPORTS / paper / "index.html", REPORTS / scale / paper / "README.md"
    console.print(f"Open {page} in a browser, or read {whole}.", soft_wrap=True)
    print(beside_committed(paper, scale))


def _verdict(entry: Entry) -> Text:
    """A verdict in its colour, and what kind of contradicted or inconclusive it is."""
    how = f": {entry['how']}" if entry["how"] else ""
    return Text.assemble((entry["verdict"], STYLES[entry["verdict"]]), how)


def beside_committed(paper: str, scale: str) -> str:
    """Whether a report's verdicts, and its effects, are those of the last commit, in a sentence."""
    path = REPORTS / scale / paper / "claims.json"
    if (committed := git("show", f"HEAD:{path.as_posix()}")) is None:
        return "There are no committed verdicts to compare these with."
    texts = committed, path.read_text("utf-8")
    was, now = ({each["id"]: (each["verdict"], each["lead"]) for each in json.loads(text)} for text in texts)
    both = f"`replicate.py compare HEAD {scale} --paper {paper}` shows both"
    if changed := [each for each in was | now if was.get(each, ("",))[0] != now.get(each, ("",))[0]]:
        return f"The verdicts on {', '.join(changed)} are not those committed; {both}."
    if was == now:
        return "The verdicts and their numbers are those committed."
    return f"The verdicts are those committed. Numbers differ, as they do by another processor: {both}."


def list_runs(paper: str | None = None, *, everything: bool = False) -> None:
    """Print a table of every paper: a row for each variant, a column for each scale; of one paper more, with reasons.

    Args:
        paper: its name; None: all.
        everything: whether variants that run at no scale are listed, too, as they are of one paper.

    Raises:
        ReplicationError: there is no such paper.
    """
    console = Console(highlight=False)
    console.print(LEGEND)
    for name in [paper_folder(paper).name] if paper else _papers():
        scales = [ScaleFile(name, scale) for scale in scales_of(name)]
        console.print(Text(f"{name} ({scales[0].kind})", style="bold"))
        table, notes = Table("variant", *(each.scale for each in scales), box=None, pad_edge=False), list[str]()
        for variant in dict.fromkeys([*scales[0].identities, *(other for each in scales for other in each.others)]):
            states = [state(each, variant) for each in scales]
            notes += [f"{each.scale}: {variant} {note}" for each, (_, note) in zip(scales, states, strict=True) if note]
            cells = [cell for cell, _ in states]
            if everything or paper or {*cells} != {LEFT_OUT}:
                table.add_row(variant, *cells)
        for each in scales:
            tasks = [f"{task} ({', '.join(_of_task(each, task))})" if paper else task for task in each.tasks]
            notes.append(f"tasks, scale {each.scale}: {', '.join(tasks) or 'none'}")
            for reason in dict.fromkeys(each.left_out.values()) if paper else ():
                names = ", ".join(variant for variant, why_not in each.left_out.items() if why_not == reason)
                notes.append(f"left out at {each.scale}: {names}: {_line(reason)}")
        console.print(table)
        for note in notes:
            console.print(Text(note, style="dim"))
        console.print()


def _of_task(settings: ScaleFile, task: str) -> list[str]:
    return [variant for variant in settings.judged() if settings.task_of(variant) == task]


def state(settings: ScaleFile, variant: str) -> tuple[str, str]:
    """How many seeds of a variant have a checkpoint, metrics, and are to be, for a table; why it was not run, if so."""
    if variant not in settings.judged():
        return LEFT_OUT, ""
    config, folder = settings.run(variant), settings.folder(variant)
    name = f"{config.evaluation.checkpoint}.ckpt"
    trained = sum((folder / "train" / f"seed{seed}" / "checkpoints" / name).is_file() for seed in config.seeds)
    found = RunResults.load(folder) if (folder / "metrics.json").exists() else None
    judged = len({*found.seeds} & {*config.seeds}) if found else 0
    not_run = f"was not run: {found.not_run}" if found and found.not_run is not None else ""
    return f"{trained}/{judged} of {len(config.seeds)}", not_run
