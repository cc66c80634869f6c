"""Pictures that models have drawn, as the report of the Linear Transformer shows them."""

import numpy as np
import pytest
from matplotlib.image import imread

from replications.linear_transformer.pictures import Pictures, draw_pictures, read_pictures
from shared.claims.results import load_results
from shared.errors import ReplicationError
from shared.reports.figures import WIDTH
from tests.tasks.sequences.synthetic_sequences import MODELS, build

ASKED = Pictures(["mnist-linear", "never-run", "mnist-softmax", "copy-linear", "cifar10-linear"])


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return load_results(build(tmp_path_factory.mktemp("runs")))


def test_the_figures_are_those_of_what_was_drawn_and_the_same_again(results, tmp_path):
    figures = ASKED.draw(results, tmp_path)
    names = [figure.path.name for figure in figures]
    assert names == [
        "samples_mnist.png", "samples_cifar10.png", "completions_mnist-linear.png", "completions_cifar10-linear.png"
    ]  # fmt: skip
    assert sorted(path.name for path in tmp_path.glob("*.png")) == sorted(names)
    ASKED.draw(results, tmp_path / "again")
    for figure in figures:
        assert figure.path.read_bytes() == (tmp_path / "again" / figure.path.name).read_bytes()
        assert (imread(figure.path).shape[1] != 1400) == (
            "cifar10" in figure.path.name
        )  # colours are coarser than lines


@pytest.mark.parametrize("variant", ["mnist-linear", "cifar10-linear"])
def test_what_is_not_given_has_a_colour_of_its_own(results, variant, tmp_path, monkeypatch):
    lines = []
    monkeypatch.setattr(
        "replications.linear_transformer.pictures.draw_pictures", lambda of, path: lines.append(dict(of))
    )
    Pictures([variant]).draw(results, tmp_path)
    shown, true = lines[1]["given"], lines[1]["true"]
    half = true.shape[1] // 2
    assert shown.shape == (*true.shape[:3], 3)
    assert (shown[:, :half] == np.broadcast_to(true, shown.shape)[:, :half]).all()
    assert np.unique(shown[:, half:].reshape(-1, 3), axis=0).tolist() == [[185, 203, 224]]


def test_models_that_completed_other_pictures_have_a_figure_of_their_own(tmp_path):
    names = ["mnist-softmax", "mnist-linear"]
    found = load_results(build(tmp_path / "runs", {name: MODELS[name] for name in names}, seeds=(2, 3)))
    path = found["mnist-linear"].pictures(2)
    with np.load(path) as arrays:
        np.savez(path, **{**arrays, "given": 100})
    drawn = Pictures(names).draw(found, tmp_path / "figures")
    assert [figure.path.name for figure in drawn] == [
        "samples_mnist.png", "completions_mnist-softmax.png", "completions_mnist-linear.png"
    ]  # fmt: skip
    assert "the first 392 of 784 values" in drawn[1].caption
    assert "the first 100 of 784 values" in drawn[2].caption


def test_a_damaged_file_of_pictures_is_refused(tmp_path):
    path = tmp_path / "pictures.npz"
    for content in (b"", b"PK", b"no archive"):
        path.write_bytes(content)
        with pytest.raises(ReplicationError, match=r"pictures\.npz is damaged"):
            read_pictures(path)
    np.savez(path, samples=np.zeros((1, 2, 2, 1), np.uint8))
    with pytest.raises(ReplicationError, match=r"pictures\.npz is damaged"):
        read_pictures(path)
    assert read_pictures(tmp_path / "none.npz") == {}


@pytest.mark.parametrize(("count", "lengths"), [(4, [4]), (12, [12]), (16, [8, 8]), (25, [9, 9, 7])])
def test_rows_of_pictures_fill_the_width_alike(count, lengths, tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr("matplotlib.axes.Axes.imshow", lambda axes, picture, *, extent, **_: said.append(extent))
    draw_pictures([("model", np.zeros((count, 7, 14, 1), np.uint8))], tmp_path / "a.png")
    tops = [extent[3] for extent in said]
    assert [tops.count(top) for top in dict.fromkeys(tops)] == lengths
    assert max(extent[1] for extent in said) <= WIDTH
    left, right, bottom, top = said[0]
    assert (right - left) == pytest.approx(2 * (bottom - top))
