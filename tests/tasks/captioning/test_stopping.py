"""BLEU and likelihood over training: the correlation, the table and the figure."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import imread

from shared.claims.results import load_results
from shared.reports.document import Table
from shared.tasks.captioning.stopping import Course, courses, likelihood_and_bleu
from shared.tasks.captioning.stopping_figure import draw_stopping
from tests.tasks.captioning.synthetic_captioning import CAPTIONERS, build


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    variants = {name: CAPTIONERS[name] for name in ("soft", "hard", "mean", "initial")}
    return load_results(build(tmp_path_factory.mktemp("runs"), variants, images=12))


def course(*points):
    """Of (step, loss, BLEU)."""
    steps, losses, bleu = np.array(points, dtype=np.float64).T
    return Course(steps / steps.max(), -losses, bleu)


def write(path, *rows):
    with path.open("w", newline="") as lines:
        csv.writer(lines).writerows([("step", "split", "metric", "value"), *rows])
    return path


def test_only_validations_with_both_are_read(tmp_path):
    path = write(
        tmp_path / "curve.csv", (10, "valid", "loss", 3.0), (10, "valid", "bleu", 5.0), (15, "train", "bleu", 1.0),
        (20, "valid", "loss", 2.0), (40, "valid", "loss", 1.0), (40, "valid", "bleu", 9.0),
    )  # fmt: skip
    found = Course.read(path)
    assert found.progress.tolist() == [0.25, 1.0]
    assert found.likelihood.tolist() == [-3.0, -1.0]
    assert found.bleu.tolist() == [5.0, 9.0]


def test_without_a_curve_there_is_no_course(tmp_path):
    assert len(Course.read(tmp_path / "none.csv").bleu) == 0
    assert len(Course.read(write(tmp_path / "a.csv", (10, "valid", "loss", 3.0))).bleu) == 0


def test_the_likeliest_is_not_the_best():
    found = course((1, 3.0, 10.0), (2, 2.0, 30.0), (3, 1.0, 20.0))
    assert (found.highest, found.at_likeliest) == (30.0, 20.0)


def test_the_correlation_is_pearsons_of_likelihood():
    points = [(1, 3.0, 10.0), (2, 2.5, 14.0), (3, 1.0, 13.0), (4, 0.5, 20.0)]
    expected = np.corrcoef([-3.0, -2.5, -1.0, -0.5], [10.0, 14.0, 13.0, 20.0])[0, 1]
    assert course(*points).correlation == pytest.approx(expected)
    assert course((1, 1.0, 1.0), (2, 2.0, 2.0), (3, 3.0, 3.0)).correlation == pytest.approx(-1.0)


@pytest.mark.parametrize(
    "points", [[(1, 3.0, 1.0), (2, 2.0, 2.0)], [(1, 1.0, 5.0), (2, 2.0, 5.0), (3, 3.0, 5.0)],
               [(1, 2.0, 1.0), (2, 2.0, 2.0), (3, 2.0, 3.0)]]
)  # fmt: skip
def test_there_is_none_of_few_validations_or_of_what_never_changes(points):
    assert course(*points).correlation is None


def test_the_last_third_is_of_the_updates():
    late = course((100, 3.0, 1.0), (200, 2.0, 2.0), (201, 1.0, 3.0), (300, 0.0, 4.0)).after(2 / 3)
    assert late.bleu.tolist() == [3.0, 4.0]


def test_the_table_shows_where_they_part(results):
    table, said = likelihood_and_bleu([results["soft"], results["hard"]])
    soft, hard = table.rows
    assert isinstance(table, Table)
    assert "Pearson" in said.text
    best, at_likeliest = (float(cell.split()[0]) for cell in soft[1:3])
    assert best > at_likeliest + 4
    assert soft[4].startswith("−0.9")
    assert hard[3].startswith("+0.9")
    assert float(hard[4].split()[0]) > 0.5


def test_one_seed_has_no_range(results):
    run = results["soft"]
    one = replace(run, metrics={1: run.metrics[1]})
    table, _ = likelihood_and_bleu([one])
    assert "[" not in table.rows[0][1]
    assert len(courses(one)) == 1


def test_a_short_training_has_dashes(results, tmp_path):
    run = replace(results["soft"], folder=tmp_path, metrics={1: {}})
    (tmp_path / "train/seed1").mkdir(parents=True)
    write(run.curve(1), (10, "valid", "loss", 3.0), (10, "valid", "bleu", 5.0))
    table, _ = likelihood_and_bleu([run])
    assert table.rows[0][1:] == ["5.00", "5.00", "–", "–"]
    assert draw_stopping([run], tmp_path / "a.png")


def test_nothing_is_shown_where_bleu_was_not_recorded(results, tmp_path):
    run = replace(results["soft"], folder=tmp_path)
    assert likelihood_and_bleu([run]) == []
    assert not draw_stopping([run], tmp_path / "a.png")
    assert not draw_stopping([], tmp_path / "a.png")
    assert not (tmp_path / "a.png").exists()


def test_the_figure_is_drawn_the_same_twice_and_grows_with_the_variants(results, tmp_path):
    runs = list(results.values())
    for name in ("first", "second"):
        assert draw_stopping(runs[:3], tmp_path / f"{name}.png")
    assert (tmp_path / "first.png").read_bytes() == (tmp_path / "second.png").read_bytes()
    assert draw_stopping(runs, tmp_path / "four.png")
    first, four = (imread(tmp_path / f"{name}.png").shape for name in ("first", "four"))
    assert first[1] == four[1] == 1400
    assert four[0] > 1.5 * first[0]
