"""Every variant of every scale is what its name says, and the paper's settings are those of the released scripts."""

from functools import partial

import pytest

from replications.transformer_xl.model import LSTMLanguageModel, TransformerXL
from replications.transformer_xl.replication import build_model
from replications.transformer_xl.settings import ModelConfig
from shared.attention.multi_head import MultiHeadAttention
from shared.attention.relative import LearnedDistances, ProjectedDistances
from shared.tasks.language.settings import LanguageRun
from tests.replications.shipped_variants import parameters, scale_file_of, shipped

pytestmark = pytest.mark.usefixtures("shapes_alone")
LARGER = {"wikitext103-base", "wikitext103-large", "enwik8-24l", "lm1b-large"}
"""Than what the other variants of their task are changes of."""

scale_file = partial(scale_file_of, "transformer_xl")


def settings_of(scale: str, variant: str) -> tuple[LanguageRun, ModelConfig]:
    run = scale_file(scale).run(variant)
    assert isinstance(run, LanguageRun)
    return run, ModelConfig.model_validate(run.model)


def usual(task: str) -> str:
    """The variant of a task that the others are changes of."""
    suffix = {"wikitext103": "ablation", "enwik8": "12l", "text8": "24l", "lm1b": "base"}
    return "xl" if task == "bible" else f"{task}-{suffix.get(task, 'xl')}"


@shipped("transformer_xl", "evaluation-speed")
def test_every_variant_is_what_its_name_says(scale: str, variant: str) -> None:
    run, config = settings_of(scale, variant)
    parts = set(variant.split("-"))
    model = build_model(config, 1000 + max(config.cutoffs, default=0), None)
    if "lstm" in parts:
        assert isinstance(model, LSTMLanguageModel)
    else:
        assert isinstance(model, TransformerXL)
        attention = model.layers[0].attention
        assert isinstance(attention, MultiHeadAttention) == ("absolute" in parts)
        if "absolute" not in parts:
            kind = LearnedDistances if "shaw" in parts else ProjectedDistances
            assert isinstance(attention.positions, kind)
    forgets = "no-memory" in variant or ("absolute" in parts and "memory" not in parts)
    assert (run.training.memory == 0) == (run.evaluation.reach.memory == 0) == forgets
    assert (run.training.loss_on == "last_half") == ("half" in parts)
    if not forgets and "lstm" not in parts:
        assert run.training.memory == run.training.batch.length  # M = L in training (section 4.1)
        assert run.evaluation.reach.memory >= run.training.memory
    assert run.corpus.shuffled == (run.task == "sentences")


@shipped("transformer_xl", "evaluation-speed", *LARGER)
def test_variants_of_a_task_differ_in_nothing_but_what_they_are_named_for(scale: str, variant: str) -> None:
    run, config = settings_of(scale, variant)
    other, rival = settings_of(scale, usual(run.task))
    assert run.corpus == other.corpus
    assert set(run.seeds) <= set(other.seeds)
    assert run.evaluation.block == other.evaluation.block  # examples are compared pair by pair
    of_training = {"memory", "loss_on"} | ({"updates"} if "twice" in variant else set())
    if config.network == "lstm":
        of_training |= {"optimizer"}
    else:
        of_model = {"positions", "shaw_distances"}
        if config.positions == "absolute":
            of_model |= {"dropatt"}
        assert config.model_dump(exclude=of_model) == rival.model_dump(exclude=of_model)
    assert run.training.model_dump(exclude=of_training) == other.training.model_dump(exclude=of_training)


@pytest.mark.parametrize(
    ("scale", "variant"),
    [("quick", "recall-lstm"), ("bench", "ptb-lstm"), ("bench", "characters-lstm")],
)
def test_an_lstm_has_at_least_as_many_parameters_as_what_it_is_compared_with(scale: str, variant: str) -> None:
    run, config = settings_of(scale, variant)
    vocabulary = getattr(run.corpus.tokenizer, "size", 286)  # so many characters there are in WikiText-2
    _, rival = settings_of(scale, usual(run.task))
    count, wanted = (parameters(build_model(each, vocabulary, None)) for each in (config, rival))
    assert 0.95 <= count / wanted <= 2
