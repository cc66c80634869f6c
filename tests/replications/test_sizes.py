"""The parameter counts of paper.yaml are those of the models that the paper's own scale builds, part by part."""

import importlib
import math
from typing import Any

import pytest

from replications.transformer.settings import ModelConfig
from shared.attention.relative import GlobalBiases
from shared.vision.features import Grid
from tests.replications.shipped_variants import facts, parameters, scale_file_of

pytestmark = pytest.mark.usefixtures("shapes_alone")


def section(paper: str, variant: str, scale: str = "paper_scale", **changes: object) -> dict[str, object]:
    return {**scale_file_of(paper, scale).run(variant).model, **changes}


def built(paper: str, variant: str, *sizes: object, scale: str = "paper_scale", **changes: object) -> Any:
    """The model of a variant, which is of the paper's own scale unless another is given."""
    module = importlib.import_module(f"replications.{paper}.replication")
    config = module.settings.ModelConfig.model_validate(section(paper, variant, scale, **changes))
    return module.build_model(config, *sizes)


def of_texts(variant: str, vocabulary: int, classes: int, only_theirs: int = 0) -> list[int]:
    """The program counts biases of the attention and initial states, too."""
    model = built("self_attentive", variant, vocabulary, classes)
    attention = getattr(model.encoder, "attention", None)
    encoder = parameters(model.encoder) - parameters(attention)
    heads = parameters(attention), parameters(model.relation), parameters(model.mlp)
    return [parameters(model.embedding), encoder, *heads, only_theirs]


def of_captions(variant: str) -> list[int]:
    model = built("show_attend_tell", variant, 10_000, Grid(14, 14, 512))
    decoder = model.decoder
    lstm = parameters(decoder.from_y) + decoder.from_h.numel() + decoder.from_z.numel()
    attention = parameters(decoder.glimpse) + decoder.w_d.numel()
    ends = parameters(model.embedding), parameters(model.initial)
    return [*ends, lstm, attention, parameters(decoder.f_beta), parameters(model.output)]


def of_recurrent(variant: str, biases: int) -> list[int]:
    """Without biases, of which there are so many."""
    model = built("bahdanau", variant, 30_000, 30_000)
    attention = getattr(model, "attention", None)
    groups = [
        (model.encoder.embedding, model.embedding), (model.encoder.unit,), (model.unit, model.c), (model.w_s,),
        (attention,), (model.output,),
    ]  # fmt: skip
    named = [[item for part in group if part for item in part.named_parameters()] for group in groups]
    found = [sum(p.numel() for name, p in of if name.rsplit(".")[-1] not in ("b", "bias")) for of in named]
    assert parameters(model) - sum(found) == biases
    return found


def of_alignments(variant: str, **changes: object) -> list[int]:
    model = built("luong", variant, 50_000, 50_000, **changes)
    attention = model.attention
    scored = (None, None, None) if attention is None else (attention.w_c, attention.score, attention.alignment)
    ends = parameters(model.encoder.embedding, model.embedding), parameters(model.encoder.lstm), parameters(model.lstm)
    found = [*ends, *map(parameters, scored), parameters(model.w_s)]
    assert sum(found) == parameters(model)
    return found


def of_translation(variant: str) -> list[int]:
    model = built("transformer", variant, 37_000, 37_000)
    return [parameters(part) for part in (model.embedding, model.encoder, model.decoder)]


def of_language(variant: str, vocabulary: int, **changes: object) -> list[int]:
    model = built("transformer_xl", variant, vocabulary, None, **changes)
    biases = {id(p): p.numel() for m in model.modules() if isinstance(m, GlobalBiases) for p in m.parameters()}
    layers = {id(p): p.numel() for p in model.layers.parameters()}  # each counted once, as all share u and v
    out, shared = model.softmax, sum(biases.values())
    softmax = sum(p.numel() for p in out.biases) + (0 if out.cluster_weight is None else out.cluster_weight.numel())
    ends = [sum(p.numel() for p in each) for each in (out.embedding.tables, out.embedding.projections)]
    return [*ends, sum(layers.values()) - shared, shared, softmax, sum(p.numel() for p in out.projections.parameters())]


def of_pixels(variant: str, symbols: int, **changes: object) -> list[int]:
    model = built("linear_transformer", variant, symbols, True, **changes)
    return [parameters(part) for part in (model.embedding, model.layers, model.norm, model.output)]


def of_layers(variant: str, **changes: object) -> list[int]:
    """Attention, feed-forward networks and norms, which are the same whatever the features are."""
    found = []
    for attention in ("softmax", "relu", "positive", "trigonometric"):
        counts = {"attention": 0, "feed_forward": 0, "norm": 0}
        for place, p in built("performer", variant, 30, True, **changes, attention=attention).layers.named_parameters():
            counts["norm" if "norm" in place else place.split(".")[1]] += p.numel()
        found.append([*counts.values()])
    assert found.count(found[0]) == len(found)
    return found[0]


COUNTS = {
    ("bahdanau", "RNNsearch"): lambda: of_recurrent("rnnsearch-50", 41_000),
    ("bahdanau", "RNNencdec"): lambda: of_recurrent("rnnencdec-50", 38_000),
    ("luong", "base"): lambda: of_alignments("base"),
    ("luong", "global dot"): lambda: of_alignments("global-dot-feed", input_feeding=False),
    ("luong", "global dot + feed"): lambda: of_alignments("global-dot-feed"),
    ("luong", "global general + feed"): lambda: of_alignments("global-general-feed"),
    ("luong", "local-p general + feed"): lambda: of_alignments("local-p-general-feed"),
    ("self_attentive", "Age"): lambda: of_texts("age-attention", 0, 5),
    ("self_attentive", "Yelp"): lambda: of_texts("yelp-attention", 0, 5),
    ("self_attentive", "BiLSTM + max pooling"): lambda: of_texts("yelp-max", 0, 5),
    ("self_attentive", "SNLI"): lambda: of_texts("snli-attention", 41_245, 3, 150 + 30 + 4 * 300),
    ("show_attend_tell", "COCO"): lambda: of_captions("coco-soft"),
    ("show_attend_tell", "one layer"): lambda: of_captions("flickr8k-soft"),
    ("transformer", "base"): lambda: of_translation("base"),
    ("transformer", "big"): lambda: of_translation("big"),
    ("transformer_xl", "enwik8 12L"): lambda: of_language("enwik8-12l", 204),
    ("transformer_xl", "text8 12L"): lambda: of_language("enwik8-12l", 27),
    ("transformer_xl", "enwik8 24L"): lambda: of_language("enwik8-24l", 204),
    ("transformer_xl", "WT103 base"): lambda: of_language("wikitext103-base", 267_735),
    ("transformer_xl", "WT103 base, fairseq"): lambda: of_language("wikitext103-base", 267_744, untie_r=True),
    ("transformer_xl", "WT103 large"): lambda: of_language("wikitext103-large", 267_735),
    ("transformer_xl", "LM1B base"): lambda: of_language("lm1b-base", 793_471),
    ("transformer_xl", "LM1B large"): lambda: of_language("lm1b-large", 793_471),
    ("linear_transformer", "copy"): lambda: of_pixels("copy-linear", 11),
    ("linear_transformer", "MNIST"): lambda: of_pixels("mnist-linear", 256),
    ("linear_transformer", "CIFAR-10"): lambda: of_pixels("cifar10-linear", 256),
    ("linear_transformer", "copy, added"): lambda: of_pixels("copy-linear", 12, positions="added"),
    ("linear_transformer", "MNIST, added"): lambda: of_pixels("mnist-linear", 257, positions="added"),
    ("linear_transformer", "CIFAR-10, added"): lambda: of_pixels("cifar10-linear", 257, positions="added"),
    ("performer", "regular"): lambda: of_layers("concatenated-relu"),
    ("performer", "proteins"): lambda: of_layers("masked-relu"),
    ("performer", "small"): lambda: of_layers("masked-relu", heads=1, layers=6, hidden=64, width=64),
    ("performer", "Transformer, concatenated"): lambda: of_layers("concatenated-transformer"),
}


@pytest.mark.parametrize(("paper", "model"), COUNTS)
def test_the_parts_of_paper_yaml_are_those_of_the_modules(paper: str, model: str) -> None:
    counts = facts(paper).parameter_counts
    assert counts is not None
    assert COUNTS[paper, model]() == [part.counts[model] for part in counts.parts]
    assert counts.totals.keys() == {name for of, name in COUNTS if of == paper}


def test_sizes_that_notes_of_transformer_xl_name_are_right() -> None:
    assert sum(of_language("wikitext103-large", 267_735, untie_r=True)) == 285_205_322
    assert sum(of_language("wikitext103-ablation", 267_737)) == 128_008_510


def test_every_row_of_table_3_has_the_parameters_that_paper_yaml_derives() -> None:
    """And, as its note says, the vocabularies with which the closed form rounds to what the paper prints."""
    (table,) = (table for table in facts("transformer").tables if table.id == "t3")
    fitting = {}  # the least and the largest vocabulary, of all rows that print a number
    for row in table.rows:
        (variant,) = row.variants
        sizes = ModelConfig.model_validate(section("transformer", variant))
        width, keys, values = sizes.d_model, *((k or sizes.d_model // sizes.h) for k in (sizes.d_k, sizes.d_v))
        feed_forward = 2 * width * sizes.d_ff + sizes.d_ff + width
        body = sizes.N * (6 * width * sizes.h * (keys + values) + 2 * feed_forward + 10 * width)
        learned = section("transformer", variant).get("positions", {}).get("count", 0) * width
        count = parameters(built("transformer", variant, 37_000, 37_000))
        assert count == body + 37_000 * width + learned, variant
        assert row["derived"] == (None if learned else round(count / 1e6, 2)), variant
        if row["parameters"] is not None:
            fitting[variant] = [(1e6 * (row["parameters"] + half) - body) / width for half in (-0.5, 0.5)]
    big = fitting.pop("big")
    lows, highs = zip(*fitting.values(), strict=True)
    bounds = [math.ceil(max(lows)), math.floor(min(highs)), math.ceil(big[0]), math.floor(big[1])]
    assert all(f"{bound:,}" in (table.note or "") for bound in bounds), bounds


@pytest.mark.parametrize(("paper", "scale", "variant", "other", "within", "sizes"), [
    ("bahdanau", "paper_scale", "rnnencdec-50-matched", "rnnsearch-50", (0.99, 1.01), (30_000, 30_000)),
    ("vision_transformer", "quick", "cnn-100", "vit-100", (0.95, 1.05), (8, 10)),
    ("self_attentive", "quick", "max-matched", "attention", (0.99, 1.01), (0, 9)),
    ("self_attentive", "quick", "few-rows-1-matched", "few-attention", (0.99, 1.01), (0, 9)),
    ("self_attentive", "bench", "imdb-rows-1", "imdb-attention", (0.99, 1.01), (0, 2)),
    ("self_attentive", "bench", "imdb-max", "imdb-attention", (0.99, 1.01), (0, 2)),
    ("transformer_xl", "quick", "recall-lstm", "recall-xl", (0.95, 2), (100, None)),
    ("transformer_xl", "bench", "ptb-lstm", "ptb-xl", (0.95, 1.35), (10_002, None)),
    ("transformer_xl", "bench", "characters-lstm", "characters-xl", (0.95, 1.35), (286, None)),
])  # fmt: skip
def test_rivals_have_at_least_about_as_many_parameters(paper, scale, variant, other, within, sizes) -> None:
    ours, theirs = (parameters(built(paper, name, *sizes, scale=scale)) for name in (variant, other))
    assert within[0] < ours / theirs < within[1]
