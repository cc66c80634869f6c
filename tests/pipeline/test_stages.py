"""Stage programs without DVC: the whole chain, and one sentence for every mistake."""

import gzip
import json
import shutil
import subprocess
import sys

import pytest

from shared.claims.results import load_results
from shared.pipeline.__main__ import main
from shared.pipeline.stages import by_metric, write_json
from tests.pipeline.scratch import VARIANTS, change_yaml, copy_project, environment

SMOKE = ["--scale", "smoke"]


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """A copy in which every stage has been run by hand."""
    folder = copy_project(tmp_path_factory.mktemp("stages") / "project")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for stage in ("fetch", "prepare"):
            assert main([stage, "bahdanau.table1", *SMOKE]) == 0
        for stage in ("train", "evaluate"):
            for variant in VARIANTS:
                assert main([stage, f"bahdanau.{variant}", *SMOKE]) == 0
        assert main(["report", "bahdanau", *SMOKE]) == 0
        assert main(["summarize"]) == 0
    return folder


@pytest.fixture
def here(chain, monkeypatch):
    monkeypatch.chdir(chain)
    return chain / "runs" / "smoke" / "bahdanau"


def error_of(capsys, *arguments):
    assert main(list(arguments)) == 2
    message = capsys.readouterr().err
    assert message.startswith("error: ")
    assert message.count("\n") == 1
    return message


def test_the_chain_leaves_what_the_next_reader_needs(here, chain):
    metrics = json.loads((here / "rnnsearch-50" / "metrics.json").read_text())
    assert metrics["token"] == "word"
    assert metrics["seeds"]["1"].keys() == metrics["mean"].keys()
    assert metrics["mean"].keys() >= {"bleu", "chrf", "aer", "perplexity", "test_long.bleu", "bleu_known"}
    assert "tok:none" in metrics["signatures"]["bleu"]
    record = json.loads((here / "rnnsearch-50" / "train" / "seed1" / "run.json").read_text())
    assert record["updates"] == 8
    assert record["threads"] == 1
    assert record["data_sha256"]["test.align"]
    with gzip.open(here / "rnnsearch-50" / "evaluation" / "seed1" / "examples.jsonl.gz", "rt") as lines:
        examples = [json.loads(line) for line in lines]
    assert len(examples) == 800
    assert examples[0].keys() >= {"id", "bleu", "nll", "tokens", "alignment", "hypothesis_known", "unknown"}
    assert any(example["unknown"] for example in examples)
    report = chain / "reports" / "smoke" / "bahdanau"
    assert {"README.md", "index.html", "claims.json", "metrics.json", "figures"} == {p.name for p in report.iterdir()}
    assert (chain / "reports" / "README.md").exists()


def test_evaluating_again_gives_the_same_bytes(here):
    paths = [here / "rnnencdec-50" / name for name in ("metrics.json", "evaluation/seed1/examples.jsonl.gz")]
    before = [path.read_bytes() for path in paths]
    assert main(["evaluate", "bahdanau.rnnencdec-50", *SMOKE]) == 0
    assert [path.read_bytes() for path in paths] == before


def test_a_finished_seed_is_kept_and_one_that_no_longer_belongs_goes(here, capsys, chain):
    stray = here / "rnnencdec-50" / "train" / "seed9"
    stray.mkdir()
    record = (here / "rnnencdec-50" / "train" / "seed1" / "run.json").read_bytes()
    assert main(["train", "bahdanau.rnnencdec-50", *SMOKE]) == 0
    assert "finished before, kept" in capsys.readouterr().out
    assert (here / "rnnencdec-50" / "train" / "seed1" / "run.json").read_bytes() == record
    assert not stray.exists()


def test_a_seed_whose_checkpoint_was_deleted_is_trained_again(here, capsys):
    checkpoint = here / "rnnencdec-50" / "train" / "seed1" / "checkpoints" / "best.ckpt"
    checkpoint.unlink()
    assert "run the train stage first" in error_of(capsys, "evaluate", "bahdanau.rnnencdec-50", *SMOKE)
    assert main(["train", "bahdanau.rnnencdec-50", *SMOKE]) == 0
    assert "8 updates" in capsys.readouterr().out
    assert checkpoint.exists()


def test_other_seeds_take_the_place_of_those_before(here, chain):
    smoke = chain / "replications" / "bahdanau" / "smoke.yaml"
    before = smoke.read_text()
    first = (here / "rnnencdec-50" / "curve.csv").read_text()
    change_yaml(smoke, lambda content: content["tasks"]["table1"].update(seeds=[2, 5]))
    assert main(["train", "bahdanau.rnnencdec-50", *SMOKE]) == 0
    assert {path.name for path in (here / "rnnencdec-50" / "train").iterdir()} == {"seed2", "seed5"}
    assert (here / "rnnencdec-50" / "curve.csv").read_text() != first
    assert main(["evaluate", "bahdanau.rnnencdec-50", *SMOKE]) == 0
    metrics = json.loads((here / "rnnencdec-50" / "metrics.json").read_text())
    two = [metrics["seeds"][seed]["perplexity"] for seed in ("2", "5")]
    assert two[0] != two[1]
    assert metrics["mean"]["perplexity"] == pytest.approx(sum(two) / 2, abs=1e-6)
    change_yaml(smoke, lambda content: content["variants"]["rnnencdec-50"].update(evaluation={"ensemble": True}))
    assert main(["evaluate", "bahdanau.rnnencdec-50", *SMOKE]) == 0
    again = json.loads((here / "rnnencdec-50" / "metrics.json").read_text())
    assert again["seeds"] == metrics["seeds"]
    assert again["ensemble"].keys() == again["mean"].keys()
    assert again["ensemble"]["perplexity"] <= (two[0] * two[1]) ** 0.5 + 1e-6  # as the logarithm is concave
    assert load_results(here)["rnnencdec-50-ensemble"].examples.keys() == {0}
    smoke.write_text(before)
    for stage in ("train", "evaluate"):
        assert main([stage, "bahdanau.rnnencdec-50", *SMOKE]) == 0
    assert (here / "rnnencdec-50" / "curve.csv").read_text() == first  # a seed decides everything


def test_fetched_data_that_was_changed_is_not_prepared(here, chain, capsys):
    data, prepared = chain / "data" / "generated_translation", here / "tasks" / "table1"
    encoded = (prepared / "train" / "source.npy").read_bytes()
    text = data / "train.source"
    text.write_bytes(text.read_bytes().swapcase())
    assert f"{text.relative_to(chain)} is missing or has changed" in error_of(
        capsys, "prepare", "bahdanau.table1", *SMOKE
    )
    assert (prepared / "train" / "source.npy").read_bytes() == encoded
    shutil.rmtree(data)  # as the message asks
    assert main(["prepare", "bahdanau.table1", *SMOKE]) == 0
    assert (prepared / "train" / "source.npy").read_bytes() == encoded


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["fetch", "bahdanau.table1"], 0), (["summarize"], 0), (["train", "bahdanau.nothing"], 2)],
)
def test_what_needs_no_torch_does_not_wait_for_it(arguments, status, chain):
    program = (
        "import sys; from shared.pipeline.__main__ import main; status = main(sys.argv[1:]); "
        "sys.exit(9 if 'torch' in sys.modules else status)"
    )
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=chain, env=environment(), capture_output=True, text=True)
    assert done.returncode == status, done.stderr


def test_a_variant_left_out_says_why(here, chain):
    change_yaml(
        chain / "replications" / "bahdanau" / "smoke.yaml",
        lambda content: content["variants"]["rnnencdec-30"].update(not_run="it would add nothing here"),
    )
    assert main(["train", "bahdanau.rnnencdec-30", *SMOKE]) == 0
    assert main(["evaluate", "bahdanau.rnnencdec-30", *SMOKE]) == 0
    metrics = json.loads((here / "rnnencdec-30" / "metrics.json").read_text())
    assert metrics["not_run"] == "it would add nothing here"
    assert main(["report", "bahdanau", *SMOKE]) == 0


def test_a_task_left_out_is_neither_fetched_nor_prepared_and_its_variants_say_why(here, chain, capsys):
    smoke = chain / "replications" / "bahdanau" / "smoke.yaml"
    before, reason = smoke.read_text(), "its licence has to be bought"
    change_yaml(smoke, lambda content: content["tasks"]["corpus"].update(corpus={"left_out": reason}))
    stale = here / "tasks" / "corpus" / "train"
    stale.mkdir(parents=True)
    for stage in ("fetch", "prepare"):
        assert main([stage, "bahdanau.corpus", *SMOKE]) == 0
        assert capsys.readouterr().out == f"bahdanau.corpus: left out, {reason}\n"
    assert json.loads((here / "fetched" / "corpus.json").read_text()) == {"left_out": reason, "files": {}}
    assert [path.name for path in (here / "tasks" / "corpus").iterdir()] == ["summary.json"]
    assert json.loads((here / "tasks" / "corpus" / "summary.json").read_text()) == {"left_out": reason}
    for stage in ("train", "evaluate"):
        assert main([stage, "bahdanau.corpus-rnnsearch", *SMOKE]) == 0
    metrics = json.loads((here / "corpus-rnnsearch" / "metrics.json").read_text())
    assert metrics == {"variant": "corpus-rnnsearch", "task": "corpus", "not_run": reason}
    assert f"not run at this scale: {reason}" in error_of(capsys, "rehearse", "bahdanau.corpus-rnnsearch", *SMOKE)
    assert main(["report", "bahdanau", *SMOKE]) == 0
    smoke.write_text(before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "bahdanau"], "not of the form <paper>.<variant>"),
        (["train", "bahdanau.nothing", *SMOKE], "has no variant 'nothing'"),
        (["train", "nobody.nothing", *SMOKE], "there is no paper 'nobody'"),
        (["train", "bahdanau.rnnsearch-50", "--scale", "bench"], "prepare bahdanau.table1 --scale bench"),
        (["evaluate", "bahdanau.rnnsearch-30", *SMOKE], "best.ckpt does not exist; run the train stage"),
        (["prepare", "bahdanau.table9", *SMOKE], "has no task 'table9'"),
        (["report", "bahdanau", "--scale", "bench"], "holds no evaluated variant"),
        (["new", "bahdanau"], "exists"),
        (["new", "Luong-2015"], "cannot name a folder"),
    ],
)
def test_a_mistake_gets_one_sentence(arguments, message, here, capsys):
    assert message in error_of(capsys, *arguments)


def test_a_damaged_result_is_named(here, capsys):
    path = here / "rnnsearch-50" / "evaluation" / "seed1" / "examples.jsonl.gz"
    whole = path.read_bytes()
    path.write_bytes(whole[:200])
    assert f"{path.name}" in error_of(capsys, "report", "bahdanau", *SMOKE)
    path.write_bytes(whole)


def test_json_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a" / "b.json"
    write_json(path, {"x": 1})
    with pytest.raises(TypeError):
        write_json(path, {"x": object()})
    assert json.loads(path.read_text()) == {"x": 1}
    assert [p.name for p in path.parent.iterdir()] == ["b.json"]


@pytest.mark.slow
def test_a_new_replication_runs_at_once(here, chain, capsys, monkeypatch):
    assert main(["new", "fresh"]) == 0
    assert "fresh.wide: {paper: fresh, task: generated, variant: wide}" in capsys.readouterr().out
    monkeypatch.syspath_prepend(str(chain))
    monkeypatch.setattr("replications.__path__", [str(chain / "replications")])
    for stage, name in (("fetch", "generated"), ("prepare", "generated"), ("train", "wide"), ("train", "narrow"),
                        ("evaluate", "wide"), ("evaluate", "narrow")):  # fmt: skip
        assert main([stage, f"fresh.{name}", *SMOKE]) == 0
    assert main(["report", "fresh", *SMOKE]) == 0
    assert "Fresh-C1" in (chain / "reports" / "smoke" / "fresh" / "README.md").read_text()


def test_a_mean_is_of_what_every_seed_has():
    found = by_metric([{"slope": 1.0, "crossover": 64.0, "tiny": 1e-13}, {"tiny": 3e-13, "slope": 2.0}])
    assert found == {"slope": [1.0, 2.0], "tiny": [1e-13, 3e-13]}
