"""Every variant of every scale is what its name says, and sizes are those that can be computed by hand."""

from functools import partial

import pytest

from replications.linear_transformer.model import HashedAttention, LinearAttention, SoftmaxAttention
from replications.linear_transformer.replication import STUDIES, build_model
from replications.linear_transformer.settings import ModelConfig
from shared.layers.outputs import CategoricalOutput, MixtureOfLogistics
from shared.tasks.sequences.settings import SequenceRun
from tests.replications.shipped_variants import scale_file_of, shipped

pytestmark = pytest.mark.usefixtures("shapes_alone")
ATTENTIONS = {"softmax": SoftmaxAttention, "linear": LinearAttention, "lsh": HashedAttention}
LEVELS = 257
"""Symbols of pixels, with the one that stands before the first."""


scale_file = partial(scale_file_of, "linear_transformer")


def settings_of(scale: str, variant: str) -> tuple[SequenceRun, ModelConfig]:
    run = scale_file(scale).run(variant)
    assert isinstance(run, SequenceRun)
    return run, ModelConfig.model_validate(run.model)


@shipped("linear_transformer", *STUDIES)
def test_every_variant_is_what_its_name_says(scale: str, variant: str) -> None:
    run, config = settings_of(scale, variant)
    task, attention, *rounds = variant.removesuffix("-twice").split("-")
    assert (run.task, config.attention) == (task, attention)
    assert config.rounds == int(rounds[0]) if attention == "lsh" else not rounds
    pixels = config.output == "logistics"
    model = build_model(config, 11, run.corpus.causal)
    assert run.corpus.causal
    assert model.recurrent == (attention != "lsh")
    assert {type(layer.attention) for layer in model.layers} == {ATTENTIONS[attention]}
    assert isinstance(model.output, MixtureOfLogistics if pixels else CategoricalOutput)
    assert run.corpus.of == ("copies" if task == "copy" else "pixels")
    assert pixels == (run.corpus.of == "pixels")
    assert (run.evaluation.pictures is not None) == pixels


@shipped("linear_transformer", *STUDIES)
def test_variants_of_a_task_differ_in_nothing_but_attention(scale: str, variant: str) -> None:
    run, config = settings_of(scale, variant)
    other, linear = settings_of(scale, f"{run.task}-linear")
    assert (run.corpus, run.evaluation) == (other.corpus, other.evaluation)
    assert run.seeds == (other.seeds[:3] if variant.endswith("-twice") else other.seeds)
    of_model = {"attention", "rounds"}
    assert config.model_dump(exclude=of_model) == linear.model_dump(exclude=of_model)
    if (scale, variant) == ("paper_scale", "cifar10-softmax"):  # equal time, and not equal epochs
        pictures = [each.training.updates * each.training.batch.sentences for each in (run, other)]
        assert pictures[1] == 3 * pictures[0]
        but = {"updates", "batch"}
        assert run.training.model_dump(exclude=but) == other.training.model_dump(exclude=but)
    elif variant.endswith("-twice"):
        assert run.training.updates == 2 * other.training.updates
        assert run.training.model_dump(exclude={"updates"}) == other.training.model_dump(exclude={"updates"})
    elif scale_file(scale).path.with_name("search.yaml").exists():  # each attention was given the rate that suits it
        rates = [each.training.optimizer.model_copy(update={"learning_rate": None}) for each in (run, other)]
        assert rates[0] == rates[1]
        assert run.training.model_dump(exclude={"optimizer"}) == other.training.model_dump(exclude={"optimizer"})
    else:
        assert run.training == other.training


@shipped("linear_transformer", *STUDIES)
def test_models_have_room_for_the_longest_sequence(scale: str, variant: str) -> None:
    """What step by step softmax attention reads beyond it is lost."""
    run, config = settings_of(scale, variant)
    if run.corpus.of == "copies":
        assert config.max_length == 2 * run.corpus.longest + 1
    else:
        pixels = {"mnist": 28 * 28, "generated_pictures": 28 * 28, "cifar10": 3 * 32 * 32}[run.corpus.dataset]
        assert config.max_length == pixels // run.corpus.pool**2
    assert config.chunk is not None
    assert config.chunk * 2 < config.max_length  # LSH does not see all


@pytest.mark.parametrize("scale", ["quick", "paper_scale"])
def test_generation_is_timed_with_the_papers_network_for_mnist(scale: str) -> None:
    """Whatever is trained at that scale; at the quick one with half of its layers."""
    asked = scale_file(scale).run("generation").model
    paper = settings_of("paper_scale", "mnist-linear")[1]
    for name in ("heads", "width", "hidden", "buckets", "chunk"):
        assert asked[name] == getattr(paper, name)
    assert asked["layers"] == (paper.layers // 2 if scale == "quick" else paper.layers)
    assert (asked["length"], asked["symbols"]) == (paper.max_length, LEVELS)
