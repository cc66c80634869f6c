"""The command ``compare``: of variants, scales, folders and revisions of a made-up project."""

import contextlib
import io
import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from shared.pipeline.compare import compare_stage
from tests.refused import assert_refused
from tests.reports.drawing import amiss
from tests.synthetic_runs import Variant, build

GIT = ("git", "-c", "user.name=x", "-c", "user.email=x@example.org")
VARIANTS = {"good": Variant("generated", 0.98), "poor": Variant("generated", 0.9)}
TASK = {"corpus": {"dataset": "toy", "tokenizer": {"size": 10}}, "model": {}, "seeds": [1]}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A checkout with two revisions; the second has longer training, other runs of ``poor`` and another verdict."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    (tmp_path / ".gitignore").write_text("evaluation/\ntrain/\nreports/comparisons\n")
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "before the runs"], ["tag", "empty"]):
        git(command)
    made(VARIANTS, updates=400, verdict="inconclusive")
    git(["tag", "first"])
    made(VARIANTS | {"poor": Variant("generated", 0.95)}, updates=800, verdict="reproduced")
    return tmp_path


def made(variants, *, updates, verdict, scale="quick"):
    build(Path("runs") / scale / "toy", variants, examples=60)
    scaled = {"tasks": {"generated": TASK | {"training": {"updates": updates}}}}
    scaled["variants"] = {name: {"task": "generated"} for name in variants}
    identities = {"kind": "translation", "variants": {name: {"model": {"kind": name}} for name in variants}}
    claim = {"id": "T-C1", "verdict": verdict, "how": "", "lead": None, "statement": "Good is better."}
    files = {
        f"replications/toy/{scale}/params.yaml": yaml.safe_dump(scaled),
        "replications/toy/variants.yaml": yaml.safe_dump(identities),
        f"runs/{scale}/toy/fetched/generated.json": json.dumps({"files": {"test": "a"}}),
        f"reports/{scale}/toy/claims.json": json.dumps([claim]),
    }
    if scale == "quick":  # what the train stage leaves beside the seeds' curves, which git does not keep
        curve = f"update,valid_loss\n100,2.0\n{updates},1.0\n"
        files |= {f"runs/quick/toy/{name}/curve.csv": curve for name in variants}
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    git(["add", "-A"])
    git(["commit", "-q", "-m", "runs"])


def git(command):
    subprocess.run([*GIT, *command], check=True, capture_output=True)


def said(*names, scale="quick", **options):
    with contextlib.redirect_stdout(io.StringIO()) as file:
        compare_stage(names[0], scale, other=names[1], **options)
    return re.sub(r"\s*\n\s*", "\n", re.sub(" +", " ", file.getvalue().replace("─", "")))


def test_revisions(project):
    printed = said("first", "HEAD")
    assert "2 variants are compared, 1 of them with the same numbers in every seed." in printed
    assert "toy.good, toy.poor\nSetting first (quick) HEAD (quick)\ntraining.updates 400 800" in printed
    assert "3 paired seeds" in printed
    assert "3 paired seeds," not in printed  # a revision has no examples
    assert "toy.poor: " not in printed  # a single table is not folded
    assert "T-C1 ? inconclusive – ✔ reproduced –" in printed
    folder = project / "reports" / "comparisons" / "first-quick--head-quick"
    assert printed.rstrip().endswith("reports/comparisons/first-quick--head-quick/index.html")
    assert 'src="figures/loss_toy.poor--toy.poor.svg"' in (folder / "index.html").read_text()
    assert (folder / "figures" / "loss_toy.poor--toy.poor.png").stat().st_size > 1000
    assert not (folder / "figures" / "loss_toy.good--toy.good.png").exists()
    (folder / "figures" / "stale.png").write_bytes(b"left over")
    said("first", "HEAD")
    assert amiss(folder) == []


def test_a_revision_and_itself(project):
    printed = said("HEAD", "HEAD")
    assert "2 variants are compared, 2 of them with the same numbers in every seed." in printed
    for nothing in ("No setting differs.", "No measure differs.", "No verdict differs."):
        assert nothing in printed


def test_variants_are_compared_on_their_examples(project):
    printed = said("toy.good", "toy.poor")
    assert "model.kind good poor" in printed
    assert "3 paired seeds, 50 examples" in printed
    assert "Verdicts" not in printed
    bleu = next(line for line in printed.splitlines() if line.startswith("BLEU ↑"))
    metrics = (json.loads((project / f"runs/quick/toy/{name}/metrics.json").read_text()) for name in VARIANTS)
    good, poor = (each["mean"]["bleu"] for each in metrics)
    assert f"BLEU ↑ {good:.2f} {poor:.2f} −{good - poor:.2f} [" in bleu


def test_comparisons_at_two_scales_do_not_overwrite_each_other(project):
    made(VARIANTS, updates=100, verdict="reproduced", scale="smoke")
    for left, right in (("toy.good", "toy.poor"), ("HEAD", "HEAD")):
        for scale in ("quick", "smoke"):
            assert f"{left} ({scale}) and {right} ({scale})" in said(left, right, scale=scale)
    assert len(list((project / "reports" / "comparisons").glob("*/index.html"))) == 4


def test_a_folder_and_other_data(project, tmp_path):
    made(VARIANTS, updates=100, verdict="reproduced", scale="smoke")
    (project / "runs/smoke/toy/fetched/generated.json").write_text(json.dumps({"files": {"test": "b"}}))
    for name in ("smoke", "runs/smoke", "runs/smoke/toy"):
        printed = said("quick", name)
        assert "T-C1" not in printed
        assert "test data that differ or are not known" in printed


def test_runs_that_share_no_measure_are_not_called_equal(project):
    for name, metric in (("good", "bleu"), ("poor", "accuracy")):
        path = project / f"runs/quick/toy/{name}/metrics.json"
        found = json.loads(path.read_text())
        found["seeds"] = {seed: {metric: 1.0} for seed in found["seeds"]}
        path.write_text(json.dumps(found))
    printed = said("toy.good", "toy.poor")
    assert "No measure in common that is better one way: toy.good and toy.poor." in printed
    assert "the same numbers" not in printed


def test_what_one_side_has_alone_is_named(project):
    made(VARIANTS | {"new": Variant("generated", 0.9)}, updates=800, verdict="reproduced")
    assert "Runs in HEAD (quick) alone: 1 variant\n• toy.new" in said("first", "HEAD")


@pytest.mark.parametrize(("names", "options", "message"), [
    (("smok", "quick"), {}, r"'smok' is not a variant .* \(did you mean 'smoke'\?\)"),
    (("bench", "quick"), {}, r"^'bench' has no results in runs/bench; name what has some, or"),
    (("toy.good", "quick"), {}, "a variant can be compared with a variant only"),
    (("toy.good", "toy.pool"), {}, r"quick scale has no results of toy's variant 'pool' \(did you mean 'poor'\?\)"),
    (("empty", "HEAD"), {}, "the revision 'empty' has no runs"),
    (("--upload-pack=x", "HEAD"), {}, "'--upload-pack=x' is not a variant"),
    (("quick", "quick"), {"paper": "bahdanau"}, r"^'quick' has no results of bahdanau in runs/quick;"),
    (("first", "HEAD"), {"scale": "bench"}, r"^'first' has no results in runs/bench; name what has some, or"),
])  # fmt: skip
def test_names_that_mean_nothing(project, names, options, message):
    assert_refused(message, said, *names, **options)
    assert not (project / "reports" / "comparisons").exists()
