"""What reports say of verdicts: how they, effects and tests are written, and the sentences of all pages."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any

from shared.claims import rules
from shared.claims.attempts import can_decide
from shared.claims.comparisons import Exact, Floor, Row
from shared.claims.outcomes import SORTS, VERDICTS, better, disagree
from shared.claims.words import number_of
from shared.metrics.registry import known, measure
from shared.records import read_json
from shared.reports import document as doc
from shared.reports import naming, paper
from shared.reports.document import MINUS, SPACE, badge, link, number, plain, signed, typeset
from shared.reports.page import templates

KINDS = {
    "generated": "data generated for the purpose", "own data": "data of a user's own",
    "standard data": "standard data", "paper's data": "the paper's own data",
    "measured": "measurements of time, memory or error", "identity": "identities of mathematics",
}  # fmt: skip
"""Kind of evidence to its name in sentences on the limits of verdicts; models are trained for all but the last two."""
UNTESTED, OURS = "not tested", "claim of our own"
MANY = {"identity": "identities", OURS: "claims of our own"}
COLUMNS = ("Claim", "What was tested", "Verdict", "Effect", "Evidence")
ALIGN = "ltlll"
BUDGETS = {
    "survives doubling": "same with twice the training",
    "depends on the budget": "other with twice the training",
}
"""What twice the training says of a verdict, in words; nothing where it was not tried."""
SPACES = re.compile(r"[ \n]+")  # but for those that do not break
HYPHEN = re.compile(r"(?<![^\s\[])-(?=\d)")  # that stands for a minus; those within names stay
Entry = Mapping[str, Any]
"""An entry of claims.json, or one of its outcomes."""


def say(what: str, **of: Any) -> str:
    """What the macro ``what`` of ``templates/sentences.j2`` says of these values, on one line."""
    return SPACES.sub(" ", getattr(_macros(), what)(**of)).strip()


def paragraphs(what: str, **of: Any) -> list[str]:
    """The same, cut where there are empty lines."""
    parts = re.split(r"\n\s*\n", getattr(_macros(), what)(**of))
    return [SPACES.sub(" ", part).strip() for part in parts if part.strip()]


@cache
def _macros() -> Any:
    environment = templates("shared.reports")
    for names in (vars(doc), vars(naming), vars(paper), vars(rules), globals()):
        environment.globals |= {name: value for name, value in names.items() if not name.startswith("_")}
    environment.filters |= {
        "called": naming.name_and_code, "hash": lambda commit: doc.code(doc.hash_text(commit)),
        "minus": lambda said: HYPHEN.sub(MINUS, said),
    }  # fmt: skip
    return environment.get_template("sentences.j2").module


def counts_by_sort(entries: Iterable[Entry]) -> str:
    """How often there is each verdict, for each sort of evidence; what is not the papers' own and not decided apart."""
    groups: dict[str, list[str]] = {sort: [] for sort in (*SORTS, OURS, UNTESTED)}
    for entry in entries:
        lead = entry["lead"]
        own = UNTESTED if lead is None else "identity" if lead["kind"] == "exact" else entry.get("sort", SORTS[0])
        sort = OURS if entry.get("ours") else own
        groups[sort].append(entry["verdict"])
    return say("counts_by_sort", untested=len(groups.pop(UNTESTED)), groups=groups)


def counts_text(verdicts: Iterable[str]) -> str:
    """How often each verdict is among them, in words."""
    counts = Counter(verdicts)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])


def in_short(entry: Entry) -> str:
    """The short form of a claim; its statement where an older report has none."""
    return str(entry.get("in_short") or entry["statement"])


def claim_row(entry: Entry, page: str = "") -> list[str]:
    """Cells for one entry of claims.json: badge, effect and evidence are of the one comparison that decides.

    A reproduced claim has a warning where most of the comparisons that only support it do not.

    Args:
        entry: of claims.json.
        page: with the claim's card; by default the same.
    """
    warned = entry["verdict"] == "reproduced" and 2 * entry["agreeing"] < entry["supporting"]
    named, words = link(entry["id"], f"{page}#{entry['id']}"), doc.sentence(in_short(entry))
    strength = [evidence_text(entry), attempts_text(entry), supporting_text(entry) if warned else ""]
    return [named, words, verdict_text(entry), found_text(entry), "; ".join(filter(None, strength))]


def verdict_text(entry: Entry) -> str:
    """The badge, and what kind of contradicted or inconclusive it is; of a verdict in part, what is not reproduced."""
    how, holds = entry["how"], ("reproduced", "verified")
    if entry["verdict"] == "in part":
        how = f"not shown: {'; '.join(each['says'] for each in entry['parts'] if each['verdict'] not in holds)}"
    return badge(entry["verdict"]) + (f": {how}" if how else "")


def evidence_text(entry: Entry) -> str:
    """Sort, data, how many seeds there were, and whether twice the training agrees; "–" if nothing decides."""
    lead = entry["lead"]
    if lead is None or lead["kind"] == "exact":
        return "–" if lead is None else "identity"
    seeds = number_of(len(lead["seeds"]) + lead.get("pooled", 0), "seed")
    said = (entry.get("sort"), entry["evidence"], seeds, BUDGETS.get(entry["budget"]), entry.get("confirmed"))
    return ", ".join(filter(None, said))


def attempts_text(entry: Entry) -> str:
    """Which attempt at the claim this is, and what the earlier ones came to; empty for the first, and for none."""
    if entry["lead"] is None or not entry.get("before"):
        return ""
    return f"attempt {entry['attempt'] or len(entry['before']) + 1}; before: {counts_text(entry['before'])}"


def supporting_text(entry: Entry) -> str:
    """How many of the comparisons that only support a claim agree with it."""
    many = "supporting comparisons agree"
    return f"{entry['agreeing']} of {number_of(entry['supporting'], 'supporting comparison agrees', many)}"


def found_text(entry: Entry) -> str:
    """For an entry of claims.json the effect that decides, or how many identities hold; "–" where there is neither."""
    lead = entry["lead"]
    if lead is None or lead["kind"] != "exact":
        return "–" if lead is None else effect_text(lead)
    verdicts = [row["verdict"] for row in entry["comparisons"] if row["deciding"]]
    return f"{verdicts.count('verified')} of {len(verdicts)} hold"


def effect_text(outcome: Entry) -> str:
    """The effect with its unit, then its interval in brackets; where it is counted from a threshold, what was measured.

    claims.json says what an effect is counted from only where that is not 0.
    """
    if outcome["effect"] is None:
        return "–"
    shown, ends = with_unit(amount(outcome, outcome["effect"]), outcome), outcome["interval"] or ()
    threshold = f" (threshold {outcome['base'].split()[1]})" if outcome.get("base") else ""
    ordered = [amount(outcome, end) for end in sorted(ends, key=lambda end: _measured(outcome, end))]
    return (doc.with_ends(shown, ordered) if len({*ordered}) > 1 else shown) + threshold


def seeds_needed(outcome: Entry) -> int | None:
    """How many seeds would decide what is open, if the estimate and their spread stayed; None if no number would.

    A test's distance from its bound, in standard errors, grows with the root of the number of seeds. How p-values are
    corrected stays as it is; one that is corrected to 1 may need more.
    """
    tests, now = outcome["tests"], len(outcome["seeds"]) + outcome.get("pooled", 0)
    if outcome["verdict"] != "inconclusive" or tests is None or not can_decide(outcome["seeds"]):
        return None
    test = min(("above", "below"), key=tests.get) if tests["matters"] else "below"
    p, at = max(1e-12, tests[test]), NormalDist().inv_cdf
    wanted = at(1.0 - rules.ALPHA / 2.0 * p / max(p, tests[f"{test}_holm"] or p))
    return max(now + 1, math.ceil(now * (wanted / at(1.0 - p)) ** 2)) if p < 0.4 else None


def with_unit(shown: str, outcome: Entry) -> str:
    """A number and what it is of; the effects of comparisons on the log scale are ratios."""
    unit = "times" if outcome["scale"] == "log" else outcome["unit"]
    one = shown.strip(f"+{MINUS}±{SPACE}") == "1"
    return f"{shown}{SPACE}{unit.replace('points', 'point') if one else unit}" if unit else shown


def amount(outcome: Entry, value: float) -> str:
    """An effect as a number, as fine as what matters, to two digits, or as its interval is wide, to one more; or an
    identity's."""
    if outcome["kind"] == "exact":
        return number(value)
    low, high = outcome["interval"] or (0.0, 0.0)
    wide = (high - low) / 4.0
    spread = wide > 1e-6 * max(abs(low), abs(high))  # else rounding is all there is
    digits = 1 + _places(outcome["relevant"] - (outcome["scale"] == "log"))
    if spread:  # two digits of it are the most that mean anything, and one more than of what matters
        digits = min(max(digits, _places(wide)), 1 + _places(wide), 1 + digits)
    show = plain if outcome["scale"] == "log" or outcome.get("base") else signed
    return show(_measured(outcome, value), min(6, digits))


def _measured(outcome: Entry, value: float) -> float:
    """An effect that is counted from a threshold, as measured; claims.json says that only where it is not 0."""
    side, _, threshold = outcome.get("base", "").partition(" ")
    return value if not side else float(threshold) + (value if side == "above" else -value)


def scale_name(scale: str) -> str:
    """A scale as sentences call it."""
    return "the paper's own scale" if scale == "paper_scale" else f"{scale} scale"


def _places(size: float) -> int:
    """Of the first digit that is not 0, after the decimal point."""
    return max(-1, -math.floor(math.log10(size) + 1e-9))


def matters(outcome: Entry) -> str:
    """The smallest effect that matters, with its unit; either way, of equality."""
    shown = typeset(f"{outcome['relevant']:g}")
    if outcome["kind"] == "equal":
        shown = f"1{SPACE}/{SPACE}{shown} or {shown}" if outcome["scale"] == "log" else f"±{SPACE}{shown}"
    return with_unit(shown, outcome)


def value_text(metric: str, value: float) -> str:
    """What was measured, as score tables have it."""
    return plain(value, measure(metric).digits) if known(metric) else number(value)


def floor_text(floor: Floor, token: str = "token") -> tuple[str, str]:
    """What a floor is of, and how much is asked for."""
    word, bound = floor.bound
    return metric_title(floor.metric, token), f"{word} {value_text(floor.metric, bound)}"


def metric_title(metric: str, token: str = "token") -> str:
    """A measure's heading; the default ``token`` serves where runs have different tokens."""
    return measure(metric).title.format(token=token)


def compared_titles(row: Row, token: str = "token") -> list[str]:
    """What the quantities of a comparison are called: the first by its own ``called``, if it has one."""
    first, *others = (metric_title(metric, token) for metric in row.metrics())
    own = None if isinstance(row, Exact) else row.called
    return [own or first, *others]


def p_text(p: float | None, corrected: float | None = None) -> str:
    """A p-value, with the corrected one in brackets."""
    shown = [f"<{SPACE}0.001" if value < 0.001 else f"{value:.3f}" for value in (p, corrected) if value is not None]
    return "–" if not shown else shown[0] if len(shown) == 1 else f"{shown[0]} ({shown[1]})"


def spoken(row: Row, token: str) -> list[str]:
    """The titles of a comparison's quantities as they stand inside of a sentence: their units are said elsewhere."""
    said = []
    for title, metric in zip(compared_titles(row, token), row.metrics(), strict=True):
        title = title.removesuffix(f", {measure(metric).unit}")
        said.append(title if title[1:2].isupper() else f"{title[:1].lower()}{title[1:]}")
    return said


@dataclass(frozen=True)
class Report:
    """A report on disk, read when its claims are first asked for.

    Attributes:
        folder: where it lies, ``reports/<scale>/<paper>``.
    """

    folder: Path

    @property
    def scale(self) -> str:
        """Of its runs."""
        return self.folder.parent.name

    @property
    def paper(self) -> str:
        """The name of the paper's folder."""
        return self.folder.name

    @property
    def title(self) -> str:
        """What the paper is cited as."""
        return str(next(iter(self.claims.values())).get("paper", self.paper))

    @cached_property
    def claims(self) -> dict[str, dict[str, Any]]:
        """Claim to its entry of claims.json.

        Raises:
            ReplicationError: it cannot be read.
        """
        entries = read_json(self.folder / "claims.json", "run its report stage again", list)
        return {entry["id"]: entry for entry in entries}

    def page(self, base: Path) -> str:
        """Its page, relative to the folder ``base`` of another page."""
        return doc.relative(self.folder / "README.md", base)


def claims_of(folder: Path) -> list[dict[str, Any]]:
    """The entries of a report's claims.json; none where there is no report."""
    return [*Report(folder).claims.values()] if (folder / "claims.json").is_file() else []


def disagreement(entries: Sequence[Entry]) -> str | None:
    """A sentence, if decided verdicts on a claim differ between scales."""
    if not disagree(entries):
        return None
    ordered = sorted(entries, key=lambda entry: rules.SCALES.index(entry["scale"]))
    return say("disagreement", best=better(entries), entries=ordered)
