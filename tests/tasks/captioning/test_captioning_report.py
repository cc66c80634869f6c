"""What reports show of made-up captioners: tables by kind of image, BLEU over training, lit pictures."""

import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from replications.show_attend_tell.report import DARKEST, Overlays, Stopping, choose_images, lit
from shared.claims.results import load_results
from shared.metrics.registry import MEASURES
from shared.reports.document import plain_text
from shared.tasks.captioning.report import by_kind_of_image, courses, likelihood_and_bleu
from shared.tasks.examples import read_kept
from tests.synthetic_runs import write_training
from tests.tasks.captioning.synthetic_captioning import CAPTIONERS, GRID, Captioner, build, write_attention
from tests.tasks.in_process import draw_kept

SOFT = Overlays("soft", "Soft attention.")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return load_results(build(tmp_path_factory.mktemp("runs"), images=120))


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
