"""The registry itself: names once, families by pattern, order by theme, and a direction for every score."""

import pytest

from shared.errors import ReplicationError
from shared.metrics.quantities import Measure
from shared.metrics.registry import MEASURES, Family, by_theme, known, register, split_of


@pytest.mark.parametrize("name", ["bleu", "accuracy", "token_accuracy"])
def test_a_name_is_registered_once(name):
    before = dict(MEASURES)
    with pytest.raises(ReplicationError, match=f"'{name}' is registered twice"):
        register({"something_new": Measure("New"), name: Measure("Again")})
    assert dict(MEASURES) == before


def test_a_pattern_is_registered_once():
    with pytest.raises(ReplicationError, match="registered twice"):
        register({}, [Family(r"bits@(\d+)", lambda memory: Measure(memory))])


def test_a_family_takes_its_parameters_from_the_name():
    family = Family(r"share_(\w+)@(\d+)", lambda group, size: Measure(f"{group} of {size}"))
    assert family.member("share_nouns@12").title == "nouns of 12"
    assert family.member("share_nouns@") is None
    assert family.member("a share_nouns@12") is None


def test_themes_keep_the_order_and_members_stand_behind_their_measure():
    themes = by_theme(["perplexity@relu", "perplexity@exact", "bits@16", "unheard_of@7"])
    for names in themes:
        (theme,) = {known(name).theme for name in names}
        measures = [name for name in names if "@" not in name]
        assert measures == [name for name, each in MEASURES.items() if each.theme == theme]
    scores = themes[0]
    place = scores.index("perplexity")
    assert scores[place : place + 3] == ["perplexity", "perplexity@exact", "perplexity@relu"]
    assert not {"bits@16", "unheard_of@7"} & {*scores}


def test_every_score_but_a_baseline_has_a_direction():
    scores = {name for names in by_theme() for name in names if MEASURES[name].theme in ("score", "alignment")}
    assert {name for name in scores if MEASURES[name].better is None} == {"baseline_perplexity", "baseline_accuracy"}
    lower = {name for name in scores if MEASURES[name].better == "lower"}
    assert {"aer", "perplexity", "bits", "cross_entropy", "nll_per_token", "undefined"} <= lower
    assert not {"bleu", "accuracy", "cider", "exact_match"} & lower
    assert known("accuracy_lost@relu").better == "lower"
    assert known("bits_saved@1-2").better == "higher"


def test_a_further_split_stands_before_a_measure_and_may_not_be_part_of_its_name():
    names = ("bleu", "test_long.bleu", "long.perplexity@a.b", "perplexity@a.b", "nothing")
    assert [split_of(name) for name in names] == [
        ("", "bleu"), ("test_long", "bleu"), ("long", "perplexity@a.b"), ("", "perplexity@a.b"), ("", "nothing")
    ]  # fmt: skip
