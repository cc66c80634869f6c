"""What the stages promise, asked of a toy paper of every kind of task: the same for all, in real worker processes."""

import csv
import json
import shutil
from itertools import islice

import pytest
import torch

from shared.claims.results import load_results
from shared.errors import ReplicationError
from shared.pipeline.__main__ import main
from shared.pipeline.config import ScaleFile
from shared.pipeline.costs import estimate
from shared.tasks.captioning.corpus import ImageBatch
from shared.tasks.kinds import load_replication
from tests.pipeline.toys import BREAKS, CANNOT_RUN, EVERY, LEFT_OUT, SEEDS, SMOKE, TOYS, UPDATES, contents, copy
from tests.tasks.captioning.squares import CAPTIONS, SPLITS

RECORD = {  # what run.json says of every run
    "git_commit", "git_dirty", "dvc_lock_sha256", "versions", "device", "cpu", "threads", "parameters", "seed",
    "fingerprint", "data_sha256", "peak_memory_mib", "processes", "parameter_count", "updates", "precision",
    "stopped_because", "wall_seconds", "processor_seconds", "process_seconds", "tokens_per_second", "best_valid_loss",
    "best_update", "checkpoints", "finished",
}  # fmt: skip


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(second[name], value) for name, value in first.items())


@pytest.fixture(params=TOYS)
def paper(request, made, tmp_path, monkeypatch):
    """A paper of each kind in a copy of its project, in which a test may change what it wants."""
    return copy(request.param, made(request.param), tmp_path / "project", monkeypatch)


def test_preparation_is_the_same_every_time_and_whole_or_as_it_was_before(paper, capsys):
    before = contents(paper.prepared)
    assert before
    paper.stage("prepare", "task")
    assert contents(paper.prepared) == before
    assert not list(paper.runs.rglob("*.partial"))
    file = paper.root / "data" / paper.name / next(iter(paper.json("fetched/task.json")["files"]))
    file.write_bytes(file.read_bytes()[::-1])
    assert "is missing or has changed" in paper.error(capsys, "prepare", "task")
    assert contents(paper.prepared) == before


def opened(paper):
    run, replication = ScaleFile(paper.name, "smoke").run("long"), load_replication(paper.name)
    return run, replication, replication.open(run, paper.prepared)


def tensors(batch):
    parts = [part for value in vars(batch).values() for part in (value if isinstance(value, tuple) else (value,))]
    return [part for part in parts if isinstance(part, torch.Tensor)]


def test_a_random_batch_is_as_large_as_one_of_the_data_and_can_be_trained_on(paper):
    run, replication, data = opened(paper)
    (real,), (batch, sizes) = islice(data.batches(run.training, 3)(0), 1), replication.part("module").random_batch(run)
    assert sizes[0] >= data.sizes[0]
    assert type(batch) is type(real)
    for ours, theirs in zip(tensors(batch), tensors(real), strict=False):  # regions may be there or not
        assert (ours.dtype, ours.dim(), len(ours)) == (theirs.dtype, theirs.dim(), run.training.batch.sentences)
    module = replication.part("module").module(replication.model(run, sizes), run, None)
    assert module.training_step(batch, 0).isfinite()
    assert module.items(batch) >= len(tensors(batch)[0])


def test_every_validation_reads_all_of_its_split_once_whatever_judging_asks_for(paper):
    run, _, data = opened(paper)
    paper.change_variant("long", evaluation=dict(paper.toy.otherwise))
    batches, others = list(data.valid(run.training)), list(data.valid(opened(paper)[0].training))
    for one, other in zip(batches, others, strict=True):
        assert all(map(torch.equal, tensors(one), tensors(other)))
    read = [batch for batch in batches if not isinstance(batch, ImageBatch)]
    if paper.kind == "language":
        assert sum(batch.tokens for batch in read) == len(data.split("valid"))
        return
    count = {"translation": 10, "classification": 12, "captioning": CAPTIONS * SPLITS["valid"]}
    assert sum(len(tensors(batch)[0]) for batch in read) == count.get(paper.kind, 20)
    if paper.kind == "captioning":
        references = [captions for batch in batches[len(read) :] for captions in batch.references]
        assert references == [tuple(own) for own in data.references("valid")]


@pytest.mark.parametrize(
    ("paper", "section", "changes", "message"),
    [
        ("language", "training", {"batch": {"sentences": 300, "length": 8}}, "need 2,400 symbols, but the"),
        ("captioning", "evaluation", {"metrics": ["bleu", "meteor"]}, "Java"),
    ],
    indirect=["paper"],
)  # fmt: skip
def test_what_a_run_will_lack_is_looked_for_before_training(paper, section, changes, message, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "/nowhere")
    paper.change(section, **changes)
    run, replication = ScaleFile(paper.name, "smoke").run("long"), load_replication(paper.name)
    with pytest.raises(ReplicationError, match=message):
        replication.train(run, prepared=paper.prepared, seed=3, folder=tmp_path / "run", fingerprint="", label="")
    assert not (tmp_path / "run").exists()


def test_training_leaves_what_is_documented_and_learns(paper):
    for seed in SEEDS:
        folder = paper.runs / "long" / "train" / f"seed{seed}"
        record = json.loads((folder / "run.json").read_text())
        assert record.keys() == RECORD
        assert (record["seed"], record["updates"], record["threads"]) == (seed, UPDATES, 1)
        assert record["checkpoints"] == ["best.ckpt", "last.ckpt"]
        assert record["data_sha256"]
        assert record["parameters"]["training"]["updates"] == UPDATES
        weights = {name: value for name, value in paper.weights(seed).items() if value.dtype.is_floating_point}
        assert 0 < record["parameter_count"] <= sum(value.numel() for value in weights.values())
        with (folder / "curve.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert rows[0].keys() == {"step", "split", "metric", "value"}
        assert {(row["split"], row["metric"]) for row in rows} >= {("train", "loss"), ("valid", "loss")}
    with (paper.runs / "long" / "curve.csv").open() as file:
        losses = {int(row["update"]): float(row["valid_loss"]) for row in csv.DictReader(file)}
    assert losses.keys() == {EVERY, UPDATES}
    assert losses[UPDATES] < losses[EVERY]
    assert not same(*(paper.weights(seed) for seed in SEEDS))


def test_evaluation_gives_metrics_and_examples_of_every_test_split(paper):
    metrics = paper.json("long/metrics.json")
    assert (metrics["variant"], metrics["task"], metrics["token"]) == ("long", "task", paper.toy.token)
    assert metrics["seeds"].keys() == {*map(str, SEEDS)}
    names = metrics["mean"].keys()
    assert all(scores.keys() == names for scores in metrics["seeds"].values())
    values = [scores[paper.toy.metric] for scores in metrics["seeds"].values()]
    assert metrics["mean"][paper.toy.metric] == pytest.approx(sum(values) / len(values))
    assert "ensemble" not in metrics
    costs = paper.json("long/evaluation/costs.json")["processor_seconds"]
    assert costs.keys() == {f"seed {seed}" for seed in SEEDS}
    assert min(costs.values()) > 0
    splits = paper.toy.task["corpus"]["test"]
    assert {f"{split}.{paper.toy.metric}" for split in splits[1:]} <= names
    for seed in SEEDS:
        examples = paper.examples(seed)
        assert len({example["id"] for example in examples}) == len(examples)
        counts = {split: sum(example["split"] == split for example in examples) for split in splits}
        assert counts == (paper.toy.count or counts)
        assert all(counts.values())
        assert sum(counts.values()) == len(examples)


def test_judging_again_gives_the_same_bytes(paper):
    files = ("metrics.json", "evaluation/seed3/examples.jsonl.gz", "evaluation/seed4/examples.jsonl.gz")
    before = [(paper.runs / "short" / name).read_bytes() for name in files]
    paper.stage("evaluate", "short")
    assert [(paper.runs / "short" / name).read_bytes() for name in files] == before


def test_other_settings_of_judging_change_neither_weights_nor_which_examples_there_are(paper, capsys):
    before = [(example["id"], example["split"]) for example in paper.examples(3)]
    paper.change_variant("long", evaluation=dict(paper.toy.otherwise))
    paper.stage("train", "long")
    assert capsys.readouterr().out.count("finished before, kept") == len(SEEDS)
    paper.stage("evaluate", "long")
    assert [(example["id"], example["split"]) for example in paper.examples(3)] == before


def test_what_does_not_belong_to_a_stage_goes_and_what_is_missing_is_made_again(paper, capsys):
    folder = paper.runs / "long" / "train"
    before = {seed: paper.weights(seed) for seed in SEEDS}
    (folder / "seed9").mkdir()
    (folder / "seed3" / "checkpoints" / "best.ckpt").unlink()
    assert "best.ckpt does not exist; run the train stage" in paper.error(capsys, "evaluate", "long")
    paper.stage("train", "long")
    assert f"{paper.name}.long seed 4: finished before, kept." in capsys.readouterr().out
    assert {path.name for path in folder.iterdir()} == {"seed3", "seed4"}
    assert same(before[3], paper.weights(3))


def test_changed_parameters_start_anew_and_batches_of_one_are_trained_and_judged(paper, capsys):
    paper.change("model", size=13)
    paper.change("training", batch=paper.toy.task["training"]["batch"] | {"sentences": 1})
    paper.stage("train", "short")
    assert capsys.readouterr().out.count("parameters, data or code have changed") == len(SEEDS)
    assert any(13 in value.shape for value in paper.weights(3, "short").values())
    assert [paper.json(f"short/train/seed{seed}/run.json")["updates"] for seed in SEEDS] == [2, 2]
    paper.stage("evaluate", "short")
    measured = json.dumps(paper.json("short/metrics.json"))
    assert paper.toy.metric in measured
    assert "NaN" not in measured
    assert "Infinity" not in measured


def test_a_killed_run_continues_to_the_same_weights(paper, capsys):
    before = {seed: paper.weights(seed) for seed in SEEDS}
    shutil.rmtree(paper.runs / "long" / "train")
    paper.breaks("killed", seed=4)
    assert f"{paper.name}.long seed 4: its process was killed by SIGKILL" in paper.error(capsys, "train", "long")
    (paper.root / BREAKS).unlink()
    paper.stage("train", "long")
    printed = capsys.readouterr().out
    assert f"seed 4: continuing from update {EVERY}." in printed
    assert "seed 3: finished before, kept." in printed
    assert all(same(before[seed], paper.weights(seed)) for seed in SEEDS)


def test_generated_data_are_drawn_anew_for_each_seed_where_a_task_asks_for_it(paper, capsys):
    paper.change("corpus", draws="each_seed")
    if paper.kind == "captioning":  # photographs and scenes are one set, whose features are computed once
        return
    before = paper.examples(SEEDS[0])
    paper.stage("prepare", "task")
    for stage in ("train", "evaluate"):
        paper.stage(stage, "long", "short", "elsewhere")
    first, second = (contents(paper.runs / "drawn" / "task" / f"seed{seed}") for seed in SEEDS)
    assert first.keys() == second.keys() > contents(paper.prepared).keys()
    assert len({json.dumps(given) for given in map(str, (before, *map(paper.examples, SEEDS)))}) == 3
    assert load_results(paper.runs)["long"].drawn_anew
    assert main(["report", paper.name, *SMOKE]) == 0
    weights = paper.weights(SEEDS[0])
    shutil.rmtree(paper.runs / "drawn")  # as on a machine that has the runs alone
    paper.stage("train", "long")
    assert "finished before, kept" in capsys.readouterr().out
    assert contents(paper.runs / "drawn" / "task" / f"seed{SEEDS[0]}") == first
    assert same(paper.weights(SEEDS[0]), weights)


def test_a_variant_left_out_is_refused_with_its_reason(paper, capsys):
    for stage in ("train", "evaluate", "estimate"):
        assert f"'unread' is left out: {LEFT_OUT}" in paper.error(capsys, stage, "unread")
    assert not (paper.runs / "unread").exists()


def test_a_report_shows_verdict_deviation_and_what_is_left_out(paper):
    assert main(["report", paper.name, *SMOKE]) == 0
    folder = paper.root / "reports" / "smoke" / paper.name
    assert {path.name for path in folder.iterdir()} >= {"README.md", "index.html", "claims.json", "metrics.json"}
    (claim,) = json.loads((folder / "claims.json").read_text())
    assert claim["id"] == "T-C1"
    assert claim["lead"]["effect"] > 1.0  # the ratio of what the short run loses to what the long one does
    page = (folder / "README.md").read_text()
    assert all(text in page for text in (LEFT_OUT, CANNOT_RUN, "It is a toy."))
    assert main(["verdicts", paper.name, *SMOKE]) == 0


def test_a_damaged_result_is_named_and_the_report_before_it_stays(paper, capsys):
    report, reports = ["report", paper.name, *SMOKE], paper.root / "reports"
    assert main(report) == 0
    before = {path: path.stat().st_mtime_ns for path in reports.rglob("*.*")}
    (path := paper.runs / "long/evaluation/seed3/examples.jsonl.gz").write_bytes(b"half of a file")
    assert (main(report), {path: path.stat().st_mtime_ns for path in reports.rglob("*.*")}) == (2, before)
    assert path.name in capsys.readouterr().err


def test_what_a_variant_costs_is_known_from_its_runs_or_timed_on_its_data(paper):
    settings = ScaleFile(paper.name, "smoke")
    known = estimate(settings, "long")
    assert known.source == f"those of {len(SEEDS)} finished runs"
    shutil.rmtree(paper.runs / "long")
    timed = estimate(settings, "long")
    assert timed.source == f"of {UPDATES} updates, a few of which were timed here"
    assert (timed.parameters, timed.seeds, timed.judged) == (known.parameters, known.seeds, known.judged)
    assert min(known.training, known.judging, known.memory, timed.training, timed.memory) > 0
    assert (known.missing, timed.missing) == ("", "validation and judging: no runs are on record")
    shutil.rmtree(paper.prepared)
    assert "its task is not prepared" in estimate(settings, "long").missing


MISTAKES = [
    ("evaluation", {"sise": 3}, "unknown key 'evaluation.sise'"),
    ("model", {"sise": 3}, "unknown key 'sise' (did you mean 'size'?)"),
    ("training", {"updates": "many"}, "'training.updates'"),
    ("evaluation", {"checkpoint": "average"}, "needs training.average"),
    ("corpus", {"test": ["test", "train"]}, "neither 'train' nor 'valid'"),
]


def test_wrong_settings_are_one_sentence_with_file_variant_and_key(paper, capsys):
    before, settings = contents(paper.runs), paper.settings.read_text()
    for section, changes, message in MISTAKES:
        paper.settings.write_text(settings)
        paper.change(section, **changes)
        error = paper.error(capsys, "train", "long")
        assert message in error
        assert error.startswith(f"replications/{paper.name}/smoke/params.yaml: variants.long")
    assert contents(paper.runs) == before


def test_data_prepared_with_other_settings_are_refused(paper, capsys):
    paper.change("corpus", **paper.toy.reprepared)
    key = next(iter(paper.toy.reprepared))
    for stage in ("train", "evaluate"):
        message = paper.error(capsys, stage, "long")
        assert f"was prepared with other settings: key {key} is" in message
        assert "run prepare again" in message
    shutil.rmtree(paper.prepared)
    assert f"prepare {paper.name}.task" in paper.error(capsys, "train", "long")


def test_an_unknown_name_gets_the_nearest_known_one(paper, capsys):
    for stage, name, known in (("train", "lomg", "long"), ("prepare", "taks", "task"), ("fetch", "taks", "task")):
        assert f"'{name}' (did you mean '{known}'?)" in paper.error(capsys, stage, name)


def test_an_ensemble_is_judged_where_it_is_offered(paper, capsys):
    paper.change("evaluation", ensemble=True)
    if paper.kind != "translation":
        assert "unknown key 'evaluation.ensemble'" in paper.error(capsys, "evaluate", "long")
        return
    before = paper.json("long/metrics.json")
    paper.stage("evaluate", "long")
    metrics = paper.json("long/metrics.json")
    assert metrics["seeds"] == before["seeds"]
    assert metrics["ensemble"].keys() == metrics["mean"].keys()
    mean = sum(scores["nll_per_token"] for scores in metrics["seeds"].values()) / len(SEEDS)
    assert metrics["ensemble"]["nll_per_token"] <= mean + 1e-6  # as the logarithm is concave
    assert load_results(paper.runs)["long-ensemble"].examples.keys() == {0}
