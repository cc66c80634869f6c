"""The whole of Transformer-XL against Hugging Face's, which is the authors' code: values and gradients, weights copied.

The package has dropped this model, so that the two files which hold it are taken out of its last wheels and run with
stand-ins for what they import.
"""

import logging
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.parity import transformer_xl_case as xl
from tests.parity.fetched_packages import package_of, wheel_of

FOLDER = "transformers/models/transfo_xl/"
FILES = ("modeling_transfo_xl_utilities", "modeling_transfo_xl")
PACKAGE = wheel_of(
    "transformers==4.30.2",
    "c332e3a3097f9ed89ce556b403251235931c00237b8bc2d7adaa19d226c13f1d",
    {f"{FOLDER}{name}.py": f"{name}.py" for name in FILES},
)


class PreTrainedModel(nn.Module):
    """What their models need of the package's."""

    def __init__(self, config):
        super().__init__()
        self.config = config

    def post_init(self):
        if hasattr(self, "tie_weights"):
            self.tie_weights()

    def _tie_or_clone_weights(self, output, embedding):
        output.weight = embedding.weight


def stand_ins():
    """By name, the modules that are imported, in a package of another name: a later one may be installed."""
    nothing = lambda *_, **__: lambda decorated: decorated  # noqa: E731
    contents = {
        "modeling_utils": {"PreTrainedModel": PreTrainedModel},
        "utils": {
            "ModelOutput": object, "logging": SimpleNamespace(get_logger=logging.getLogger),
            "add_code_sample_docstrings": nothing, "add_start_docstrings": nothing,
            "add_start_docstrings_to_model_forward": nothing,
        },
        "models.transfo_xl.configuration_transfo_xl": {"TransfoXLConfig": object},
    }  # fmt: skip
    names = ("", "models", "models.transfo_xl", *contents)
    return {f"old_transformers.{name}".rstrip("."): {"__path__": [], **contents.get(name, {})} for name in names}


# In half precision they mask scores in float32, which double precision shall not pass through.
CORRECTIONS = {"attn_score.float().masked_fill": "attn_score.masked_fill"}
package = package_of(PACKAGE, FILES, "old_transformers.models.transfo_xl", stand_ins(), CORRECTIONS)


def build(package, ours, reach):
    """Their whole model, as our configuration has it."""
    config = SimpleNamespace(
        **ours.model_dump(include={"d_model", "n_layer", "n_head", "d_head", "d_inner", "dropout", "dropatt",
                                   "untie_r", "div_val"}),
        vocab_size=xl.VOCABULARY, d_embed=ours.d_model, cutoffs=list(ours.cutoffs), tie_projs=ours.tied_projections,
        mem_len=reach.memory, same_length=reach.same_length, clamp_len=reach.clamp or -1, attn_type=0,
        pre_lnorm=False, layer_norm_epsilon=1e-5, sample_softmax=-1, tie_word_embeddings=True, torchscript=False,
        trainer_compatible=True, use_return_dict=False, output_attentions=False, output_hidden_states=True,
    )  # fmt: skip
    model = xl.shaken(package.TransfoXLLMHeadModel(config))
    rates = torch.arange(0, ours.d_model, 2, dtype=xl.F64) / ours.d_model
    model.transformer.pos_emb.inv_freq = 10_000**-rates  # theirs are in single precision
    return model


def interleaved(by_function):
    """(…, D) of all sines and then all cosines to one of each in turn."""
    return torch.stack(by_function.chunk(2, dim=-1), dim=-1).flatten(-2)


def layout(theirs, of):
    """See ``transformer_xl_case.Layout``."""
    found = {}
    for n, layer in enumerate(theirs.transformer.layers):
        attention, (inner, outer) = layer.dec_attn, (layer.pos_ff.CoreNet[i] for i in (0, 3))
        q, k, v = of(attention.qkv_net.weight).chunk(3)
        parts = {
            "attention.w_q.weight": q,
            "attention.w_kv.weight": torch.cat((k, v)),
            "attention.w_o.weight": of(attention.o_net.weight),
            "attention.positions.w_r.weight": interleaved(of(attention.r_net.weight)),
            "attention.biases.u": of(attention.r_w_bias),
            "attention.biases.v": of(attention.r_r_bias),
        }
        for ours, module in {
            "feed_forward.w_1": inner, "feed_forward.w_2": outer,
            "attention_norm": attention.layer_norm, "feed_forward_norm": layer.pos_ff.layer_norm,
        }.items():  # fmt: skip
            parts |= {f"{ours}.{name}": of(weight) for name, weight in module.named_parameters()}
        found |= {f"layers.{n}.{name}": weight for name, weight in parts.items()}
    return found | clusters(theirs, of)


def clusters(theirs, of):
    """The part of the layout that embedding and softmax have."""
    softmax, found = theirs.crit, {}
    parts = [(of(layer.weight), of(layer.bias)) for layer in softmax.out_layers]
    if softmax.div_val == 1:  # one table and one row of biases for all clusters
        sizes = [stop - start for start, stop in pairwise(softmax.cutoff_ends)]
        parts = [*zip(*(whole.split(sizes) for whole in parts[0]), strict=True)]
    for i, (table, bias) in enumerate(parts):
        found |= {f"softmax.embedding.tables.{i}": table, f"softmax.biases.{i}": bias}
    if softmax.n_clusters:
        found["softmax.biases.0"] = torch.cat((parts[0][1], of(softmax.cluster_bias)))
        found["softmax.cluster_weight"] = of(softmax.cluster_weight)
    if softmax.div_val > 1:
        for i, pair in enumerate(zip(theirs.transformer.word_emb.emb_projs, softmax.out_projs, strict=True)):
            found[f"softmax.embedding.projections.{i}"] = of(pair[0])
            if pair[1] is not pair[0]:
                found[f"softmax.projections.{i}"] = of(pair[1])
    return found


def reader(theirs, layers):
    """It begins with memories of no length, as the authors' code does; Hugging Face's own beginning is zeros."""
    width = theirs.config.d_model
    memories = [torch.zeros(0, xl.COLUMNS, width, dtype=xl.F64)] * layers

    def read(inputs, targets):
        nonlocal memories
        log_probs, memories, states = theirs(inputs, mems=memories)
        # Labels, for them, are the inputs: a state predicts the next, and the last of each nothing.
        h, labels = functional.pad(states[-1], (0, 0, 0, 1)), functional.pad(targets, (1, 0))
        nats = theirs.crit(h, labels, keep_order=True)
        return xl.Told(nats.view_as(targets), log_probs, list(states))

    return read


@pytest.mark.registry
@pytest.mark.parametrize("network", xl.NETWORKS)
@pytest.mark.parametrize("reach", xl.REACHES, ids=str)
def test_values_and_gradients_are_those_of_hugging_face(package, network, reach):
    config = xl.configured(network)
    theirs = build(package, config, reach)
    placed = partial(layout, theirs)
    ours = xl.ours_with(config, placed)
    table = interleaved(theirs.transformer.pos_emb(torch.arange(100, dtype=xl.F64))[:, 0])
    torch.testing.assert_close(ours.encodings(0, 100), table, atol=1e-6, rtol=0)
    ours.encodings.table = table  # ours is rounded to single precision
    xl.assert_same(ours, lambda: reader(theirs, config.n_layer), placed, reach)
