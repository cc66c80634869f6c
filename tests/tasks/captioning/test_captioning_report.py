"""The report of made-up captioners, beside the facts of Xu et al. (2015): tables, BLEU over training, lit pictures."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from replications.show_attend_tell.report import DARKEST, LONGEST, Overlays, Stopping, choose_images, lit
from shared.claims.results import load_results
from shared.metrics.registry import MEASURES
from shared.reports.curves import LearningCurves
from shared.reports.document import plain_text
from shared.reports.report import write_report
from shared.tasks.captioning.report import CURVES, REPORT, Course, by_kind_of_image, courses, likelihood_and_bleu
from shared.tasks.examples import read_kept
from tests.made_claims import claim, compared, paper_folder
from tests.reports.drawing import amiss
from tests.synthetic_runs import write_training
from tests.tasks.captioning.synthetic_captioning import CAPTIONERS, GRID, Captioner, build, write_attention
from tests.tasks.in_process import draw_kept

FIGURES = [
    Overlays("soft", "Soft attention."), Overlays("mean", "It does not attend."), Overlays("never-run", "Not run."),
    Stopping(["soft", "hard", "never-run"]),
    LearningCurves({"attention or none": ["soft", "hard", "mean", "initial"]}, CURVES),
]  # fmt: skip
SOFT = FIGURES[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("project")
    paper = paper_folder(
        root / "papers/show_attend_tell", claim(1, primary=compared("greater", "bleu4", "soft", "mean")),
        claim(2, primary=compared("greater", "attention_gain", "soft", than=0.0)), paper="show_attend_tell",
    )  # fmt: skip
    runs = build(root / "runs", images=120)
    write_report(paper, runs, root / "reports/quick/show_attend_tell", scale="quick", figures=FIGURES, kind=REPORT)
    return root / "reports/quick/show_attend_tell"


@pytest.fixture(scope="module")
def results(folder):
    return load_results(folder.parents[2] / "runs")


def test_the_page_has_the_figures_and_tables_asked_for_and_no_others(folder):
    """Every measure of captions can decide, but three seeds are too few."""
    leads = [entry["lead"] for entry in json.loads((folder / "claims.json").read_text())]
    assert all(lead["interval"][0] > 0.0 and lead["reason"] == "3 seeds, and at least 5 decide" for lead in leads)
    assert amiss(folder) == []
    drawn = {path.stem for path in (folder / "figures").glob("*.png")}
    assert {each for each in drawn if not each.startswith(("picture", "seeds", "training"))} == {
        "overlays_soft", "stopping"
    }  # fmt: skip
    assert {"training_bleu_photos", "training_loss_scenes", "picture_test_combinations-3"} <= drawn
    page = (folder / "README.md").read_text()
    assert "by split | test (n = 80) | test_combinations (n = 20) | test_pictures (n = 20) |" in page
    assert "by objects in the scene | 1 (n = 40) | 2 (n = 20) | 3 (n = 20) |" in page


def cells(blocks, title):
    (table,) = (block for block in blocks if getattr(block, "columns", [""])[0] == title)
    return {plain_text(row[0]): [cell.split()[0] for cell in row[1:]] for row in table.rows}


def test_a_kind_of_images_value_is_the_mean_over_seeds_and_that_of_the_split_test_is_the_score_tables(results):
    blocks, run = by_kind_of_image([results[name] for name in ("soft", "hard", "mean")]), results["soft"]
    found = cells(blocks, "Captions entirely true by objects in the scene")["soft"]
    for shown, objects in zip(found, (1, 2, 3), strict=True):
        of_all = [row for seed in run.seeds for row in run.examples[seed] if row["split"] == "test"]
        true = [row["truth"]["all_true"] for row in of_all if row["objects"] == objects]
        assert float(shown) == pytest.approx(100 * sum(true) / len(true), abs=0.01)
    for metric, count in (("bleu4", 3), ("truth", 3), ("attention_gain", 2)):
        found = cells(blocks, f"{MEASURES[metric].title} by split")
        assert len(found) == count
        for name, (test, *_) in found.items():
            assert float(test) == pytest.approx(results[name].mean[metric], abs=0.01)


def test_intervals_stay_within_what_is_possible_and_photos_have_no_kinds(results):
    blocks = by_kind_of_image([replace(results["initial"], variant="other")])
    ends = [end for block in blocks[:-1] for row in block.rows for cell in row[1:]
            for end in re.findall(r"[−\d.]+", cell)[1:]]  # fmt: skip
    assert ends
    assert not [end for end in ends if end.startswith("−")]
    assert by_kind_of_image([results["photos-soft"]]) == by_kind_of_image([]) == []


def with_curve(run, folder, *rows):
    """A run with one seed, and a curve of these rows."""
    one = replace(run, folder=folder, metrics={1: {}})
    write_training(one.curve(1).parent, {}, rows)
    return one


def test_only_validations_with_both_are_read(results, tmp_path):
    run = with_curve(
        results["soft"], tmp_path, (10, "valid", "loss", 3.0), (10, "valid", "bleu", 5.0), (15, "train", "bleu", 1.0),
        (20, "valid", "loss", 2.0), (40, "valid", "loss", 1.0), (40, "valid", "bleu", 9.0),
    )  # fmt: skip
    (found,) = courses(run)
    assert [values.tolist() for values in found] == [[0.25, 1.0], [-3.0, -1.0], [5.0, 9.0]]
    assert courses(with_curve(run, tmp_path, (10, "valid", "loss", 3.0))) == []


def course(steps, losses, bleu):
    steps, losses, bleu = (np.array(values, dtype=np.float64) for values in (steps, losses, bleu))
    return Course(steps / steps.max(), -losses, bleu)


@pytest.mark.parametrize(("losses", "bleu", "expected"), [
    ([3.0, 2.5, 1.0, 0.5], [10, 14, 13, 20], np.corrcoef([-3.0, -2.5, -1.0, -0.5], [10, 14, 13, 20])[0, 1]),
    ([1.0, 2.0, 3.0], [1, 2, 3], -1.0),
    # There is none of few validations or of what never changes.
    ([3.0, 2.0], [1, 2], None), ([1.0, 2.0, 3.0], [5, 5, 5], None), ([2.0, 2.0, 2.0], [1, 2, 3], None),
])  # fmt: skip
def test_the_correlation_is_pearsons_of_likelihood(losses, bleu, expected):
    assert course(range(1, len(losses) + 1), losses, bleu).correlation == (expected and pytest.approx(expected))


def test_the_late_part_is_by_the_number_of_updates():
    late = course([100, 200, 201, 300], [3.0, 2.0, 1.0, 0.0], [1, 2, 3, 4]).after(2 / 3)
    assert late.bleu.tolist() == [3.0, 4.0]


def test_the_table_shows_where_they_part(results):
    table, _ = likelihood_and_bleu([results["soft"], results["hard"]])
    soft, hard = table.rows
    best, at_likeliest = (float(cell.split()[0]) for cell in soft[1:3])
    assert best > at_likeliest + 4
    assert soft[4].startswith("−0.9")
    assert hard[3].startswith("+0.9")
    assert float(hard[4].split()[0]) > 0.5


def test_a_short_training_has_dashes_and_one_without_bleu_nothing(results, tmp_path):
    short = with_curve(results["soft"], tmp_path, (10, "valid", "loss", 3.0), (10, "valid", "bleu", 5.0))
    table, _ = likelihood_and_bleu([short])
    assert table.rows[0][1:] == ["5.00", "5.00", "–", "–"]
    assert Stopping(["soft"]).draw({"soft": short}, tmp_path)
    none = replace(results["soft"], folder=tmp_path / "none")
    assert likelihood_and_bleu([none]) == []
    assert not Stopping(["soft", "never-run"]).draw({"soft": none}, tmp_path / "none")


def kept(name, *, correct=None, words=3):
    return {"id": np.array(name), "words": ["w"] * words} | ({} if correct is None else {"correct": np.array(correct)})


def ids(images):
    return [str(image["id"]) for image in images]


@pytest.mark.parametrize(("images", "expected"), [
    ([(f"{of}-{i}", i % 2 == 0) for of in ("test", "other") for i in range(4)], "test-0 other-0 test-1 other-1"),
    ([(f"test-{i}", None) for i in range(6)], "test-0 test-1 test-2 test-3"),
    ([(f"test-{i}", i > 0) for i in range(6)], "test-1 test-2 test-3 test-0"),
])  # fmt: skip
def test_half_of_the_images_are_wrong_ones_if_there_are_and_the_splits_take_turns(images, expected):
    assert ids(choose_images([kept(name, correct=correct) for name, correct in images], 4)) == expected.split()


def test_long_captions_are_left_out_if_there_are_shorter_ones():
    long, longer, short = kept("a-0", words=LONGEST + 1), kept("a-1", words=LONGEST + 2), kept("a-2")
    assert ids(choose_images([long, short])) == ["a-2"]
    assert ids(choose_images([longer, long])) == ["a-0"]
    assert choose_images([]) == []


def test_a_reader_can_choose_a_picture_and_a_word_of_photos_of_which_nothing_else_is_known(tmp_path):
    write_attention(tmp_path / "attention.npz", Captioner(0.5, mass=0.5, task="photos"))
    images = {str(image["id"]): image for image in read_kept(tmp_path / "attention.npz")}
    (figure,) = draw_kept(Overlays("soft", "Photos"), tmp_path, soft=tmp_path / "attention.npz")
    assert not [word for word in ("gate", "Frames") if word in figure.caption]
    assert len({each.picture for each in figure.maps}) == len(figure.maps) == 4
    for each in figure.maps:
        image = images[each.choices["Picture"].split(":")[0]]
        assert each.rows == image["words"].tolist()
        assert np.array(each.weights) == pytest.approx(image["weights"])
        with Image.open(each.picture) as picture:
            assert np.abs(np.asarray(picture.convert("RGB"), int) - image["image"]).mean() < 8
    assert {each.across for each in figure.maps} == {GRID}


def test_nothing_is_drawn_of_models_without_attention(tmp_path):
    write_attention(tmp_path / "attention.npz", CAPTIONERS["mean"])
    assert draw_kept(SOFT, tmp_path / "figures", soft=tmp_path / "attention.npz") == []
    assert draw_kept(SOFT, tmp_path / "figures", soft=tmp_path / "none.npz") == []
    assert not (tmp_path / "figures").exists()


def test_the_place_attended_to_is_bright_and_what_is_far_from_it_dark():
    weights = np.zeros((4, 4), np.float32)
    weights[1, 2] = 1.0
    found = lit(np.full((64, 64, 3), 200, np.uint8), weights)
    assert found.dtype == np.uint8
    assert (found[23:25, 39:41] == 200).all()
    assert (found[:, :8] == 200 * DARKEST).all()
    assert (np.diff(found[24, :40, 0].astype(int)) >= 0).all()
    picture = np.random.default_rng(0).integers(0, 256, (28, 28, 3), dtype=np.uint8)
    assert (lit(picture, np.full((14, 14), 1 / 196, np.float32)) == picture).all()


def test_the_light_is_the_weights_upsampled_between_the_centres_of_places():
    """A long ramp of weights is a ramp of light: smoothing leaves the inside of a line as it is."""
    weights = np.tile(np.arange(1, 15, dtype=np.float32), (14, 1))
    row = lit(np.full((224, 224, 3), 255, np.uint8), weights)[112, :, 0].astype(float)
    slope = np.diff((row / 255 - DARKEST) / (1 - DARKEST))[80:144].mean()
    largest = 14 - 0.5  # smoothed at the edge
    assert slope == pytest.approx(1 / 16 / largest, rel=0.05)
