"""A model looks the same in all figures of a report, and unlike those beside it."""

from hypothesis import given
from hypothesis import strategies as st

from shared.reports.figures import DASHES, MARKERS, PALETTE, _line
from shared.reports.styles import assigned, style_of, styled

NAMES = [f"variant-{number}" for number in range(12)]


@given(st.lists(st.lists(st.sampled_from(NAMES), max_size=7, unique=True)))
def test_no_two_variants_of_a_figure_look_alike(groups):
    styles = assigned(groups)
    for group in groups:
        looks = [str(sorted(_line(styles[variant]).items())) for variant in group]
        assert len(set(looks)) == len(group)


def test_the_first_figure_has_the_first_colours():
    assert assigned([["a", "b"], ["c", "b"]]) == {"a": 0, "b": 1, "c": 0}


def test_beyond_the_palette_dashes_change():
    assert len(PALETTE) == len(DASHES) == len(MARKERS)
    first, again = _line(0), _line(len(PALETTE))
    assert first["color"] == again["color"]
    assert first["linestyle"] != again["linestyle"]


def test_styles_are_those_of_the_report_that_is_drawn():
    assert style_of("b", 0) == 0
    with styled([["a", "b"]]):
        assert style_of("b", 0) == 1
        assert style_of("unknown", 5) == 5
        with styled([["b"]]):
            assert style_of("b", 3) == 0
        assert style_of("b", 0) == 1
    assert style_of("b", 0) == 0
