"""What models are called, and one colour for each in all figures, that stands out from the ground and the others."""

from itertools import combinations

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb

from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile, scales_of
from shared.reports import figures, naming
from shared.reports.curves import StudyLines
from shared.reports.document import code, plain_text
from shared.reports.exhibits import LINES, OfPanels, load_exhibits
from shared.reports.figures import COLOURS, INK, VERDICTS, line_style
from shared.reports.naming import FILE, PALETTE, load_colours, load_names, name_and_code, name_of, styles_of, use_names
from tests.conftest import ROOT

SOME = st.sampled_from([f"model {number}" for number in range(12)])
PAPERS = sorted(path.parent.name for path in (ROOT / "replications").glob("*/variants.yaml"))


def test_a_name_stands_beside_the_id():
    with use_names({"base": "base model"}):
        assert name_and_code("base") == f"base model {code('base')}"
        assert plain_text(name_and_code("base-ensemble")) == "base model, ensemble base-ensemble"
        assert name_of("big") == "big"
        parts = [{"reason": "base was not tuned; base"}], [{"reason": "base model was not tuned; base"}]
        worded = naming.in_words({"how": "base and a/big did not learn", "parts": parts[0]})
        assert worded == {"how": "base model and a/big did not learn", "parts": parts[1]}
    assert name_of("base") == "base"


@pytest.mark.parametrize("paper", PAPERS)
def test_models_of_one_task_have_different_names(paper):
    folder = ROOT / "replications" / paper
    names = load_names(folder)
    for path in sorted(folder.glob("*/params.yaml")):
        variants = yaml.safe_load(path.read_text(encoding="utf-8"))["variants"]
        by_task = [(entry["task"], names[variant]) for variant, entry in variants.items() if variant in names]
        assert len(by_task) == len(set(by_task)), path


CONTRAST, DISTANCE = 3.0, 30.0
"""WCAG 2.1 asks for 3 of lines (1.4.11). A distance of 30 in CIELAB is thirteen times what is just noticed, 2.3."""
GROUND = "#ffffff"  # of pictures: style.css gives it to them where the page is dark, too
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
EYES = {
    "all cones": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                            [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                              [-0.011820, 0.042940, 0.968881]]),
}  # fmt: skip
"""Machado, Oliveira & Fernandes (2009), full severity, of linear red, green and blue."""


def linear(colour):
    values = np.array(to_rgb(colour))
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(first, second):
    low, high = sorted(float(XYZ[1] @ linear(colour)) for colour in (first, second))
    return (high + 0.05) / (low + 0.05)


def lab(colour, eyes):
    seen = XYZ @ np.clip(EYES[eyes] @ linear(colour), 0.0, 1.0) / np.array([0.95047, 1.0, 1.08883])
    x, y, z = np.where(seen > 216 / 24389, np.cbrt(seen), (24389 / 27 * seen + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


OF_EFFECTS = {name: getattr(figures, name) for name in ("SEED", "FAILED", "MEAN", "RELEVANT", "PAPER")}


@pytest.mark.parametrize("colour", sorted({*COLOURS, *VERDICTS.values(), *OF_EFFECTS.values(), INK}))
def test_colours_stand_out_from_the_ground(colour):
    assert contrast(colour, GROUND) >= CONTRAST


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("pair", [*combinations(PALETTE, 2)], ids="-".join)
def test_colours_can_be_told_apart(pair, eyes):
    first, second = (lab(PALETTE[name], eyes) for name in pair)
    assert np.linalg.norm(first - second) >= DISTANCE


def figures_of(paper):
    """Title to the names of the models, or the labels, that share a figure of the paper at some scale."""
    names, panelled = load_names(ROOT / "replications" / paper), set()
    for exhibit in load_exhibits(paper):
        if isinstance(exhibit, OfPanels):
            for title, variants in exhibit.panels.items():
                panelled.update(variants)
                yield title, [names.get(variant, variant) for variant in variants]
        if isinstance(exhibit, StudyLines):
            yield exhibit.title, exhibit.labels
    for scale in scales_of(paper):
        by_task = {}
        for variant, section in sorted(ScaleFile(paper, scale).variants.items()):
            by_task.setdefault(section.task, []).append(variant)
        for task, variants in by_task.items():
            if not panelled.intersection(variants):  # else no figure shows the whole task
                for start in range(0, len(variants), LINES):
                    yield f"{scale}, {task}", [names.get(each, each) for each in variants[start : start + LINES]]


@pytest.mark.parametrize("paper", PAPERS)
def test_no_two_models_of_a_figure_have_one_colour(paper):
    colours = load_colours(ROOT / FILE)
    found = dict(figures_of(paper))
    assert found
    for title, names in found.items():
        assert [name for name in names if name not in colours] == [], title
        assert len({colours[name] for name in names}) == len(names), title


def test_a_model_has_its_colour_in_every_figure():
    with use_names({}, {"Transformer": 2, "RNNsearch": 0}):
        assert styles_of(["Transformer", "RNNsearch"]) == [2, 0]
        assert styles_of(["RNNsearch", "other", "one more", "Transformer"]) == [0, 1, 3, 2]
    assert styles_of(["Transformer", "RNNsearch"]) == [0, 1]


@given(st.lists(SOME, max_size=9, unique=True), st.dictionaries(SOME, st.integers(0, 6)))
def test_no_two_lines_look_alike(names, colours):
    with use_names({}, colours):
        looks = [str(sorted(line_style(style).items())) for style in styles_of(names)]
    assert len(set(looks)) == len(names)


@pytest.mark.parametrize(("name", "text", "message"), [
    ("names", "bass: base model", r"names.yaml: .*variants.yaml has no variant 'bass' \(did you mean 'base'\?\)"),
    ("names", "base: 3", "names.yaml: 'base'"),
    ("names", "- base", "names.yaml: "),
    ("colours", "blu: [base]", r"colours.yaml: there is no colour 'blu' \(did you mean 'blue'\?\)"),
    ("colours", "{blue: [base], navy: [base]}", "colours.yaml: navy has 'base', which has a colour already"),
    ("colours", "blue: base", "colours.yaml: 'blue'"),
])  # fmt: skip
def test_wrong_names_and_colours_are_refused(tmp_path, name, text, message):
    (tmp_path / "variants.yaml").write_text("kind: translation\nvariants: {base: {}}\n")
    (tmp_path / f"{name}.yaml").write_text(text)
    with pytest.raises(ReplicationError, match=message):
        load_names(tmp_path) if name == "names" else load_colours(tmp_path / "colours.yaml")
