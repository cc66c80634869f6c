"""What an estimate says of runs on record and of updates that are timed; some of the planned seeds judged first."""

import datetime
import json
import shutil

import pytest

from shared.errors import ReplicationError
from shared.pipeline.__main__ import main
from shared.pipeline.config import ScaleFile
from shared.pipeline.costs import Cost, described, estimate, summed
from shared.pipeline.runs import chosen_seeds, marks_of, refusing_other_weights, train_seed
from tests.pipeline.scratch import ROOT, change_yaml
from tests.pipeline.toys import SEEDS, SMOKE, Paper

NETWORK = Cost(5, 5, "those of 5 finished runs", "", 1000, 130.0, 20.0, 300.0)
STUDY = Cost(3, 3, "those of 3 finished runs", "", 0, 0.0, 30.0, 200.0)
BEGIN = datetime.datetime(2026, 11, 23, 12, tzinfo=datetime.UTC)
VARIANT = "corpus-rnnencdec"


@pytest.mark.parametrize(("workers", "rounds"), [(1, 5), (2, 3), (5, 1), (64, 1)])
def test_seeds_are_side_by_side_and_stages_follow_each_other(workers, rounds):
    assert pytest.approx(3600 * NETWORK.hours()) == 5 * (130 + 20)
    assert pytest.approx(3600 * NETWORK.hours(workers)) == rounds * (130 + 20)


def test_the_sum_says_what_is_included_what_is_missing_and_when_it_is_done():
    first, included, *more = summed([NETWORK, STUDY], 2, BEGIN).split("\n")
    hours = (3 * 150 + 2 * 30) / 3600
    assert first.startswith("together 0.23 processor hours; 2 at once take 0.14 hours")
    assert f"until about {BEGIN + datetime.timedelta(hours=hours):%Y-%m-%d %H:%M}; 300 MiB" in first
    assert "training, validation and judging of all seeds; not included:" in included
    assert more == []
    unknown = NETWORK._replace(missing="judging: nobody knows")
    assert described(unknown).endswith("WITHOUT judging: nobody knows: 0.21 processor hours")
    assert "of 1 of 2 variants a part is unknown" in summed([STUDY, unknown], 1, BEGIN).split("\n")[-1]


@pytest.fixture
def project(root, tmp_path, monkeypatch):
    """The project with the archive of one paper's runs, and without any runs or prepared data."""
    for name in ("replications", "data", "shared", "params.yaml"):
        (tmp_path / name).symlink_to(root / name)
    (tmp_path / "runs/bench").mkdir(parents=True)
    (tmp_path / "runs/bench/bahdanau.tar.xz").symlink_to(root / "runs/bench/bahdanau.tar.xz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_runs_that_git_keeps_or_that_were_unpacked_tell_what_more_of_them_cost(project):
    packed = estimate(settings := ScaleFile("bahdanau", "bench"), VARIANT)
    runs = len(settings.variants[VARIANT].seeds)
    assert (packed.parameters, packed.seeds, packed.judged, packed.missing) == (2363072, runs, runs, "")
    assert packed.source.startswith(f"those of {runs} finished runs")
    assert min(packed.training, packed.judging, packed.memory) > 0
    assert main(["unpack", "bahdanau", "--scale", "bench"]) == 0
    (project / "runs/bench/bahdanau.tar.xz").unlink()
    assert estimate(settings, VARIANT) == packed
    runs = project / f"runs/bench/bahdanau/{VARIANT}/train"
    for folder, whole in zip(sorted(runs.iterdir()), (2000.0, 4000.0), strict=False):
        record = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps(record | {"process_seconds": whole, "cpu": "another"}))
    for folder in sorted(runs.iterdir())[2:]:
        shutil.rmtree(folder)
    own = estimate(settings, VARIANT)
    assert (own.training, own.source) == (3000.0, "those of 2 finished runs on another")


def test_runs_of_other_settings_tell_nothing_and_it_is_said_what_to_run(project, capsys):
    def change(content):
        content["variants"][VARIANT].setdefault("training", {})["clip"] = 0.5

    (project / "replications").unlink()
    shutil.copytree(ROOT / "replications", project / "replications", ignore=shutil.ignore_patterns("__pycache__"))
    change_yaml(project / "replications/bahdanau/bench/params.yaml", change)
    assert main(["estimate", f"bahdanau.{VARIANT}", "--scale", "bench"]) == 0
    printed = capsys.readouterr().out
    assert "WITHOUT its cost: no runs are on record, and its task is not prepared" in printed
    assert "fetch bahdanau.corpus --scale bench && python -m shared.pipeline prepare bahdanau.corpus" in printed


@pytest.fixture
def paper(toys):
    toy = Paper("classification", toys)
    toy.prepare()
    return toy


def run(paper, stage, *seeds, variant="long"):
    return main([stage, f"{paper.name}.{variant}", *SMOKE, *(("--seeds", *map(str, seeds)) if seeds else ())])


def test_one_seed_is_trained_and_judged_and_later_the_others(paper, capsys):
    first, *others = SEEDS
    assert run(paper, "train", first) == 0
    assert run(paper, "evaluate", first) == 0
    weights = paper.weights(first)
    assert [*paper.json("long/metrics.json")["seeds"]] == [str(first)]
    assert not (paper.runs / "long" / "train" / f"seed{others[0]}").exists()
    assert run(paper, "evaluate") != 0  # the others are not trained yet
    assert run(paper, "train") == 0
    assert f"toy_classification.long seed {first}: finished before, kept." in capsys.readouterr().out
    assert all((paper.weights(first)[name] == value).all() for name, value in weights.items())
    assert run(paper, "evaluate") == 0
    assert [*paper.json("long/metrics.json")["seeds"]] == [str(seed) for seed in SEEDS]


def test_a_seed_whose_settings_have_changed_since_it_was_queued_is_not_trained(paper):
    settings = ScaleFile(paper.name, "smoke")
    mark = marks_of(settings, settings.run("long"), [SEEDS[0]])[SEEDS[0]]
    paper.change_variant("long", training={"updates": 39})
    with pytest.raises(ReplicationError, match="data or code have changed since the stage began"):
        train_seed(paper.name, "smoke", "long", SEEDS[0], mark, "a seed", paper.runs / "long/train" / f"seed{SEEDS[0]}")
    assert not (paper.runs / "long" / "train" / f"seed{SEEDS[0]}").exists()


def test_data_without_a_record_of_their_fetching_are_not_trained_on(paper, capsys):
    (paper.runs / "fetched" / "task.json").write_text('{"file": {}}')
    said = f"fetched/task.json lacks the key 'files'; run 'python -m shared.pipeline fetch {paper.name}.task"
    assert said in paper.error(capsys, "train", "long")
    assert not (paper.runs / "long").exists()


def test_a_seed_that_is_not_planned_is_refused(paper, capsys):
    for stage in ("train", "evaluate"):
        said = paper.error(capsys, stage, "long", "--seeds", "77")
        assert "params.yaml: 'long' has no seed 77; choose from 3, 4." in said
    assert chosen_seeds(SEEDS, SEEDS[::-1], "") == chosen_seeds(SEEDS, None, "") == tuple(SEEDS)


@pytest.mark.parametrize("lost", ["run.json", "checkpoints/last.ckpt", "checkpoints/best.ckpt"])
def test_what_cannot_be_judged_is_refused_and_leaves_what_was_judged_before(paper, capsys, lost):
    assert run(paper, "train", variant="short") == 0
    assert run(paper, "evaluate", variant="short") == 0
    folder = paper.runs / "short"
    before = {path: path.read_bytes() for path in (folder / "metrics.json", *(folder / "evaluation").rglob("*.*"))}
    (folder / "train" / f"seed{SEEDS[1]}" / lost).unlink()  # as where a run was begun anew and killed
    place = f"runs/smoke/{paper.name}/short/train/seed{SEEDS[1]}/{lost}"
    assert paper.error(capsys, "evaluate", "short").startswith(f"{place} does not exist")
    assert {path: path.read_bytes() for path in before} == before


def test_a_run_whose_record_is_damaged_is_not_judged_and_is_trained_again(paper, capsys):
    seed = SEEDS[0]
    assert run(paper, "train", seed, variant="short") == 0
    (paper.runs / "short" / "train" / f"seed{seed}" / "run.json").write_text("{}")
    said = paper.error(capsys, "evaluate", "short", "--seeds", str(seed))
    assert said.startswith(f"runs/smoke/{paper.name}/short/train/seed{seed}/run.json ")
    assert said.endswith("; run its train stage again.")
    assert run(paper, "train", seed, variant="short") == 0
    assert "finished before" not in capsys.readouterr().out
    assert run(paper, "evaluate", seed, variant="short") == 0


def test_a_report_names_what_was_trained_again_and_not_judged(paper):
    page = paper.root / "reports" / "smoke" / paper.name / "README.md"
    said = "were trained again since they were judged; run evaluate"
    for stage in ("train", "evaluate"):
        assert run(paper, stage, variant="short") == 0
    paper.change("model", size=13)
    assert run(paper, "train", variant="short") == 0
    assert main(["report", paper.name, *SMOKE]) == 0
    assert said in page.read_text()
    assert run(paper, "evaluate", variant="short") == 0
    assert main(["report", paper.name, *SMOKE]) == 0
    assert said not in page.read_text()


def test_weights_of_another_size_are_refused_in_a_sentence(paper, capsys):
    assert run(paper, "train", SEEDS[0], variant="short") == 0
    paper.change("model", size=13)
    capsys.readouterr()
    assert run(paper, "evaluate", SEEDS[0], variant="short") == 2
    folder = f"runs/smoke/{paper.name}/short/train/seed{SEEDS[0]}"
    said = f"the weights in {folder} are not of today's settings; train short again."
    printed = capsys.readouterr()
    assert printed.err == f"error: {paper.name}.short seed {SEEDS[0]}: evaluation: {said}\n"
    assert "Traceback" not in printed.out


def test_other_errors_of_judging_are_not_taken_for_those_of_weights():
    with pytest.raises(RuntimeError, match="a tensor"), refusing_other_weights("short", []):
        raise RuntimeError("a tensor")
