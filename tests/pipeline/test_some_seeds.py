"""A part of the planned seeds can be trained and judged first; the rest is left as it is."""

import pytest

from shared.errors import ReplicationError
from shared.pipeline.__main__ import main
from shared.pipeline.config import ScaleFile
from shared.pipeline.runs import chosen_seeds, marks_of, refusing_other_weights, train_seed
from tests.pipeline.toys import SEEDS, SMOKE, Paper


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
    assert run(paper, "train") == 2
    said = f"fetched/task.json lacks the key 'files'; run 'python -m shared.pipeline fetch {paper.name}.task"
    assert said in capsys.readouterr().err
    assert not (paper.runs / "long").exists()


def test_a_seed_that_is_not_planned_is_refused(paper, capsys):
    for stage in ("train", "evaluate"):
        assert run(paper, stage, 77) == 2
        assert "params.yaml: 'long' has no seed 77; choose from 3, 4." in capsys.readouterr().err
    assert chosen_seeds(SEEDS, SEEDS[::-1], "") == chosen_seeds(SEEDS, None, "") == tuple(SEEDS)


@pytest.mark.parametrize("lost", ["run.json", "checkpoints/last.ckpt", "checkpoints/best.ckpt"])
def test_what_cannot_be_judged_is_refused_and_leaves_what_was_judged_before(paper, capsys, lost):
    assert run(paper, "train", variant="short") == 0
    assert run(paper, "evaluate", variant="short") == 0
    folder = paper.runs / "short"
    before = {path: path.read_bytes() for path in (folder / "metrics.json", *(folder / "evaluation").rglob("*.*"))}
    (folder / "train" / f"seed{SEEDS[1]}" / lost).unlink()  # as where a run was begun anew and killed
    capsys.readouterr()
    assert run(paper, "evaluate", variant="short") == 2
    place = f"runs/smoke/{paper.name}/short/train/seed{SEEDS[1]}/{lost}"
    assert capsys.readouterr().err.startswith(f"error: {place} does not exist")
    assert {path: path.read_bytes() for path in before} == before


def test_a_run_whose_record_is_damaged_is_not_judged_and_is_trained_again(paper, capsys):
    seed = SEEDS[0]
    assert run(paper, "train", seed, variant="short") == 0
    (paper.runs / "short" / "train" / f"seed{seed}" / "run.json").write_text("{}")
    capsys.readouterr()
    assert run(paper, "evaluate", seed, variant="short") == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: runs/smoke/{paper.name}/short/train/seed{seed}/run.json ")
    assert said.endswith("; run its train stage again.\n")
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
