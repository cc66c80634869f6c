"""Every variant of every scale is what its name says, and sizes are those that can be computed by hand."""

from functools import partial
from typing import Any

import pytest

from replications.performer.replication import STUDIES, build_model
from replications.performer.settings import ModelConfig
from shared.attention.favor import SoftmaxFeatures
from shared.attention.feature_maps import ReLU
from shared.claims.scales import SCALES
from shared.config import merge
from shared.tasks.sequences.settings import SequenceRun
from tests.replications.shipped_variants import scale_file_of, shipped

pytestmark = pytest.mark.usefixtures("shapes_alone")
scales = pytest.mark.parametrize("scale", SCALES)
LEARNED = ("quick", "bench", "paper_scale")
"""Scales that have whatever is compared; the smoke scale trains each kind of model once."""
BASE = {"proteins": "transformer"}
"""Of which the others of a task are changes; ``<task>-transformer`` where none is named."""
ATTENTIONS = {"transformer": "softmax", "fixed": "positive", "transferred": "positive", "scratch": "positive"}
"""By the last word of a name; where it is not here, the word itself."""
SYMBOLS = 256


scale_file = partial(scale_file_of, "performer")


def settings_of(scale: str, variant: str) -> tuple[SequenceRun, ModelConfig]:
    run = scale_file(scale).run(variant)
    assert isinstance(run, SequenceRun)
    return run, ModelConfig.model_validate(run.model)


@shipped("performer", *STUDIES)
def test_every_variant_is_what_its_name_says(scale: str, variant: str) -> None:
    run, config = settings_of(scale, variant)
    kind = variant.rpartition("-")[2]
    attention = ATTENTIONS.get(kind, kind)
    assert config.attention == attention
    assert run.corpus.causal == (run.task != "masked")
    model = build_model(config, SYMBOLS, run.corpus.causal)
    maps = {"softmax": type(None), "relu": ReLU}
    assert {type(each.features) for each in model.attentions} == {maps.get(attention, SoftmaxFeatures)}
    assert (config.swap_at is not None) == (variant == "transferred")
    assert config.directions == "orthogonal"
    assert config.redraw_every == (None if variant == "copy-fixed" else 1)
    assert run.training.may_diverge == (run.task == "copy")
    expected = {"copy": "copies", "imagenet64": "pixels"}.get(run.task, "proteins")
    assert run.corpus.of == expected
    assert run.evaluation.baseline == (expected == "proteins")
    if expected == "proteins":
        assert run.corpus.concatenated == (run.task == "concatenated")


@shipped("performer", *STUDIES, "imagenet64-relu", "pg19-positive", scales=LEARNED)
def test_variants_of_a_task_differ_in_nothing_but_what_they_are_named_for(scale: str, variant: str) -> None:
    run, config = settings_of(scale, variant)
    other, exact = settings_of(scale, BASE.get(run.task, f"{run.task}-transformer"))
    assert (run.corpus, run.seeds) == (other.corpus, other.seeds)
    assert run.evaluation.model_dump(exclude={"swapped"}) == other.evaluation.model_dump(exclude={"swapped"})
    of_model = {"attention"}
    of_model |= {"copy-fixed": {"redraw_every"}, "transferred": {"swap_at"}}.get(variant, set())
    if run.task == "concatenated":  # the Transformer is as large as fits the memory
        of_model |= {"layers", "width", "hidden"}
    assert config.model_dump(exclude=of_model) == exact.model_dump(exclude=of_model)
    of_training: dict[str, Any] = {"updates": True} if variant in ("transferred", "scratch") else {}
    if scale == "bench" or (scale == "quick" and variant != "transferred"):  # each has the rate that was best for it
        of_training["optimizer"] = {"learning_rate"}
    if scale == "quick" and variant == "transferred":  # its rate must not have fallen when the weights are handed over
        of_training["schedule"] = True
    if scale == "bench" and "updates" in of_training:  # the rate drops when a fifth is left
        of_training["schedule"] = {"hold"}
    assert run.training.model_dump(exclude=of_training) == other.training.model_dump(exclude=of_training)


@pytest.mark.parametrize("scale", LEARNED)
def test_what_is_transferred_is_trained_like_the_transformer_and_then_like_scratch(scale: str) -> None:
    (exact, _), (transferred, config), (scratch, _) = (
        settings_of(scale, name) for name in ("copy-transformer", "transferred", "scratch")
    )
    fine_tuning = transferred.training.updates - config.swap_at
    assert fine_tuning > 0
    assert config.swap_at == exact.training.updates
    assert transferred.evaluation.checkpoint == exact.evaluation.checkpoint == "last"  # the best may be before it
    assert scratch.training.updates == fine_tuning < exact.training.updates / 2
    if scale == "bench":
        tried = ((exact, exact.training.updates), (transferred, fine_tuning), (scratch, fine_tuning))
        assert [run.training.updates - run.training.schedule.hold for run, _ in tried] == [n / 5 for _, n in tried]
        return
    assert transferred.training.optimizer == exact.training.optimizer
    if scale == "quick":
        assert transferred.training.schedule.hold == config.swap_at + 0.6 * fine_tuning
    else:
        assert transferred.training.schedule == exact.training.schedule


@scales
def test_swapped_weights_are_read_by_a_model_that_has_them(scale: str) -> None:
    run, config = settings_of(scale, "copy-transformer")
    assert set(run.evaluation.swapped) == {"positive"}
    changed = ModelConfig.model_validate(merge(run.model, run.evaluation.swapped["positive"]))
    assert config.model_dump(exclude={"attention"}) == changed.model_dump(exclude={"attention"})
    assert changed.attention == "positive"
    ours, theirs = (
        {name: weight.shape for name, weight in build_model(each, 11, True).named_parameters()}
        for each in (config, changed)
    )
    assert ours == theirs
