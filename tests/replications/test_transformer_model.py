"""What the Transformer must do whatever its sizes are (sections 3.1 to 3.5)."""

import pytest
import torch
from torch import nn

from replications.transformer.model import Transformer
from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.beam import beam_search
from shared.decoding.constraints import Constraints
from shared.layers.positions import SinusoidalPositions
from tests.replications.small_transformer import POSITIONS, H, N, sentences, small

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


def test_scaled_embeddings_begin_as_large_as_sinusoids_and_logits_of_unit_variance():
    model = Transformer(
        vocabulary=3000, width=64, layers=1, heads=4, key_size=16, value_size=16, hidden_size=64, dropout=0.0,
        positions=SinusoidalPositions(width=64),
    ).eval()  # fmt: skip
    assert model.embed(torch.arange(3000).view(1, -1)).var().item() == pytest.approx(1 + 0.5, rel=0.05)
    logits, _ = model(*sentences())
    assert logits.var().item() == pytest.approx(1, rel=0.1)


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


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("positions", POSITIONS)
def test_a_gpu_computes_and_finds_the_same(positions):
    torch.manual_seed(5)
    model, (source, mask, target) = small(positions), sentences(steps=70)
    limit = torch.tensor([90, 40, 100])
    found = []
    for device in ("cpu", "cuda"):
        model.to(device).zero_grad()
        there = source.to(device), mask.to(device)
        logits, _ = model(*there, target.to(device))
        logits.square().mean().backward()
        constraints = Constraints(BOS, EOS, PAD, torch.zeros_like(limit, device=device), limit.to(device))
        hypotheses = beam_search(model, model.start(*there), constraints, beam=3)
        gradient = model.embedding.weight.grad
        assert gradient is not None
        found.append((logits.detach().cpu(), gradient.cpu(), hypotheses.tokens.cpu()))
    (logits, gradient, tokens), others = found
    torch.testing.assert_close(others[0], logits, atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(others[1], gradient, atol=1e-9, rtol=1e-9)
    assert torch.equal(others[2], tokens)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_decodes_as_it_predicts(dtype):
    torch.manual_seed(6)
    model, (source, mask, target) = small().to(dtype), sentences(steps=80)
    expected = model(source, mask, target)[0].float().log_softmax(-1)
    state = model.start(source, mask)
    steps = []
    with torch.no_grad():
        for symbol in target.unbind(1):
            log_p, _, state = model.step(symbol.unsqueeze(1), state)
            steps.append(log_p.float())
    assert (torch.cat(steps, dim=1) - expected).abs().mean() < 0.1
