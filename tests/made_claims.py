"""A made-up list of claims beside the facts of a paper, for tests of reports: no paper's own claims are needed."""

from pathlib import Path

import yaml

REPLICATIONS = Path(__file__).parents[1] / "replications"


def compared(kind, metric, *variants, relevant=0.05, **more):
    """A primary comparison."""
    base = {"kind": kind, "metric": metric, "variants": list(variants), "relevant": relevant}
    return base | {"because": "it is made up"} | more


def claim(number=1, *, primary=None, **more):
    """A claim; with neither primary comparison nor identities nothing decides it."""
    if primary is None and "identities" not in more:
        more = {"not_decided": {"all": "no run could"}} | more
    content = {"id": f"T99-C{number}", "statement": f"Statement {number}.", "where": f"Section {number}",
               "in_paper": {"text": f"result {number}"}} | more  # fmt: skip
    return content | ({} if primary is None else {"primary": primary})


def entry(name="T99-C1", verdict="reproduced", at="quick", **lead):
    """An entry of claims.json of a report at the scale ``at``, as far as summaries read it."""
    lead = {"kind": "greater", "scale": "plain", "effect": 6.0, "relevant": 2.0, "interval": (4.0, 8.0), "unit": "BLEU",
            "seeds": [1, 2, 3, 4, 5], "paper": None} | lead  # fmt: skip
    return {"id": name, "paper": "P", "statement": "s", "verdict": verdict, "how": "", "in_short": None, "lead": lead,
            "evidence": "generated", "budget": "one budget", "agreeing": 0, "supporting": 0,
            "scale": at}  # fmt: skip


def paper_folder(folder: Path, *claims, paper="bahdanau", **more) -> Path:
    """Write claims.yaml beside a copy of the paper.yaml of ``paper``; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "paper.yaml").write_text((REPLICATIONS / paper / "paper.yaml").read_text(encoding="utf-8"))
    (folder / "claims.yaml").write_text(yaml.safe_dump({"claims": list(claims), **more}), encoding="utf-8")
    return folder
