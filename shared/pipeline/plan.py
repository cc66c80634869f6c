"""The plan of a scale, which ``freeze`` writes before the deciding runs: what decides every claim, in hashes.

``plan.json`` holds hashes of what decides each claim (its comparison or identities, and the floor of its task, without
the sentences that give reasons) and of all settings of each variant that decides a claim; and when that was frozen,
after which earlier plans of the claim. Later changes are allowed. They are found by comparison with the plan, and
reported beside the verdict.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.claims import rules, schema
from shared.claims.attempts import Ledger, read_ledger
from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile
from shared.pipeline.files import REPLICATIONS, write_json
from shared.pipeline.provenance import hash_of, now, revision
from shared.records import read_record

RULES = {
    "alpha": rules.ALPHA, "fewest_seeds": rules.FEWEST_SEEDS, "learned": rules.LEARNED, "left": rules.LEFT,
    "doubled_seeds": rules.DOUBLED_SEEDS,
}  # fmt: skip
PARTS = {
    "decided by": "what decides the claim", "floor": "the floor of its task",
    "further": "what decides further parts of the claim, or must show an effect",
}  # fmt: skip
"""What is hashed of a claim."""
SAID = {"because", "paper"}  # decides nothing: a sentence may be corrected without a new plan
PLAN = {"commit": str, "date": str, "rules": dict, "claims": dict, "variants": dict}
SEARCH = {"seeds": list, "groups": list}
"""What must be in the two files."""


def freeze_stage(paper: str, scale: str) -> None:
    """Write ``replications/<paper>/<scale>/plan.json``.

    Raises:
        ReplicationError: something is wrong with what it would freeze, it is not committed or there is no commit, or
            settings are not those that the search found best.
    """
    from shared.pipeline.check import check_stage
    from shared.pipeline.search import unfollowed
    from shared.reports.verdicts import claims_of

    check_stage(paper, scale)
    made_of, settings = revision(), ScaleFile(paper, scale)
    if made_of["git_dirty"] or made_of["git_commit"] is None:
        raise ReplicationError(f"the plan of {paper} is frozen from a clean commit; commit what has changed first.")
    if lines := unfollowed(paper, scale):
        raise ReplicationError(lines[0])
    made = {"paper": paper, "scale": scale, "commit": made_of["git_commit"], "date": now()}
    reported = claims_of(Path("reports") / scale / paper)
    write_json(plan_path(settings), with_history(made | content(settings), load_plan(settings), reported))
    print(f"{plan_path(settings)}: frozen at {made_of['git_commit']}.")


def plan_path(settings: ScaleFile) -> Path:
    """``replications/<paper>/<scale>/plan.json``."""
    return settings.path.with_name("plan.json")


def found_path(settings: ScaleFile) -> Path:
    """``replications/<paper>/<scale>/search.json``."""
    return settings.path.with_name("search.json")


def load_plan(settings: ScaleFile) -> dict[str, Any] | None:
    """The frozen plan; None where there is none.

    Raises:
        ReplicationError: it cannot be read.
    """
    return _read(plan_path(settings), f"freeze {settings.paper} --scale {settings.scale}", PLAN)


def load_found(settings: ScaleFile) -> dict[str, Any] | None:
    """What the search found, ``search.json``; None where there was none.

    Raises:
        ReplicationError: it cannot be read.
    """
    return _read(found_path(settings), f"search {settings.paper} --scale {settings.scale}", SEARCH)


def _read(path: Path, command: str, parts: Mapping[str, type]) -> dict[str, Any] | None:
    return read_record(path, f"run 'python -m shared.pipeline {command}' again", parts) if path.exists() else None


def content(settings: ScaleFile) -> dict[str, Any]:
    """What a plan of these settings holds, beside commit and date."""
    claims = schema.load_claims(REPLICATIONS / settings.paper / "claims.yaml", settings.scale)
    decided = {claim.id: _decided(claims, claim, settings) for claim in claims.claims}
    names = sorted({name for part in decided.values() for name in part["variants"]})
    variants = {name: hash_of(_settings_of(settings, name)) for name in names}
    searched = None if (search := load_found(settings)) is None else hash_of(search)
    return {"rules": {**RULES}, "claims": decided, "variants": variants, "search": searched}


def _settings_of(settings: ScaleFile, name: str) -> dict[str, Any]:
    """All settings of a variant, but for the seeds that are to confirm a verdict."""
    dumped = settings.run(name).model_dump(mode="json")
    return dumped | {"seeds": [seed for seed in dumped["seeds"] if seed < rules.CONFIRMING]}


def with_history(
    plan: Mapping[str, Any], before: Mapping[str, Any] | None, reported: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """A plan in which each claim has ``frozen``: when its own plan was, and before it the plans that this replaced.

    Args:
        plan: what is frozen now, with commit and date.
        before: the plan that it replaces; a claim that nothing has changed for keeps what that says of it. Plans of
            claims that are no more stand under ``dropped``, for they may come back.
        reported: entries of the report's claims.json; a plan that is replaced keeps the verdict that it came to.
    """
    verdicts, at = {entry["id"]: entry for entry in reported}, {key: plan[key] for key in ("commit", "date")}
    before = before or {"rules": {}, "claims": {}}
    past, claims = dict(before.get("dropped", {})), {}
    past |= {claim: then["frozen"] for claim, then in before["claims"].items()}
    for claim, decided in plan["claims"].items():
        frozen = [*past.pop(claim, ())]
        if decided["variants"] and (not frozen or _changed_rules(before, plan) or _changed(claim, before, plan)):
            entry = verdicts.get(claim, {})
            if frozen and (entry.get("ended") or "") > frozen[-1]["date"]:  # runs that ended after it have been judged
                frozen[-1] = frozen[-1] | {"verdict": str(entry["verdict"])}
            frozen.append(at)
        seeds = {"confirming": draw_seeds(frozen[-1]["commit"])} if frozen else {}
        claims[claim] = {**decided, "frozen": frozen, **seeds}
    return {**plan, "claims": claims, "dropped": {claim: frozen for claim, frozen in past.items() if frozen}}


def draw_seeds(commit: str) -> list[int]:
    """The seeds that are to confirm the verdicts on claims: nobody can choose them, for their plan's commit does."""
    return sorted(random.Random(commit).sample(range(rules.CONFIRMING, 10 * rules.CONFIRMING), rules.FEWEST_SEEDS))


def confirming(plan: Mapping[str, Any] | None) -> dict[str, list[int]]:
    """Claim to the seeds that are to confirm its verdict."""
    return {claim: of["confirming"] for claim, of in (plan or {"claims": {}})["claims"].items() if "confirming" in of}


def ledger_of(settings: ScaleFile) -> Ledger:
    """The ledger of a paper, with the plans and designs of its claims at a scale as they are today."""
    now = content(settings)
    plans = {
        claim: hash_of([of.get(part) for part in PARTS] + [now["variants"][name] for name in of["variants"]])[:16]
        for claim, of in now["claims"].items()
    }
    designs = {claim: of["design"] for claim, of in now["claims"].items()}
    return Ledger(read_ledger(ledger_path(settings)), plans, designs)


def ledger_path(settings: ScaleFile) -> Path:
    """``replications/<paper>/attempts.jsonl``."""
    return REPLICATIONS / settings.paper / "attempts.jsonl"


def changes(settings: ScaleFile) -> dict[str, tuple[str, ...]] | None:
    """Claim to what deciding has changed since the plan was frozen; None where there is no plan."""
    if (plan := load_plan(settings)) is None:
        return None
    now = content(settings)
    different = [f"the rule '{name}'" for name in _changed_rules(plan, now)]
    different += ["what the search found"] * (plan.get("search") != now["search"])
    return {claim: (*different, *_changed(claim, plan, now)) for claim in now["claims"]}


def _changed_rules(plan: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The rules that have changed; a rule that is younger than the plan has not."""
    return [name for name, rule in now["rules"].items() if plan["rules"].get(name, rule) != rule]


def _changed(claim: str, plan: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    then, here = plan["claims"].get(claim), now["claims"][claim]
    if then is None:
        return ["the claim was not in the plan"]
    variants = sorted({*then["variants"], *here["variants"]})
    if not variants:  # no run of this scale decides it, then as now
        return []
    different = [name for name in variants if plan["variants"].get(name) != now["variants"].get(name)]
    if all(then.get(part) == here[part] for part in ("design", "seeds")):  # they may have more, for other claims
        different = [name for name in different if name not in here["compared"]]
    parts = [PARTS[part] for part in PARTS if then.get(part) != here.get(part)]
    return parts + [f"the settings of {name}" for name in different]


def _decided(claims: schema.Claims, claim: schema.Claim, settings: ScaleFile) -> dict[str, Any]:
    """What decides one claim at the scale: its comparison or identities, the floor, the variants."""
    deciding = [row for row in (claim.primary, *claim.identities) if row is not None]
    open_here = claim.undecided_at(settings.scale) is not None
    named = [*(name for row in deciding for name in row.variants), *(claim.primary.doubled if claim.primary else ())]
    names = [] if open_here else settings.running(named)
    written = {
        task: floor.model_dump(mode="json", exclude={*SAID, "exempt", "published"}) | {"exempt": sorted(floor.exempt)}
        for task in dict.fromkeys(settings.task_of(name) for name in names)
        if (floor := claims.floors.get(task)) is not None
    }
    decided_by = hash_of([[row.model_dump(mode="json", exclude=SAID) for row in deciding], open_here])
    further: list[Any] = [row.model_dump(mode="json", exclude=SAID) for row in claim.deciding if row not in deciding]
    further += [claim.control] if claim.control else []
    compared = [*settings.running([name for row in deciding for name in row.variants])]
    models = {name: settings.run(name).model_dump(mode="json", exclude={"seeds"}) for name in compared}
    rows = [row.model_dump(mode="json", exclude={*SAID, "name", "doubled", "learned"}) for row in deciding]
    own = {"further": hash_of(further)} if further else {}
    design = hash_of([rows, written, models])[:16]
    paired = [seed for seed in settings.paired(compared) if seed < rules.CONFIRMING]
    return {
        "decided by": decided_by, "floor": hash_of(written), "variants": names, "design": design, **own,
        "compared": compared, "seeds": paired,
    }  # fmt: skip
