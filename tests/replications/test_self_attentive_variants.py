"""Every variant of every scale is what its name says, and the numbers of the paper are those of the code."""

import math
from functools import partial

import pytest

from replications.self_attentive.model import MaxPooledCNN, MeanPooledLSTM, PrunedLayer, TextClassifier
from replications.self_attentive.replication import build_model
from replications.self_attentive.settings import ModelConfig
from shared.data.cards import GeneratedSource, load_card
from shared.tasks.settings import RunConfig
from tests.replications.shipped_variants import REPLICATIONS, facts, parameters, scale_file_of, shipped

pytestmark = pytest.mark.usefixtures("shapes_alone")
CLASSES = {"sentiment": 5, "newsgroups": 20, "imdb": 2, "sst": 5, "yelp": 5, "age": 5, "snli": 3}
MATCHED = {
    "max-matched": "attention", "rows-1-matched": "attention", "attention-small": "max",
    "imdb-rows-1": "imdb-attention", "imdb-max": "imdb-attention",
}  # fmt: skip
GENERATED = {"evidence": "generated_evidence", "tally": "generated_tally", "few": "generated_tally"}
"""Variant to the one that it has as many parameters as."""

PAPER = {
    "d": 100, "u": 300, "attention": {"d_a": 350, "r": 30, "penalty": 1.0}, "cnn": {"features": 600, "window": 5},
    "dropout": 0.5,
}  # fmt: skip
SIZES = {
    "yelp": PAPER | {"encoder": "attention", "b": 3000},
    "age": PAPER | {"encoder": "attention", "b": 2000},
    "snli": {
        "encoder": "attention", "d": 300, "u": 300, "attention": {"d_a": 150, "r": 30, "penalty": 0.3}, "b": 4000,
        "relation": 600, "dropout": 0.0,
    },
}  # fmt: skip
"""Section 4's models."""

EPOCHS = {"yelp": (500_000, 32, 100), "age": (68_485, 16, 100), "snli": (549_367, 50, 4)}
"""Training texts, texts in a batch, epochs."""

PRINTED = {
    "t1-yelp": ("yelp", [61.99, 62.05, 64.21]),
    "t1-age": ("age", [77.40, 78.15, 80.45]),
    "t2": ("accuracy", [80.6, 83.3, 82.1, 83.2, 83.4, 81.4, 84.6, 84.4]),
    "t3-yelp": ("yelp", [64.21, 61.74]),
    "t3-age": ("age", [80.45, 79.27]),
}
"""Tables 1 to 3."""


scale_file = partial(scale_file_of, "self_attentive")


def classes(task: str) -> int:
    """How many a task has; of a generated one, every pair of values."""
    if task not in GENERATED:
        return CLASSES[task]
    (source,) = load_card(GENERATED[task]).sources
    assert isinstance(source, GeneratedSource)
    return int(source.parameters["values"] ** source.parameters["keys"])


def network(run: RunConfig, vocabulary: int) -> TextClassifier:
    return build_model(ModelConfig.model_validate(run.model), vocabulary, classes(run.task))


def parts(model: TextClassifier) -> list[int]:
    """In the order of paper.yaml, without what only the authors' code has."""
    attention = getattr(model.encoder, "attention", None)
    return [
        parameters(model.embedding),
        parameters(model.encoder) - parameters(attention),
        parameters(attention),
        parameters(model.relation),
        parameters(model.mlp),
    ]


@pytest.mark.parametrize(
    ("column", "task", "changes", "vocabulary", "only_theirs"),
    [
        ("Age", "age", {}, 0, 0),
        ("Yelp", "yelp", {}, 0, 0),
        ("BiLSTM + max pooling", "yelp", {"encoder": "max"}, 0, 0),
        ("SNLI", "snli", {}, 41_245, 150 + 30 + 4 * 300),
    ],
)
def test_the_parts_in_paper_yaml_are_those_of_the_modules(
    column: str, task: str, changes: dict[str, str], vocabulary: int, only_theirs: int
) -> None:
    """Of SNLI the total is what the authors' log counts, with two biases and four initial states more than ours."""
    counts = facts("self_attentive").parameter_counts
    assert counts is not None
    model = build_model(ModelConfig.model_validate(SIZES[task] | changes), vocabulary, CLASSES[task])
    assert [*parts(model), only_theirs] == [part[column] for part in counts.parts]
    assert parameters(model) + only_theirs == counts.totals[column]


def test_the_tables_are_printed_as_in_the_paper() -> None:
    tables = {table.id: table for table in facts("self_attentive").tables}
    assert tables.keys() == PRINTED.keys()
    for name, (column, numbers) in PRINTED.items():
        assert [row[column] for row in tables[name].rows] == numbers


@shipped("self_attentive")
def test_every_variant_is_what_its_name_says(scale: str, variant: str) -> None:
    settings = scale_file(scale)
    run = settings.run(variant)
    name = variant.removeprefix(f"{run.task}-")
    if name == "prior":
        assert run.model["prior"] == "set"
        return
    model, config = network(run, 1000), ModelConfig.model_validate(run.model)
    stem = name.removesuffix("-twice").removesuffix("-matched").removesuffix("-small")
    assert config.encoder == (stem if stem in ("max", "mean", "cnn") else "attention")
    assert isinstance(model.encoder, MaxPooledCNN) == (stem == "cnn")
    assert isinstance(model.encoder, MeanPooledLSTM) == (stem == "mean")
    assert isinstance(model.mlp[0], PrunedLayer) == (stem == "pruned")
    assert (model.relation is not None) == (run.task == "snli")
    usual = ModelConfig.model_validate(settings.run(attentive(run.task)).model).attention
    assert usual is not None
    if config.encoder == "attention":
        assert config.attention is not None
        rows = int(stem.removeprefix("rows-")) if stem.startswith("rows-") else usual.r
        assert model.encoder.rows == config.attention.r == rows
        named = {"penalty-0": 0.0, "penalty-code": 1.0, "penalty-tenth": 0.1, "penalty-1": 1.0}
        penalty = 0.0 if stem.startswith("rows-") else named.get(name, usual.penalty)
        assert config.attention.penalty == penalty
        assert (config.attention.penalty_over == "words") == (name == "penalty-code")


def attentive(task: str) -> str:
    """The self-attentive variant of a task, which the others are changes of."""
    return "attention" if task in ("evidence", "tally") else f"{task}-attention"


@shipped("self_attentive")
def test_networks_of_a_task_differ_in_nothing_but_what_they_are_named_for(scale: str, variant: str) -> None:
    settings = scale_file(scale)
    run = settings.run(variant)
    usual = settings.run(attentive(run.task))
    assert run.corpus == usual.corpus
    deletion = {"deletion", "deletion_draws"}  # at the bench scale attention's words alone are taken out
    assert run.evaluation.model_dump(exclude=deletion) == usual.evaluation.model_dump(exclude=deletion)
    if variant.endswith("-prior"):
        return
    named = {"encoder", "attention", "pruned", "b"}
    ours, theirs = (ModelConfig.model_validate(each.model).model_dump(exclude=named) for each in (run, usual))
    assert ours == theirs
    twice = variant.endswith("-twice")
    assert run.seeds == (usual.seeds[:3] if twice else usual.seeds)
    unclipped = {"clip"} if scale == "paper_scale" and variant.endswith("-cnn") else set()
    longer = {"updates": 2 * usual.training.updates} if twice else {}
    assert run.training.model_dump(exclude=unclipped) == usual.training.model_dump(exclude=unclipped) | longer
    if (
        run.task != "age"
        and variant.removeprefix("few-").removesuffix("-twice") not in MATCHED
        and not variant.endswith("pruned")
    ):
        assert run.model["b"] == usual.model["b"]


@pytest.mark.parametrize("scale", ["quick", "bench"])
@pytest.mark.parametrize("variant", MATCHED)
def test_matched_models_have_as_many_parameters(scale: str, variant: str) -> None:
    settings = scale_file(scale)
    if variant in settings.left_out:
        pytest.skip(settings.left_out[variant])
    count, wanted = (
        parameters(network(settings.run(name), 0)) for name in (variant, MATCHED[variant])
    )  # without word vectors, which all have alike
    assert count == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize("task", SIZES)
def test_the_papers_own_settings(task: str) -> None:
    text = (REPLICATIONS / "self_attentive/paper_scale/params.yaml").read_text(encoding="utf-8")
    settings = scale_file("paper_scale")
    run = settings.run(f"{task}-attention")
    assert run.model == SIZES[task]
    texts, batch, epochs = EPOCHS[task]
    assert run.training.batch.sentences == batch
    assert run.training.updates == epochs * math.ceil(texts / batch)
    optimizer = run.training.optimizer.model_dump(exclude={"epsilon"})
    if task == "snli":
        assert optimizer == {"name": "adagrad", "learning_rate": 0.01, "weight_decay": 0.0}
        assert run.training.clip is None
        return
    # 1e-4 times the sum of squares: twice that times the weight in the gradient.
    assert optimizer == {"name": "sgd", "learning_rate": 0.06, "weight_decay": 2e-4}
    assert run.training.clip == 0.5
    assert settings.run(f"{task}-cnn").training.clip is None
    for baseline in ("max", "cnn"):
        assert settings.run(f"{task}-{baseline}").model["b"] == 3000
    hidden = network(settings.run(f"{task}-pruned"), 0).mlp[0]
    assert isinstance(hidden, PrunedLayer)
    assert hidden.size == pytest.approx(run.model["b"], rel=0.01)
    assert f"{math.ceil(texts / batch):,}" in text
