"""What is said of Dai et al. (2019): its tables and sizes as printed, its own settings, and figures in the claims."""

import math
import re
from collections.abc import Iterator
from functools import partial

import pytest
from torch import nn

from replications.transformer_xl.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from replications.transformer_xl.model import LSTMLanguageModel, TransformerXL
from replications.transformer_xl.replication import build_model
from replications.transformer_xl.settings import ModelConfig
from shared.attention.multi_head import MultiHeadAttention
from shared.attention.relative import GlobalBiases, LearnedDistances, ProjectedDistances
from shared.claims.comparisons import Sides
from shared.claims.scales import SCALES
from shared.claims.schema import Claim, load_claims
from shared.pipeline.config import ScaleFile
from shared.tasks.language.settings import LanguageRun
from tests.replications.shipped_variants import REPLICATIONS, facts, scale_file_of, shipped

pytestmark = pytest.mark.usefixtures("shapes_alone")
FOLDER = REPLICATIONS / "transformer_xl"
scales = pytest.mark.parametrize("scale", SCALES)
PRINTED = {
    "t1": [48.7, 45.2, 44.9, 40.8, 37.2, 33.0, 29.9, 24.0, 20.5, 18.3],
    "t2": [1.34, 1.32, 1.27, 1.25, 1.24, 1.23, 1.11, 1.06, 1.06, 1.03, 0.99],
    "t3": [1.36, 1.29, 1.27, 1.27, 1.18, 1.13, 1.08],
    "t4": [52.9, 51.3, 36.0, 31.9, 30.6, 30.0, 34.1, 28.0, 24.0, 24.1, 23.7, 23.5, 21.8],
    "t5": [73.2, 65.4, 64.0, 58.8, 58.6, 56.1, 55.97, 55.3, 54.52, 57.3, 54.44],
    "t6": [26.77, 27.94, 28.33, 29.02, 30.10, 29.75, 30.50, 30.97, 31.16, 23.09, 23.16, 23.35],
    "t7": [25.2, 25.7, 27.1],
    "t8": [900, 500, 400, 700, 400, 300, 128],
    "t9": [1874, 1409, 773, 363],
    "t10": [26.77, 28.33, 27.98, 28.83],
}
"""The main column of each table."""
MAIN = {"t6": "best", "t8": "tenth", "t9": "slower", "t10": "best"} | dict.fromkeys(("t2", "t3"), "bpc")

WORDS, NEWS = (20_000, 40_000, 200_000), (60_000, 100_000, 640_000)
TIED = (False, True, True, True)
RELEASED = {
    "enwik8 12L": (204, 12, 512, 8, 64, 2048, (), 1, ()),
    "text8 12L": (27, 12, 512, 8, 64, 2048, (), 1, ()),
    "enwik8 24L": (204, 24, 1024, 8, 128, 3072, (), 1, ()),
    "WT103 base": (267_735, 16, 410, 10, 41, 2100, WORDS, 1, ()),
    "WT103 base, fairseq": (267_744, 16, 410, 10, 41, 2100, WORDS, 1, ()),
    "WT103 large": (267_735, 18, 1024, 16, 64, 4096, WORDS, 4, TIED),
    "LM1B base": (793_471, 18, 1024, 8, 128, 4096, NEWS, 4, ()),
    "LM1B large": (793_471, 24, 1280, 16, 80, 8192, NEWS, 4, ()),
}
"""Vocabulary, n_layer, d_model, n_head, d_head, d_inner, cutoffs, div_val and tied projections of the scripts."""

SETTINGS = {
    "enwik8-12l": ("enwik8 12L", 0.1, 0.0, 0, 400_000, 512, 22, (80, 2100, 820)),
    "enwik8-24l": ("enwik8 24L", 0.15, 0.15, 4000, 400_000, 768, 64, (128, 3800, 1000)),
    "text8-24l": ("enwik8 24L", 0.15, 0.15, 4000, 400_000, 768, 64, (128, 3800, 1000)),
    "wikitext103-base": ("WT103 base", 0.1, 0.0, 0, 200_000, 150, 60, (64, 640, 400)),
    "wikitext103-large": ("WT103 large", 0.2, 0.2, 16_000, 4_000_000, 384, 128, (128, 1600, 1000)),
    "lm1b-base": ("LM1B base", 0.0, 0.0, 20_000, 500_000, 32, 224, (32, 128, None)),
    "lm1b-large": ("LM1B large", 0.05, 0.05, 30_000, 1_200_000, 32, 512, (32, 128, None)),
}
"""Sizes, dropout, dropatt, warm-up, steps, tgt_len and mem_len, batch; tgt_len, mem_len, clamp_len of evaluation."""


def claims(scale: str) -> tuple[Claim, ...]:
    return load_claims(FOLDER / "claims.yaml", scale).claims


def compared(scale: str) -> Iterator[tuple[Sides, list[str]]]:
    """All comparisons, with the variants of each that are run at this scale."""
    settings = ScaleFile("transformer_xl", scale)
    for claim in claims(scale):
        for row in claim.rows():
            if isinstance(row, Sides):
                yield row, [name for name in row.compared() if name in settings.variants]


def parameters(*modules: nn.Module | nn.Parameter | None) -> int:
    """How many, each counted once."""
    found = {
        id(each): each.numel()
        for module in modules if module is not None
        for each in ([module] if isinstance(module, nn.Parameter) else module.parameters())
    }  # fmt: skip
    return sum(found.values())


def softmax(vocabulary: int, width: int, *, cutoffs=(), div_val=1, tied=()) -> AdaptiveSoftmax:
    embedding = AdaptiveEmbedding(vocabulary=vocabulary, width=width, cutoffs=cutoffs, div_val=div_val)
    return AdaptiveSoftmax(embedding, tied_projections=tied)


def network(name: str, *, untied: bool = False) -> TransformerXL:
    vocabulary, layers, width, heads, key_size, hidden_size, cutoffs, div_val, tied = RELEASED[name]
    return TransformerXL(
        softmax=softmax(vocabulary, width, cutoffs=cutoffs, div_val=div_val, tied=tied), layers=layers,
        heads=heads, key_size=key_size, hidden_size=hidden_size, untied_biases=untied,
    )  # fmt: skip


def parts(model: TransformerXL) -> list[int]:
    """In the order of paper.yaml."""
    biases = parameters(*(module for module in model.modules() if isinstance(module, GlobalBiases)))
    out = model.softmax
    return [
        parameters(out.embedding.tables),
        parameters(out.embedding.projections),
        parameters(model.layers) - biases,
        biases,
        parameters(out.biases, out.cluster_weight),
        parameters(out.projections),
    ]


@pytest.mark.parametrize("name", RELEASED)
def test_the_sizes_in_paper_yaml_are_those_of_the_modules(name: str) -> None:
    counts = facts("transformer_xl").parameter_counts
    assert counts is not None
    model = network(name, untied=name.endswith("fairseq"))
    assert parts(model) == [part[name] for part in counts.parts]
    assert parameters(model) == counts.totals[name]


def test_sizes_that_notes_name_are_right() -> None:
    assert parameters(network("WT103 large", untied=True)) == 285_205_322
    scale = ScaleFile("transformer_xl", "paper_scale")
    run = scale.run("wikitext103-ablation")
    assert isinstance(run.corpus.tokenizer.size, int)
    seven_layers = build_model(ModelConfig.model_validate(run.model), run.corpus.tokenizer.size, None)
    assert f"{parameters(seven_layers):,} weights" in " ".join(" ".join(scale.deviations).split())
    assert parameters(seven_layers) == 128_008_510


def test_the_tables_are_printed_as_in_the_paper() -> None:
    tables = {table.id: table for table in facts("transformer_xl").tables}
    assert tables.keys() == PRINTED.keys()
    for name, printed in PRINTED.items():
        assert [row[MAIN.get(name, "ppl")] for row in tables[name].rows] == printed


@scales
def test_every_comparison_finds_its_measure(scale: str) -> None:
    settings = ScaleFile("transformer_xl", scale)
    asked = [(each.metric, settings.run(name)) for each, run in compared(scale) for name in run]
    assert asked
    for metric, run in asked:
        numbers, judged = [int(number) for number in re.findall(r"\d+", metric)], run.evaluation
        if metric.startswith(("bits_saved@", "bits@", "word_perplexity@")):
            assert judged.memories
            assert {*numbers} <= {judged.reach.memory, *judged.memories}
        elif metric.startswith(("bits_start", "bits_rest", "start_excess")):
            assert judged.sliding is None
        elif metric.startswith("recl_"):
            assert judged.contexts is not None
        elif metric.startswith("recalled@"):
            assert run.corpus.recalls is not None
        elif "@" in metric:
            assert {*numbers} <= {*run.model["lengths"]}
        else:
            assert metric == "nll_per_token" or (run.corpus.unit == "word") == (metric == "word_perplexity")


@pytest.mark.parametrize("scale", ["quick", "bench", "paper_scale"])
def test_ratios_of_context_lengths_can_be_reached(scale: str) -> None:
    """By a model that uses all it can see, against one without memory that uses its whole window."""
    settings = ScaleFile("transformer_xl", scale)
    asked = [(each, run) for each, run in compared(scale) if each.metric.startswith("recl_") and len(run) == 2]
    assert asked
    for each, run in asked:
        ours, theirs = map(settings.run, run)
        contexts, reach = ours.evaluation.contexts, ours.evaluation.reach.memory
        assert contexts == theirs.evaluation.contexts
        seen = contexts.most
        if contexts.of == "recalls":  # each is of one earlier word, so that layers do not add up
            seen = min(seen, reach + min(contexts.step, ours.evaluation.length))
        window = theirs.evaluation.sliding
        if window is not None:
            on_grid = -(-window.context // contexts.step) * contexts.step
            assert each.relevant < seen / on_grid


def test_the_effects_of_the_paper_are_those_of_its_tables() -> None:
    printed = {claim.id: claim.primary.paper for claim in claims("paper_scale") if claim.primary}
    assert printed["D19-C1"] == pytest.approx(29.02 / 26.77, abs=5e-4)
    assert printed["D19-C2"] == pytest.approx(27.1 / 25.2, abs=5e-4)
    assert printed["D19-C3"] == pytest.approx(27.94 / 26.77, abs=5e-4)
    assert printed["D19-C4"] == pytest.approx(math.log2(23.35 / 23.09), abs=5e-4)
    assert printed["D19-C5"] == pytest.approx(700 / 128, abs=5e-3)


@pytest.mark.parametrize("variant", SETTINGS)
def test_the_papers_own_settings(variant: str) -> None:
    sizes, dropout, dropatt, warmup, updates, length, batch, (segment, memory, clamp) = SETTINGS[variant]
    run = ScaleFile("transformer_xl", "paper_scale").run(variant)
    names = ("n_layer", "d_model", "n_head", "d_head", "d_inner", "cutoffs", "div_val", "tied_projections")
    defaults = {"tied_projections": [], "untie_r": False}
    model = defaults | run.model
    expected = [list(value) if isinstance(value, tuple) else value for value in RELEASED[sizes][1:]]
    assert [model[name] for name in names] == expected
    assert (model["dropout"], model["dropatt"], model["init_std"]) == (dropout, dropatt, 0.02)
    assert (model["network"], model["positions"], model["untie_r"]) == ("transformer", "relative", False)
    training = run.training
    assert training.optimizer.model_dump(include={"name", "learning_rate"}) == {
        "name": "adam", "learning_rate": 2.5e-4
    }  # fmt: skip
    assert (training.schedule.name, training.schedule.warmup, training.clip) == ("cosine", warmup, 0.25)
    assert (training.updates, training.batch.sentences) == (updates, batch)
    assert (training.batch.length, training.memory) == (length, length)
    assert (training.validate_every, training.loss_on) == (4000, "all")
    reach = run.evaluation.reach
    assert (run.evaluation.length, reach.memory, reach.same_length, reach.clamp) == (segment, memory, True, clamp)


def test_the_ablations_differ_in_what_their_rows_of_table_6_say() -> None:
    settings = ScaleFile("transformer_xl", "paper_scale")
    table = {table.id: table for table in facts("transformer_xl").tables}["t6"]
    named = {name: row for row in range(9) for name in table.variants(row) if name.startswith("wikitext103")}
    assert len(named) == 4
    for name, row in named.items():
        label, run = str(table.rows[row]["label"]), settings.run(name)
        recurrent, judged = "recurrence" in label, run.evaluation
        assert (run.training.batch.length, run.model["n_layer"]) == (128, 7)
        assert run.training.memory == (128 if recurrent else 0)
        assert run.training.loss_on == ("last_half" if "half" in label else "all")
        encodings = {"relative": "relative", "Shaw": "shaw", "Vaswani": "absolute"}
        assert run.model["positions"] == next(value for key, value in encodings.items() if key in label)
        seen = judged.reach.memory if judged.sliding is None else judged.sliding.context
        assert seen == table.rows[row]["length"]
        assert (judged.sliding is None) == recurrent


@pytest.mark.parametrize(("task", "vocabulary"), [("ptb", 10_002), ("characters", 286)])
def test_the_rivals_of_the_bench_scale_have_as_many_parameters(task: str, vocabulary: int) -> None:
    settings = ScaleFile("transformer_xl", "bench")
    ours, lstm = settings.run(f"{task}-xl"), settings.run(f"{task}-lstm")
    model = TransformerXL(
        softmax=softmax(vocabulary, ours.model["d_model"]), layers=ours.model["n_layer"],
        heads=ours.model["n_head"], key_size=ours.model["d_head"], hidden_size=ours.model["d_inner"],
    )  # fmt: skip
    rival = LSTMLanguageModel(softmax=softmax(vocabulary, lstm.model["d_model"]), layers=lstm.model["n_layer"])
    assert 0.95 < parameters(rival) / parameters(model) < 1.35
    for name in ("updates", "batch", "memory"):
        assert getattr(lstm.training, name) == getattr(ours.training, name)


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
    ("scale", "variant"), [("quick", "recall-lstm"), ("bench", "ptb-lstm"), ("bench", "characters-lstm")]
)
def test_an_lstm_has_at_least_as_many_parameters_as_what_it_is_compared_with(scale: str, variant: str) -> None:
    run, config = settings_of(scale, variant)
    vocabulary = getattr(run.corpus.tokenizer, "size", 286)  # so many characters there are in WikiText-2
    _, rival = settings_of(scale, usual(run.task))
    count, wanted = (parameters(build_model(each, vocabulary, None)) for each in (config, rival))
    assert 0.95 <= count / wanted <= 2
