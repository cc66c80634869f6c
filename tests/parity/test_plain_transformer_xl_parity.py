"""Transformer-XL against its plain twin: states joined in lists, scores shifted by copies, a softmax of all words."""

from functools import partial

import pytest
import torch

from benchmarks.plain_transformer_xl import PlainTransformerXL
from tests.parity import transformer_xl_case as xl


def twin(config):
    return PlainTransformerXL(
        vocabulary=xl.VOCABULARY, width=config.d_model, layers=config.n_layer, heads=config.n_head,
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
            "feed_forward.w_1": layer.inner, "feed_forward.w_2": layer.outer,
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
    memories = plain.begin(xl.COLUMNS)

    def read(inputs, targets):
        nonlocal memories
        with xl.collected(plain.layers) as states:
            nats, memories = plain(inputs, targets, memories, reach)
        return xl.Told(nats, plain.log_probs(states[-1]), states)

    return read


@pytest.mark.parametrize("network", xl.NETWORKS)
@pytest.mark.parametrize("reach", xl.REACHES, ids=str)
def test_values_and_gradients_are_those_of_the_equations(network, reach):
    config = xl.configured(network)
    plain = xl.shaken(twin(config))
    placed = partial(layout, plain)
    xl.assert_same(xl.ours_with(config, placed), lambda: reader(plain, reach), placed, reach)
