"""Every variant of every scale is what its name says, and the sizes in paper.yaml are those of the code."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from replications.transformer.model import Transformer
from replications.transformer.replication import REPLICATION, build_model
from replications.transformer.settings import ModelConfig
from shared.claims.scales import SCALES
from shared.data.batching import endless_batches
from shared.data.cards import GeneratedSource, load_card
from shared.data.generated import generate
from shared.data.ragged import RaggedArray
from shared.layers.positions import LearnedPositions, NoPositions, SinusoidalPositions
from shared.pipeline.config import ScaleFile
from shared.tasks.replication import runner_of
from shared.tasks.settings import RunConfig
from shared.tasks.translation.corpus import ParallelText
from shared.tasks.translation.evaluation import training_operations
from tests.replications.shipped_variants import facts, parameters, scale_file_of, shipped

pytestmark = pytest.mark.usefixtures("shapes_alone")
V = 37_000
RIVALS = {"rnnsearch": "RNNsearch", "luong": "EncoderDecoder", "lstm": "EncoderDecoder"}
CHANGES: dict[str, dict[str, float]] = {
    "heads-1": {"h": 0}, "heads-half": {"h": 1 / 2}, "heads-2x": {"h": 2}, "heads-4x": {"h": 4},
    "keys-quarter": {"d_k": 1 / 4}, "keys-half": {"d_k": 1 / 2},
    "layers-third": {"N": 1 / 3}, "layers-two-thirds": {"N": 2 / 3}, "layers-four-thirds": {"N": 4 / 3},
    "width-half": {"d_model": 1 / 2, "d_k": 1 / 2, "d_v": 1 / 2},
    "width-2x": {"d_model": 2, "d_k": 2, "d_v": 2},
    "ff-half": {"d_ff": 1 / 2}, "ff-2x": {"d_ff": 2},
    "dropout-0": {"p_drop": 0}, "dropout-2x": {"p_drop": 2},
    "big": {"d_model": 2, "d_ff": 2, "h": 2, "p_drop": 3},
    "agreement-heads-1": {"h": 0}, "agreement-heads-4x": {"h": 4},
    "agreement-width-half": {"d_model": 1 / 2, "d_k": 1 / 2, "d_v": 1 / 2},
    "agreement-width-quarter": {"d_model": 1 / 4, "d_k": 1 / 4, "d_v": 1 / 4},
    "agreement-keys-quarter": {"d_model": 1 / 2, "d_k": 1 / 8, "d_v": 1 / 2},
}  # fmt: skip
"""By how much table 3's rows change the base model; 0 heads are one, and heads change K and V against their number."""


def sizes(run: RunConfig) -> dict[str, float]:
    """Of one of our own networks, by the names of table 3."""
    config = ModelConfig.model_validate(run.model)
    own = config.model_dump(include={"N", "d_model", "d_ff", "h", "p_drop"})
    return own | {name: getattr(config, name) or config.d_model // config.h for name in ("d_k", "d_v")}


def body(s: dict[str, float]) -> float:
    """All but embeddings: of each layer its projections, its feed-forward network and its norms."""
    attention = 2 * s["d_model"] * s["h"] * (s["d_k"] + s["d_v"])
    feed_forward = 2 * s["d_model"] * s["d_ff"] + s["d_ff"] + s["d_model"]
    return s["N"] * (3 * attention + 2 * feed_forward + (4 + 6) * s["d_model"])


def network(run: RunConfig, vocabulary: int) -> nn.Module:
    """A variant's, whosever it is."""
    if "paper" not in run.model:
        return build_model(ModelConfig.model_validate(run.model), vocabulary, vocabulary)
    lent = {key: run.model[key] for key in ("paper", "settings")}
    lender, borrowed = runner_of(REPLICATION, run.model_copy(update={"model": lent}))
    return lender.model(borrowed, (vocabulary, vocabulary))


@pytest.mark.parametrize("variant", ["base", "big"])
def test_the_parts_in_paper_yaml_are_those_of_the_modules(variant: str) -> None:
    model = network(scale_file_of("transformer", "paper_scale").run(variant), V)
    assert isinstance(model, Transformer)
    counts = facts("transformer").parameter_counts
    assert counts is not None
    parts = [parameters(part) for part in (model.embedding, model.encoder, model.decoder)]
    assert parts == [part[variant] for part in counts.parts]
    assert sum(parts) == parameters(model) == counts.totals[variant]


def test_every_row_of_table_3_has_the_parameters_that_paper_yaml_derives() -> None:
    """The closed form; and the vocabularies, as the note says, with which it rounds to what the paper prints."""
    settings = scale_file_of("transformer", "paper_scale")
    (table,) = (table for table in facts("transformer").tables if table.id == "t3")
    fitting = {}  # the least and the largest vocabulary, of all rows that print a number
    for number, row in enumerate(table.rows):
        (variant,) = table.variants(number)
        run = settings.run(variant)
        width, count = run.model["d_model"], parameters(network(run, V))
        positions = run.model.get("positions", {}).get("count", 0) * width
        assert count == body(sizes(run)) + V * width + positions, variant
        assert row["derived"] == (None if positions else round(count / 1e6, 2)), variant
        if row["parameters"] is not None:
            fitting[variant] = [(1e6 * (row["parameters"] + half) - body(sizes(run))) / width for half in (-0.5, 0.5)]
    big = fitting.pop("big")
    lows, highs = zip(*fitting.values(), strict=True)
    bounds = [math.ceil(max(lows)), math.floor(min(highs)), math.ceil(big[0]), math.floor(big[1])]
    assert bounds == [41_004, 41_208, 35_368, 36_344]
    assert table.note is not None
    assert all(f"{bound:,}" in table.note for bound in bounds)


@shipped("transformer", "complexity")
def test_every_variant_is_what_its_name_says(scale: str, variant: str) -> None:
    run = scale_file_of("transformer", scale).run(variant)
    model = network(run, run.corpus.tokenizer.size)
    assert run.corpus.tokenizer.joint
    rival = RIVALS.get(variant.removesuffix("-twice").rsplit("-", 1)[-1])
    assert type(model).__name__ == (rival or "Transformer")
    if rival is not None:
        assert (getattr(model, "attention", None) is None) == variant.endswith("lstm")
        return
    assert isinstance(model, Transformer)
    kinds = {"learned-positions": LearnedPositions, "no-positions": NoPositions}
    assert type(model.positions) is kinds.get(variant, SinusoidalPositions)
    assert (model.encoder[0].attention.scale != 1.0) == (variant != "unscaled")
    assert model.embedding.num_embeddings == run.corpus.tokenizer.size


@pytest.mark.parametrize(
    ("scale", "compared"), [(scale, "base") for scale in SCALES if scale != "bench"] + [("quick", "agreement-base")]
)
def test_rows_of_table_3_change_what_they_are_named_for_and_nothing_else(scale: str, compared: str) -> None:
    settings = scale_file_of("transformer", scale)
    base = settings.run(compared)
    rate = base.training.optimizer.learning_rate * base.model["d_model"] ** 0.5
    for variant in settings.buildable():
        run = settings.run(variant)
        if run.task != base.task or {"paper", "study"} & run.model.keys():
            continue
        expected = sizes(base)
        for name, factor in CHANGES.get(variant, {}).items():
            expected[name] = max(1, factor * expected[name]) if name == "h" else factor * expected[name]
        if "heads" in variant or variant == "big":
            expected |= dict.fromkeys(("d_k", "d_v"), expected["d_model"] / expected["h"])
        assert sizes(run) == pytest.approx(expected), variant
        smoothing = {"smoothing-0": 0, "smoothing-2x": 2}.get(variant, 1) * base.training.label_smoothing
        assert run.training.label_smoothing == pytest.approx(smoothing), variant
        if scale != "quick":  # there the rate is searched for
            assert run.training.optimizer.learning_rate * run.model["d_model"] ** 0.5 == pytest.approx(rate, rel=3e-3)
        times = 2 if variant.endswith("-twice") else 1
        assert variant == "big" or run.training.updates == times * base.training.updates


@pytest.mark.parametrize(
    ("variant", "updates", "averaged", "beam", "alpha", "extra"),
    [
        ("corpus-base", 100_000, (5, 1_500), 4, 0.6, 50), ("corpus-big", 300_000, (20, 600), 4, 0.6, 50),
        ("french-big", 300_000, (20, 600), 4, 0.6, 50), ("base", 100_000, None, 4, 0.6, 50),
        ("parsing-transformer", 100_000, None, 21, 0.3, 300),
    ],
)  # fmt: skip
def test_paper_scale_trains_and_searches_as_the_paper_does(variant, updates, averaged, beam, alpha, extra) -> None:
    run = scale_file_of("transformer", "paper_scale").run(variant)
    training, decoding = run.training, run.decoding
    assert (training.updates, (training.batch.tokens or 0) * training.accumulate) == (updates, 25_000)
    assert (training.average and (training.average.last, training.average.every)) == averaged
    assert (training.label_smoothing, training.smoothing_over, training.clip) == (0.1, "others", None)
    assert (decoding.beam, decoding.alpha, decoding.maximum_ratio, decoding.maximum_extra) == (beam, alpha, 1, extra)


@pytest.mark.parametrize("task", ["table3", "corpus", "iwslt", "parsing"])
def test_paper_scale_s_learning_rate_is_the_paper_s_formula(task: str) -> None:
    settings = scale_file_of("transformer", "paper_scale")
    run = next(settings.run(v) for v in settings.buildable() if settings.task_of(v) == task)
    warmup = run.training.schedule.warmup
    assert warmup == 4000
    formula = run.model["d_model"] ** -0.5 * warmup**-0.5
    assert run.training.optimizer.learning_rate == pytest.approx(formula, rel=1e-5)


def pairs_of(settings: ScaleFile, task: str) -> ParallelText:
    """As long as those a task is trained on: generated ones by generating them, and of real text invented ones."""
    random = np.random.default_rng(1)
    pieces = random.gamma(8, 4, (1000, 1)) + random.normal((0, 1), 3, (1000, 2))
    lengths = pieces.round().clip(5, 80).astype(int).tolist()
    (source, *_) = load_card(settings.dataset(task)).sources
    if isinstance(source, GeneratedSource):
        segments = generate(source.task, source.parameters)["train"]
        lengths = [[len(text.split()) for text in segment.texts] for segment in segments]
    sides = [RaggedArray.pack([[4] * pair[side] for pair in lengths]) for side in range(2)]
    return ParallelText(*sides, sides[0].lengths)


@pytest.mark.parametrize(
    ("scale", "ours", "rival"), [("quick", "base", "rnnsearch"), ("bench", "parsing-transformer", "parsing-luong")]
)
def test_rivals_are_trained_at_equal_cost(scale: str, ours: str, rival: str) -> None:
    settings = scale_file_of("transformer", scale)
    text = pairs_of(settings, settings.task_of(ours))
    lengths = text.target.lengths + 1, text.source.lengths + 1
    costs = {}
    for variant in (ours, rival):
        run = settings.run(variant)
        with torch.device("cpu"):
            costs[variant] = training_operations(
                network(run, run.corpus.tokenizer.size).eval(), text,
                endless_batches(lengths, seed=1, **run.training.batch.model_dump(exclude={"length"})),
                updates=[run.training.updates], accumulate=run.training.accumulate,
            )["training_operations"]  # fmt: skip
    assert costs[rival] == pytest.approx(costs[ours], rel=0.05)
