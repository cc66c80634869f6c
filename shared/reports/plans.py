"""What a report says of the frozen plan, of the settings that were tried before, and whether its runs are of today."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.claims.attempts import Ledger
from shared.claims.outcomes import Decision
from shared.reports.document import Block, Bullets, Details, Paragraph, Table, code, typeset
from shared.reports.exhibits import Results
from shared.reports.verdicts import paragraphs, say

TRAINED_BY = ("corpus", "model", "training")
"""Sections of a run's settings that its weights depend on; judging is done again whenever its own change."""


@dataclass(frozen=True)
class Frozen:
    """The plan of a scale.

    Attributes:
        plan: content of plan.json; None where none was frozen.
        search: content of search.json; None where nothing was searched.
        changed: claim to what deciding has changed since the plan was frozen; None where there is no plan.
        used: key of a setting and variant that was tried to the value in the settings that are reported.
        reasons: why a variant does not have what was best of it, or was not tried itself, a sentence each.
        ledger, untuned, confirming: see :func:`shared.claims.verdicts.decide`.
    """

    plan: Mapping[str, Any] | None = None
    search: Mapping[str, Any] | None = None
    changed: Mapping[str, tuple[str, ...]] | None = None
    used: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    reasons: Sequence[str] = ()
    ledger: Ledger = field(default_factory=Ledger)
    untuned: Mapping[str, str] | None = None
    confirming: Mapping[str, Sequence[int]] | None = None

    def known(self) -> dict[str, Any]:
        """What deciding asks of it."""
        return {key: getattr(self, key) for key in ("changed", "ledger", "untuned", "confirming")}


def plan_blocks(frozen: Frozen, claims: Collection[str]) -> list[Block]:
    """When the plan was frozen, and a folded table of what was tried.

    Args:
        frozen: the plan.
        claims: that the report judges.
    """
    plan, search = frozen.plan or {}, frozen.search
    of_claims = plan.get("claims", {})
    plans = [each["frozen"][-1] for claim, each in of_claims.items() if claim in claims and each.get("frozen")]
    said = say(
        "frozen", plan=plan, plans=plans, days=sorted({str(each["date"])[:10] for each in plans or [plan] if each}),
        dropped=[claim for claim in of_claims if claim not in claims],
        changed=[claim for claim, what in (frozen.changed or {}).items() if what and plan],
    )  # fmt: skip
    if search is None:
        return [Paragraph(said)]
    intro = "Loss at the last validation of a training, the mean over pilot seeds; no test data were used."
    tables = [part for group in search["groups"] for part in _tried(group, frozen.used)]
    reasons = [Bullets(frozen.reasons)] if frozen.reasons else []
    return [Paragraph(said), Details("Settings that were tried before", [Paragraph(intro), *tables, *reasons])]


def since_frozen(frozen: Frozen, decision: Decision, records: Sequence[Mapping[str, Any]]) -> str:
    """Whether the plan of a claim was kept, how many of the runs that decide are older, and which plans it replaced.

    Args:
        frozen: the plan.
        decision: on the claim.
        records: of the runs behind it, see :func:`deciding_records`.
    """
    if frozen.plan is None:
        return "none was frozen before the runs"
    plans = frozen.plan["claims"].get(decision.claim.id, {}).get("frozen") or [frozen.plan]
    older = sum(record.get("finished", "9") < plans[-1]["date"] for record in records)
    return say("kept", plans=plans, changed=decision.changed, older=older, runs=len(records))


def deciding_records(decision: Decision, results: Results) -> list[Mapping[str, Any]]:
    """The records on this machine of the runs behind a verdict: of the seeds that decide, and of twice the updates."""
    if decision.lead is None:
        return []
    primary = decision.claim.primary
    runs = [(results[name], decision.lead.seeds) for name in decision.lead.variants]
    runs += [(results[name], results[name].seeds) for name in (primary.doubled if primary else ()) if name in results]
    return [run.runs[seed] for run, seeds in runs for seed in seeds if seed in run.runs]


def _tried(group: Mapping[str, Any], used: Mapping[tuple[str, str], Any]) -> tuple[Block, Block]:
    rows = []
    for variant, found in group["variants"].items():
        losses = ["diverged" if each["loss"] is None else typeset(f"{each['loss']:.3g}") for each in found["trials"]]
        end = end_of(group["values"], found["best"])
        best = f"{found['best']}, the {end} tried" if end else str(found["best"])
        rows.append([code(variant), *losses, best, str(used.get((group["key"], variant), "–"))])
    pilots = dict.fromkeys(seed for found in group["variants"].values() for seed in found["trials"][0]["seeds"])
    intro = Paragraph(say("trials", group=group, pilots=[*pilots]))
    return intro, Table(("Variant", *map(str, group["values"]), "Best", "Used"), rows)


def end_of(values: Sequence[Any], best: Any) -> str:
    """Which end of the numbers that were tried the best one is, "smallest" or "largest"; empty for one in between."""
    numbers = [value for value in values if type(value) in (int, float)]
    if best not in numbers or min(numbers) < best < max(numbers):
        return ""
    return "largest" if best == max(numbers) else "smallest"


def standing(results: Results, settings: Mapping[str, Mapping[str, Any]]) -> list[Block]:
    """A sentence that says that the runs are of clean commits and today's settings, and judged, or which are not.

    Args:
        results: of all variants.
        settings: variant to its settings of today, as they are recorded with a run.
    """
    if not any(run.runs for run in results.values()):
        return []
    records = {name: [*run.runs.values()] for name, run in results.items()}
    said = paragraphs(
        "standing",
        dirty=[name for name, of in records.items() if any(each.get("git_dirty") for each in of)],
        unknown=[name for name, of in records.items() if any(not each.get("git_commit") for each in of)],
        stale=[name for name, of in records.items() if name in settings and _is_stale(of, settings[name])],
        again=[name for name, run in results.items() if run.is_trained_again],
    )
    return [Paragraph(each) for each in said]


def _is_stale(records: Sequence[Mapping[str, Any]], today: Mapping[str, Any]) -> bool:
    """Whether a run was trained with other settings than those of today."""
    return any(record["parameters"][key] != today[key] for record in records for key in TRAINED_BY)
