"""Transformer-XL against its plain twin: states joined in lists, scores shifted by copies, a softmax of all words."""

from functools import partial

import pytest
import torch

from benchmarks import transformer_xl as benchmark
from benchmarks.plain_transformer_xl import PlainTransformerXL
from shared.attention.memory import Reach
from tests.parity.transformer_xl_case import (
    COLUMNS,
    NETWORKS,
    REACHES,
    VOCABULARY,
    Told,
    assert_same,
    collected,
    configured,
    ours_with,
    shaken,
)


def twin(config):
    return PlainTransformerXL(
        vocabulary=VOCABULARY, width=config.d_model, layers=config.n_layer, heads=config.n_head,
        key_size=config.d_head, hidden_size=config.d_inner, untied_biases=config.untie_r, cutoffs=config.cutoffs,
        div_val=config.div_val, tied=config.tied_projections,
    )  # fmt: skip


def layout(plain, of):
    """See ``transformer_xl_case.Layout``."""
    found = {}
    for n, layer in enumerate(plain.layers):
        own = n if len(plain.u) > 1 else 0
        parts = {
            "attention.w_q.weight": of(layer.w_q.weight),
            "attention.w_kv.weight": torch.cat((of(layer.w_ke.weight), of(layer.w_v.weight))),
            "attention.w_o.weight": of(layer.w_o.weight),
            "attention.positions.w_r.weight": of(layer.w_kr.weight),
            "attention.biases.u": of(plain.u)[own],
            "attention.biases.v": of(plain.v)[own],
        }
        for ours, theirs in {
            "feed_forward.0": layer.inner, "feed_forward.3": layer.outer,
            "attention_norm": layer.attention_norm, "feed_forward_norm": layer.feed_forward_norm,
        }.items():  # fmt: skip
            parts |= {f"{ours}.{name}": of(weight) for name, weight in theirs.named_parameters()}
        found |= {f"layers.{n}.{name}": weight for name, weight in parts.items()}
    lists = {"embedding.tables": plain.embeddings, "embedding.projections": plain.projections, "biases": plain.biases,
             "projections": plain.own_projections}  # fmt: skip
    for ours, theirs in lists.items():
        found |= {f"softmax.{ours}.{name}": of(weight) for name, weight in theirs.named_parameters()}
    return found | ({"softmax.cluster_weight": of(plain.clusters)} if len(plain.clusters) else {})


def reader(plain, reach):
    memories = plain.begin(COLUMNS)

    def read(inputs, targets):
        nonlocal memories
        with collected(plain.layers) as states:
            nats, memories = plain(inputs, targets, memories, reach)
        return Told(nats, plain.log_probs(states[-1]), states)

    return read


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("reach", REACHES, ids=str)
def test_values_and_gradients_are_those_of_the_equations(network, reach):
    config = configured(network)
    plain = shaken(twin(config))
    placed = partial(layout, plain)
    assert_same(ours_with(config, placed), lambda: reader(plain, reach), placed, reach)


def numbers(figures):
    """All of them, however deep."""
    return [n for value in figures.values() for n in (numbers(value) if isinstance(value, dict) else [value])]


@pytest.mark.parametrize("size", benchmark.SIZES.values(), ids=benchmark.SIZES)
def test_the_benchmark_compares_networks_of_one_size(size):
    ours, plain = (
        sum(p.numel() for p in model.parameters()) for model in (benchmark.ours(size), benchmark.plain(size))
    )
    assert ours == plain


def test_the_benchmark_runs(monkeypatch):
    model = {"d_model": 8, "n_layer": 2, "n_head": 2, "d_head": 4, "d_inner": 8, "dropout": 0.1}
    small = {
        "SIZES": dict.fromkeys(benchmark.SIZES, benchmark.Size(model, vocabulary=10, columns=2, length=6)),
        "LONG": Reach(13, same_length=True, clamp=5), "SEGMENT": 4, "AFTER": (5, 20), "REMEMBERED": 4, "STEPS": 2,
        "WORDS": 60, "WIDTH": 16, "STATES": 20, "CUTOFFS": (10, 30), "ATTENTION_LENGTHS": (3, 8),
    }  # fmt: skip
    for name, value in small.items():
        monkeypatch.setattr(benchmark, name, value)
    figures = benchmark.measure(1)
    assert min(numbers(figures)) >= 0
    assert set(figures["training"]) == set(benchmark.CONTENDERS)
    ways = figures["states_kept_or_sliding_windows"]
    read = {name: way["symbols_read_per_scored"] for name, way in ways.items()}
    assert read == {
        "attention length 3": {"reuse": 1, "sliding": 3},
        "attention length 8": {"reuse": 1, "sliding": 8},
    }
