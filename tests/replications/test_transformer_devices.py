"""The Transformer on a GPU, and in half precision."""

import pytest
import torch

from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.beam import beam_search
from shared.decoding.constraints import Constraints
from tests.replications.small_transformer import POSITIONS, sentences, small


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
