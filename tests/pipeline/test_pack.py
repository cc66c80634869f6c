"""What runs have left is packed into one file, from which another machine makes the same report and goes on."""

import json
import shutil
import tarfile

import pytest

from shared.pipeline.__main__ import main
from shared.pipeline.config import ScaleFile
from shared.pipeline.files import locked
from tests.pipeline.scratch import change_yaml
from tests.pipeline.test_estimate import run
from tests.pipeline.toys import SEEDS, SMOKE, contents, copy


@pytest.fixture
def paper(made, tmp_path, monkeypatch):
    """A paper of which one seed of `long` and all of `short` are trained, judged and packed."""
    toy = copy("classification", made("classification"), tmp_path / "project", monkeypatch)
    shutil.rmtree(toy.runs / "elsewhere")
    shutil.rmtree(toy.runs / "long" / "train" / f"seed{SEEDS[1]}")
    assert run(toy, "evaluate", SEEDS[0]) == 0
    assert command(toy, "pack") == 0
    return toy


def command(paper, name):
    return main([name, paper.name, *SMOKE])


def archive(paper):
    return paper.runs.with_name(f"{paper.name}.tar.xz")


def lose(paper, *variants):
    """What another machine has of the runs, by default all: what git keeps, and its own preparation."""
    for variant in variants or ("long", "short"):
        for stage in ("train", "evaluation"):
            shutil.rmtree(paper.runs / variant / stage)


@pytest.mark.parametrize("failed", [False, True])
def test_another_machine_makes_the_same_report_without_weights_also_after_a_failed_evaluation(paper, capsys, failed):
    report = paper.root / "reports" / "smoke" / paper.name
    assert command(paper, "report") == 0
    before = contents(report)
    with tarfile.open(archive(paper)) as tar:
        assert not [name for name in tar.getnames() if "checkpoints" in name]
    lose(paper)
    if failed:
        for variant in ("long", "short"):
            (paper.runs / variant / "evaluation" / "seed3").mkdir(parents=True)
        assert run(paper, "evaluate") != 0  # there are no weights
    assert command(paper, "unpack") == 0
    assert "judged here" not in capsys.readouterr().out
    assert command(paper, "report") == 0
    assert contents(report) == before


def test_what_is_drawn_is_kept_of_the_first_seed_and_of_the_ensemble(paper):
    judged = paper.runs / "short" / "evaluation"
    shutil.move(judged / f"seed{max(SEEDS)}", judged / "seed10")
    shutil.copytree(judged / f"seed{min(SEEDS)}", judged / "ensemble")
    archive(paper).unlink()
    assert command(paper, "pack") == 0
    with tarfile.open(archive(paper)) as tar:
        drawn = [name for name in tar.getnames() if name.startswith("short") and name.endswith("attention.npz")]
    assert drawn == [f"short/evaluation/{of}/attention.npz" for of in ("ensemble", f"seed{min(SEEDS)}")]


def test_equal_results_make_equal_archives_and_what_is_replaced_is_said(paper, capsys):
    first = archive(paper).read_bytes()
    lose(paper)
    assert command(paper, "unpack") == 0
    assert command(paper, "pack") == 0
    assert ", in place of one of " in capsys.readouterr().out
    assert archive(paper).read_bytes() == first


def test_seeds_that_were_missing_join_those_that_were_unpacked(paper, capsys):
    first, second = SEEDS
    known = paper.json("long/metrics.json")["seeds"][str(first)]
    lose(paper)
    assert command(paper, "unpack") == 0
    assert run(paper, "evaluate", first) == 0
    assert "judged where it was trained, kept." in capsys.readouterr().out
    assert run(paper, "train", second) == 0
    assert run(paper, "evaluate", first, second) == 0
    assert paper.json("long/metrics.json")["seeds"].keys() == {str(first), str(second)}
    assert paper.json("long/metrics.json")["seeds"][str(first)] == known
    assert command(paper, "pack") == 0
    with tarfile.open(archive(paper)) as tar:
        names = set(tar.getnames())
    assert {f"long/evaluation/seed{seed}/examples.jsonl" for seed in SEEDS} <= names


def test_seeds_that_were_judged_otherwise_are_not_mixed_with_others(paper, capsys):
    lose(paper)
    assert command(paper, "unpack") == 0
    settings = ScaleFile(paper.name, "smoke")
    change_yaml(settings.path, lambda content: content["tasks"]["task"].setdefault("evaluation", {}).update(batch=63))
    assert run(paper, "evaluate", SEEDS[0]) == 2
    assert "before evaluation changed; train it here" in capsys.readouterr().err


def test_a_part_of_the_seeds_that_were_unpacked_is_all_that_a_report_then_sees(paper):
    first, second = SEEDS
    lose(paper)
    assert command(paper, "unpack") == 0
    known = paper.json("short/metrics.json")
    assert run(paper, "evaluate", second, variant="short") == 0
    left = paper.json("short/metrics.json")
    assert left["seeds"] == left["seeds"] | {str(second): known["seeds"][str(second)]}
    assert left["mean"] == known["seeds"][str(second)] != known["mean"]
    assert left == known | {"seeds": left["seeds"], "mean": left["mean"]}
    assert str(first) not in left["seeds"]


def test_numbers_whose_runs_are_on_another_machine_decide_nothing(paper, capsys):
    lose(paper, "long")
    assert command(paper, "report") == 0
    assert "toy_classification.long: left out" in capsys.readouterr().out
    page = (paper.root / "reports" / "smoke" / paper.name / "README.md").read_text()
    assert "its runs are on another machine" in page
    lose(paper, "short")
    assert command(paper, "report") == 2
    said = capsys.readouterr()
    assert "toy_classification.short: left out" in said.out
    assert "holds no evaluated variant" in said.err


@pytest.mark.parametrize("lost", [".", "costs.json"])
def test_numbers_of_another_machine_are_not_taken_for_runs_that_were_trained_here_and_not_judged(paper, capsys, lost):
    judged = paper.runs / "short" / "evaluation"
    shutil.rmtree(judged) if lost == "." else (judged / lost).unlink()  # as where judging was killed
    assert command(paper, "report") == 0
    said = capsys.readouterr().out
    assert f"{paper.name}.short: left out, for its runs were not judged on this machine" in said
    assert f"run 'python -m shared.pipeline evaluate {paper.name}.short --scale smoke'." in said
    report = paper.root / "reports" / "smoke" / paper.name
    assert "not judged on this machine; run its evaluate stage" in (report / "README.md").read_text()
    assert "short" not in json.loads((report / "metrics.json").read_text())["variants"]


def test_what_was_judged_here_is_left_as_it_is(paper, capsys):
    shutil.rmtree(paper.runs / "short" / "evaluation")
    before = contents(paper.runs / "long")
    assert command(paper, "unpack") == 0
    said = capsys.readouterr().out
    assert f"{paper.name}.long: judged here, kept." in said
    assert f"{paper.name}.short: unpacked." in said
    assert contents(paper.runs / "long") == before
    assert paper.weights(SEEDS[0])  # and the records of seeds that have their weights stay


def test_a_renewed_archive_replaces_what_was_unpacked(paper, capsys):
    renewed = archive(paper).read_bytes()
    costs = paper.runs / "long" / "evaluation" / "costs.json"
    newer = json.loads(costs.read_text())
    costs.write_text('{"fingerprints": {}}')
    assert command(paper, "pack") == 0
    lose(paper)
    assert command(paper, "unpack") == 0
    assert json.loads(costs.read_text()) == {"fingerprints": {}}
    archive(paper).write_bytes(renewed)
    capsys.readouterr()
    assert command(paper, "unpack") == 0
    assert "judged here" not in capsys.readouterr().out
    assert json.loads(costs.read_text()) == newer


def test_nothing_is_unpacked_under_a_running_evaluation(paper, capsys):
    (paper.runs / "long" / "evaluation" / "costs.json").unlink()
    before = contents(paper.runs / "long")
    with locked(f"runs of {paper.name}.long at smoke scale"):
        assert command(paper, "unpack") == 2
    assert f"the runs of {paper.name}.long at smoke scale are being made" in capsys.readouterr().err
    assert contents(paper.runs / "long") == before
    with locked(f"runs of {paper.name}.short at smoke scale"):  # which is judged and left as it is
        assert command(paper, "unpack") == 0


def test_results_that_are_not_here_are_not_packed_over(paper, capsys):
    first = archive(paper).read_bytes()
    shutil.rmtree(paper.runs / "short")
    assert command(paper, "pack") == 2
    assert "run 'python -m shared.pipeline unpack toy_classification --scale smoke' first" in capsys.readouterr().err
    assert archive(paper).read_bytes() == first


@pytest.mark.parametrize("damage", [b"", b"no archive"])
def test_a_damaged_archive_is_an_error_and_leaves_nothing(paper, capsys, damage):
    archive(paper).write_bytes(damage or archive(paper).read_bytes()[:-500])
    lose(paper)
    before = contents(paper.runs)
    assert command(paper, "unpack") == 2
    assert capsys.readouterr().err.startswith(f"error: runs/smoke/{paper.name}.tar.xz is damaged: ")
    assert contents(paper.runs) == before
    assert not [*paper.runs.parent.glob(f".{paper.name}-*")]


def test_without_an_archive_or_results_there_is_an_error(paper, capsys):
    archive(paper).unlink()
    assert command(paper, "unpack") == 2
    assert "there is no runs/smoke/toy_classification.tar.xz" in capsys.readouterr().err
    lose(paper)
    assert command(paper, "pack") == 2
    assert "holds no judged variant" in capsys.readouterr().err
    assert not archive(paper).exists()
