"""What the Transformer must do whatever its sizes are (sections 3.1 to 3.5)."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from replications.transformer.model import Transformer
from replications.transformer.replication import build_model
from replications.transformer.settings import ModelConfig
from shared.config import build
from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.beam import beam_search
from shared.decoding.constraints import Constraints
from shared.decoding.naive import naive_beam_search
from shared.errors import ReplicationError
from shared.layers.positions import SinusoidalPositions
from tests.replications.small_transformer import F64, POSITIONS, VOCABULARY, D, H, N, sentences, small

EXACT = {"atol": 1e-12, "rtol": 0}
all_positions = pytest.mark.parametrize("positions", POSITIONS)


def watched(model, kind):
    """By the name of each module of a kind: a list that gets the input and the output of its coming calls."""
    kept = {name: [] for name, module in model.named_modules() if isinstance(module, kind)}
    for name, calls in kept.items():
        model.get_submodule(name).register_forward_hook(
            lambda _, inputs, output, calls=calls: calls.append((inputs[0], output))
        )
    return kept


def test_one_matrix_embeds_both_languages_and_predicts():
    model = small()
    assert [name for name, p in model.named_parameters() if VOCABULARY in p.shape] == ["embedding.weight"]
    source, mask, target = sentences()
    logits, _ = model(source, mask, target)
    cotangent = torch.randn_like(logits)
    (together,) = torch.autograd.grad(logits, model.embedding.weight, cotangent)
    copies = [model.embedding.weight.detach().clone().requires_grad_() for _ in range(3)]
    x, y = (
        math.sqrt(D) * functional.embedding(symbols, copy) + model.positions(0, symbols.size(1))
        for symbols, copy in zip((source, target), copies, strict=False)
    )
    where = mask[:, None, None]
    for layer in model.encoder:
        x, _ = layer(x, where)
    again = model.decode(y, model.memory(x), where)[0] @ copies[2].t()
    torch.testing.assert_close(again, logits, **EXACT)
    torch.testing.assert_close(sum(torch.autograd.grad(again, copies, cotangent)), together, atol=1e-10, rtol=0)


@all_positions
def test_embeddings_are_scaled_before_positions_are_added(positions):
    model = small(positions)
    symbols = torch.tensor([[4, 9, 9]])
    expected = model.embedding.weight[[4, 9, 9]] * math.sqrt(D) + model.positions(5, 8)
    torch.testing.assert_close(model.embed(symbols, 5)[0], expected, **EXACT)


def test_scaled_embeddings_begin_as_large_as_sinusoids_and_logits_of_unit_variance():
    model = Transformer(
        vocabulary=3000, width=64, layers=1, heads=4, key_size=16, value_size=16, hidden_size=64, dropout=0.0,
        positions=SinusoidalPositions(width=64),
    ).eval()  # fmt: skip
    assert model.embed(torch.arange(3000).view(1, -1)).var().item() == pytest.approx(1 + 0.5, rel=0.05)
    logits, _ = model(*sentences())
    assert logits.var().item() == pytest.approx(1, rel=0.1)


def test_norms_come_last_and_what_they_norm_is_the_sum():
    """LayerNorm(x + Sublayer(x)): a fresh norm leaves mean 0 and variance 1, and there is none but in the layers."""
    model = small()
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.reset_parameters()
    kept = watched(model, nn.LayerNorm)
    source, mask, target = sentences()
    x, _ = model.encode(source, mask[:, None, None])
    y, _, _ = model.decode(model.embed(target), model.memory(x), mask[:, None, None])
    for out in (x, y):
        torch.testing.assert_close(out.mean(-1), torch.zeros(out.shape[:2], dtype=F64), atol=1e-12, rtol=0)
        variance = out.var(-1, correction=0)
        torch.testing.assert_close(variance, torch.ones_like(variance), atol=1e-3, rtol=0)
    assert [len(calls) for calls in kept.values()] == [1] * (2 + 3) * N
    ((_, before),), ((added, _),) = (kept[f"encoder.0.{part}_norm"] for part in ("self_attention", "feed_forward"))
    torch.testing.assert_close(added, before + model.encoder[0].feed_forward(before), **EXACT)


def test_the_feed_forward_network_acts_on_each_position_alone():
    layer = small().encoder[0].feed_forward
    x = torch.randn(3, 4, D, dtype=F64)
    hidden = (x[1, 2] @ layer.w_1.weight.t() + layer.w_1.bias).clamp(min=0)
    torch.testing.assert_close(layer(x)[1, 2], hidden @ layer.w_2.weight.t() + layer.w_2.bias, **EXACT)


@all_positions
def test_no_symbol_sees_a_later_one(positions):
    model = small(positions)
    source, mask, target = sentences()
    for training in (False, True):
        logits, _ = model.train(training)(source, mask, target)
        for t in range(1, target.size(1)):
            changed = target.clone()
            changed[:, t] = (changed[:, t] + 1) % VOCABULARY
            again, _ = model(source, mask, changed)
            torch.testing.assert_close(again[:, :t], logits[:, :t], **EXACT)
            assert not torch.isclose(again[:, t], logits[:, t], atol=1e-6, rtol=0).all(-1).any()


@all_positions
def test_neither_padding_nor_company_changes_anything(positions):
    model = small(positions)
    source, mask, target = sentences()
    logits, attention = model(source, mask, target)
    assert torch.equal(model(source.masked_fill(~mask, 7), mask, target)[0], logits)
    longer, _ = model(source, mask, functional.pad(target, (0, 3), value=PAD))
    torch.testing.assert_close(longer[:, : target.size(1)], logits, **EXACT)
    for b, length in enumerate(mask.sum(1).tolist()):
        alone, a = model(source[b : b + 1, :length], mask[b : b + 1, :length], target[b : b + 1])
        torch.testing.assert_close(alone[0], logits[b], **EXACT)
        torch.testing.assert_close(a[0], attention[b, :, :length], **EXACT)
        assert not attention[b, :, length:].any()


def test_padding_gets_no_gradient():
    model = small()
    source, mask, target = sentences()
    x = model.embed(source).detach().requires_grad_()
    model.embed = lambda symbols, start=0: x if symbols is source else Transformer.embed(model, symbols, start)
    model.train()(source, mask, target)[0].square().sum().backward()
    assert not x.grad[~mask].any()
    assert x.grad[mask].any(-1).all()


def test_without_positions_a_source_is_a_bag_of_words():
    """With them it is not (section 3.5)."""
    source, mask, target = sentences(lengths=(6, 6))
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    for kind in POSITIONS:
        model = small(kind)
        x, _ = model.encode(source, mask[:, None, None])
        y, _ = model.encode(source[:, order], mask[:, None, None])
        logits, other = model(source, mask, target)[0], model(source[:, order], mask, target)[0]
        if kind == "none":
            torch.testing.assert_close(y, x[:, order], **EXACT)
            torch.testing.assert_close(other, logits, **EXACT)
        else:
            assert not torch.isclose(y, x[:, order], atol=1e-3, rtol=0).all(-1).any()
            assert not torch.isclose(other, logits, atol=1e-3, rtol=0).all(-1).any()


@all_positions
@torch.no_grad()
def test_decoding_step_by_step_is_teacher_forcing(positions):
    """Two beams of each source with words of their own, which change places; beyond the cache's first 64 slots."""
    model = small(positions)
    source, mask, one = sentences(steps=40)
    targets = torch.stack((one, torch.randint(4, VOCABULARY, one.shape)), dim=1)  # (B, 2, T)
    forced = [model(source, mask, targets[:, beam]) for beam in range(2)]
    state = model.reorder(model.start(source, mask), None, torch.zeros(3, 2, dtype=torch.long))
    order = [0, 1]
    for t in range(targets.size(2)):
        if t % 3 == 2:
            order, state = order[::-1], model.reorder(state, None, torch.tensor([[1, 0]]).expand(3, 2))
        log_p, a, state = model.step(targets[:, order, t], state)
        for place, beam in enumerate(order):
            logits, weights = forced[beam]
            torch.testing.assert_close(log_p[:, place], logits[:, t].log_softmax(-1), **EXACT)
            torch.testing.assert_close(a[:, place], weights[:, t], **EXACT)
    assert state.cache.used == 80
    assert state.cache.keys.size(3) == 128


@torch.no_grad()
def test_sources_can_be_dropped_from_a_search():
    model = small()
    source, mask, target = sentences(lengths=(7, 4, 2, 5))
    state = model.start(source, mask)
    rows = torch.arange(4)
    for t in range(target.size(1)):
        log_p, _, state = model.step(target[rows, t : t + 1], state)
        expected = model(source[rows], mask[rows], target[rows])[0][:, t].log_softmax(-1)
        torch.testing.assert_close(log_p[:, 0], expected, **EXACT)
        if t in (1, 3):
            kept = torch.tensor([0, 2, 3] if t == 1 else [1, 2])
            rows = rows[kept]
            state = model.reorder(state, kept, torch.zeros(len(kept), 1, dtype=torch.long))
    assert rows.tolist() == [2, 3]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("beam", "normalisation"), [(4, "gnmt"), (3, "none"), (1, "mean")])
def test_beam_search_is_that_of_one_source_after_another(seed, beam, normalisation):
    """Sources leave the batch as they are done, beams grow and die, and the cache outgrows its first slots."""
    torch.manual_seed(seed)
    model = small()
    with torch.no_grad():
        model.embedding.weight[EOS] *= 1.5  # so that some sentences end before the limit and some do not
    source, mask, _ = sentences(lengths=(7, 5, 7, 3, 1))
    least, most = torch.tensor([0, 3, 24, 0, 1]), 8 * mask.sum(1)
    settings = {"beam": beam, "normalisation": normalisation, "n_best": 2}
    found = beam_search(
        model, model.start(source, mask), Constraints(BOS, EOS, PAD, least, most), **settings, attention=True
    )
    for b, length in enumerate(mask.sum(1).tolist()):
        one = slice(b, b + 1)
        best = naive_beam_search(
            model, model.start(source[one, :length], mask[one, :length]),
            Constraints(BOS, EOS, PAD, least[one], most[one]), **settings,
        )  # fmt: skip
        for n, hypothesis in enumerate(best):
            steps = int(found.lengths[b, n])
            assert tuple(found.tokens[b, n, :steps].tolist()) == hypothesis.tokens
            assert found.scores[b, n].item() == pytest.approx(hypothesis.score, rel=1e-5)
            weights = torch.stack(hypothesis.attention)
            torch.testing.assert_close(found.attention[b, n, :steps, :length], weights, **EXACT)
    assert found.lengths[2, 0] > 24 > 8 >= found.lengths[4, 0]


@torch.no_grad()
def test_every_head_s_weights_can_be_had():
    model = small()
    source, mask, target = sentences()
    (batch, s), t = source.shape, target.size(1)
    maps = model.attention_maps(source, mask, target)
    shapes = {"encoder": (N, batch, H, s, s), "decoder": (N, batch, H, t, t), "cross": (N, batch, H, t, s)}
    assert {name: tuple(found.shape) for name, found in maps.items()} == shapes
    for name, found in maps.items():
        total = found.sum(-1)
        torch.testing.assert_close(total, torch.ones_like(total), **EXACT)
        hidden = torch.ones(t, t).triu(1).bool() if name == "decoder" else ~mask[None, :, None, None]
        assert not found.masked_select(hidden).any()
    torch.testing.assert_close(maps["cross"][-1].mean(1), model(source, mask, target)[1], **EXACT)


def test_training_goes_without_weights_and_predicts_the_same():
    model = small()
    batch = sentences()
    logits, attention = model(*batch)
    assert attention.shape == (3, 6, 7)
    again, none = model.train()(*batch)
    assert none is None
    torch.testing.assert_close(again, logits, **EXACT)


def test_dropout_is_for_training_only():
    model = small(dropout=0.5)
    batch = sentences()
    plain, _ = model(*batch)
    torch.testing.assert_close(plain, model(*batch)[0], atol=0, rtol=0)
    model.train()
    assert not torch.isclose(model(*batch)[0], model(*batch)[0], atol=1e-6, rtol=0).all(-1).any()


def test_dropout_acts_on_sublayers_and_embeddings_and_nowhere_else():
    """Section 5.4; not on attention weights nor within the feed-forward network."""
    model = small(dropout=0.5)
    kept = watched(model, nn.Dropout)
    model.train()(*sentences())
    assert {name: len(calls) for name, calls in kept.items()} == {
        "dropout": 2,
        **{f"encoder.{n}.dropout": 2 for n in range(N)},
        **{f"decoder.{n}.dropout": 3 for n in range(N)},
    }


def test_mixed_precision_changes_little_and_gradients_stay_in_float32():
    model = small().float().train()
    batch = sentences()
    plain, _ = model(*batch)
    with torch.autocast("cpu", torch.bfloat16):
        mixed, _ = model(*batch)
    mixed.float().square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.dtype == torch.float32, name
        assert parameter.grad.isfinite().all(), name
    assert (mixed - plain).norm() < 0.1 * plain.norm()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"h": 3}, "d_model .8. is not a multiple of h .3.; give d_k and d_v"),
        ({"d_model": 7}, "'d_model'"),
        ({"positions": {"kind": "learned"}}, "learned positions need a count, and no others have one"),
        ({"positions": {"kind": "none", "count": 5}}, "learned positions need a count, and no others have one"),
        ({"positions": {"count": 5}}, "'positions.kind': field required"),
        ({"positions": {"kind": "rotary"}}, "'positions.kind'"),
        ({"p_drop": 1.0}, "'p_drop'"),
        ({"d_f": 8}, "did you mean 'd_ff'"),
    ],
)
def test_a_configuration_that_fits_no_model_is_refused(change, message):
    sizes = {"N": 1, "d_model": 8, "d_ff": 12, "h": 2, "p_drop": 0.0}
    with pytest.raises(ReplicationError, match=message) as error:
        build(ModelConfig, sizes | change, where="smoke.yaml")
    assert "\n" not in str(error.value)


def test_two_vocabularies_cannot_share_a_matrix():
    config = ModelConfig(N=1, d_model=8, d_ff=12, h=2, p_drop=0.0)
    with pytest.raises(ReplicationError, match="add 'joint: true' to the corpus' tokenizer"):
        build_model(config, 10, 11)


@pytest.mark.parametrize("changes", [{}, {"scaled": False}, {"positions": "learned"}])
def test_the_fused_model_is_the_papers_equations_in_values_and_gradients(changes):
    model, inputs = small(**changes), sentences()
    results = []
    for fused in (True, False):
        model.fused = fused
        logits, weights = model(*inputs)
        cotangent = torch.linspace(-1, 1, logits.numel(), dtype=F64).view_as(logits)
        gradients = torch.autograd.grad(logits, model.parameters(), cotangent)
        results.append((logits, weights, *gradients))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=1e-10)
