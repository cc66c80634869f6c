"""Freezes the plan of a scale before its deciding runs."""

from __future__ import annotations

from pathlib import Path

from shared.errors import ReplicationError
from shared.pipeline.check import check_stage
from shared.pipeline.config import ScaleFile
from shared.pipeline.files import write_json
from shared.pipeline.plan import content, load_plan, plan_path, with_history
from shared.pipeline.provenance import now, revision
from shared.pipeline.search_result import unfollowed
from shared.reports.scales import claims_of


def freeze_stage(paper: str, scale: str) -> None:
    """Write ``replications/<paper>/<scale>/plan.json``.

    Raises:
        ReplicationError: something is wrong with what it would freeze, it is not committed or there is no commit, or
            settings are not those that the search found best.
    """
    check_stage(paper, scale)
    made_of = revision()
    if made_of["git_dirty"]:
        raise ReplicationError(
            f"the plan of {paper} is frozen from a clean commit; commit what has changed, then freeze it again."
        )
    if made_of["git_commit"] is None:
        raise ReplicationError(
            f"the plan of {paper} names the commit that it is frozen at, and this folder has none; commit it with git, "
            "then freeze it again."
        )
    settings = ScaleFile(paper, scale)
    if lines := unfollowed(paper, scale):
        raise ReplicationError(lines[0])
    made = {"paper": paper, "scale": scale, "commit": made_of["git_commit"], "date": now()}
    reported = claims_of(Path("reports") / scale / paper) or []
    write_json(plan_path(settings), with_history(made | content(settings), load_plan(settings), reported))
    print(f"{plan_path(settings)}: frozen at {made_of['git_commit']}.")
