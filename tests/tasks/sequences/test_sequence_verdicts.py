"""Claims on models of separate sequences: test sequences are resampled, and every test split can decide."""

import json

import numpy as np
import pytest

from shared.claims.results import load_results
from shared.claims.schema import Claims
from shared.claims.verdicts import decide
from shared.errors import ReplicationError
from shared.reports.report import write_report
from shared.tasks.examples import write_records
from shared.tasks.sequences.report import REPORT
from tests import made_claims
from tests.made_claims import claim, paper_folder

SEEDS, SEQUENCES = (1, 2, 3, 4, 5), 60
SPLITS = ("test", "test_families")
MODELS = {"exact": (0.3, 0.2), "relu": (0.33, 0.17), "unstable": (0.15, 0.1)}
"""Share of letters that are predicted rightly, on either split."""
TASKS = {"proteins": "residue", "pictures": "pixel", "copy": "symbol"}


def sequences(name, task, rng):
    """Of 50 symbols; some are harder than others for every model."""
    for split, right in zip(SPLITS, MODELS[name], strict=True):
        hard = np.random.default_rng(0).normal(0, 0.03, SEQUENCES)
        shares = (right + hard + rng.normal(0, 0.01, SEQUENCES)).clip(0, 1)
        for number, share in enumerate(shares):
            row = {"id": f"{split}-{number}", "split": split, "nll": 50 * (3 - 2 * share), "tokens": 50,
                   "unit": TASKS[task], "units": 50, "length": 50}  # fmt: skip
            if task == "copy":
                row["hits"] = 50 if number % 3 < 1 + (name == "exact") else 49
            if task == "proteins":
                row |= {"hits": round(50 * share), "baseline": [50 * 2.9, 5], "undefined": 7 * (name == "unstable")}
                if name == "exact" and split == "test":
                    row["swapped"] = {"positive": [50 * 3.5, round(25 * share)]}
            yield row


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for task, unit in TASKS.items():
        for name in MODELS:
            variant, scores = f"{task}-{name}", {}
            for seed in SEEDS:
                rows = list(sequences(name, task, np.random.default_rng(seed)))
                splits = {split: [row for row in rows if row["split"] == split] for split in SPLITS}
                scores[str(seed)] = write_records(folder / variant / f"evaluation/seed{seed}", splits)
            head = {"variant": variant, "task": task, "seeds": scores, "mean": scores["1"], "token": unit}
            (folder / variant / "metrics.json").write_text(json.dumps(head))
    return folder


def compared(kind, metric, first="relu", second="exact", task="proteins", relevant=0.01, **more):
    return made_claims.compared(kind, metric, f"{task}-{first}", f"{task}-{second}", relevant=relevant, **more)


def alone(kind, metric, than):
    return made_claims.compared(kind, metric, "proteins-exact", than=than, relevant=0.01)


def decided(primary, results):
    (decision,) = decide(Claims.model_validate({"claims": [claim(primary=primary)]}), results, "quick")
    return decision


def test_reports_have_what_was_measured_on_every_split(runs, tmp_path):
    paper = paper_folder(tmp_path / "papers/bahdanau", claim())
    write_report(paper, runs, tmp_path / "quick" / "bahdanau", scale="quick", kind=REPORT)
    page = (tmp_path / "quick" / "bahdanau" / "README.md").read_text(encoding="utf-8")
    tables = page.split("### Task `")[1:]
    rows = {task[: task.index("`")]: [line for line in task.splitlines() if line[:1] == "|"] for task in tables}
    split = next(i for i, line in enumerate(rows["proteins"]) if "split test_families" in line)
    own, further = " ".join(rows["proteins"][:split]), " ".join(rows["proteins"][split:])
    for title in ("Perplexity per residue, same weights in positive", "Predictions that are no number"):
        assert title in own
    assert "same weights" not in further
    assert rows["pictures"][0].count("|") == 5  # variant, parameters, updates, bits
    second = [line for line in rows["proteins"][split:] if "proteins-relu" in line][1]
    assert second.split("|")[2].strip(" *").startswith("17.")


def test_relatives_are_drawn_together(runs):
    """Four times as many relatives are worth no more; as independent examples they would halve the interval."""
    widths = []
    for copies, related in ((1, False), (4, True), (4, False)):
        results = load_results(runs)
        run = results["proteins-exact"]
        for seed, rows in run.examples.items():
            kin = [{"family": row["id"]} if related else {} for row in rows]
            run.examples[seed] = [row | of for row, of in zip(rows, kin, strict=True) for _ in range(copies)]
        lead = decided(alone("greater", "token_accuracy", 0.0), results).lead
        assert lead.n == copies * SEQUENCES
        assert lead.drawn_of == ("families" if related else "examples")
        widths.append(lead.interval[1] - lead.interval[0])
    assert widths[1] == pytest.approx(widths[0], rel=0.05)
    assert widths[2] < 0.7 * widths[0]


def test_there_are_no_slopes_over_families(runs):
    results = load_results(runs)
    for name in ("proteins-exact", "proteins-relu"):
        for rows in results[name].examples.values():
            for row in rows:
                row["family"] = "F"
    with pytest.raises(ReplicationError, match="no slopes over examples that have families"):
        decided(compared("less", "token_accuracy", over={"covariate": "nll", "bins": 2}), results)
