"""What the Transformer must do whatever its sizes are (sections 3.1 to 3.5), and the figures of its paper alone."""

import numpy as np
import pytest
import torch

from replications.transformer.figures import LossByOperations, loss_by_operations, maps_of_sentences
from replications.transformer.model import Transformer
from shared.claims.results import load_results
from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.beam import beam_search
from shared.decoding.constraints import Constraints
from shared.layers.positions import LearnedPositions, NoPositions, SinusoidalPositions
from shared.reports.curves import read_curves
from tests.parity.transformer_case import F64, WIDTH, batch, transformer
from tests.synthetic_runs import Variant, build

EXACT = {"atol": 1e-12, "rtol": 0}
POSITIONS = {
    "sinusoidal": lambda: SinusoidalPositions(width=WIDTH),
    "learned": lambda: LearnedPositions(count=150, width=WIDTH),
    "none": NoPositions,
}


def small(positions="sinusoidal", **changes):
    return transformer(positions=POSITIONS[positions](), key_size=3, value_size=5, **changes).to(F64).eval()


def test_scaled_embeddings_begin_as_large_as_sinusoids_and_logits_of_unit_variance():
    model = Transformer(
        vocabulary=3000, width=64, layers=1, heads=4, key_size=16, value_size=16, hidden_size=64, dropout=0.0,
        positions=SinusoidalPositions(width=64),
    ).eval()  # fmt: skip
    assert model.embed(torch.arange(3000).view(1, -1)).var().item() == pytest.approx(1 + 0.5, rel=0.05)
    logits, _ = model(*batch())
    assert logits.var().item() == pytest.approx(1, rel=0.1)


def test_without_positions_a_source_is_a_bag_of_words():
    """With them it is not (section 3.5)."""
    source, mask, target = batch((6, 6))
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


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("positions", POSITIONS)
def test_a_gpu_computes_and_finds_the_same(positions):
    torch.manual_seed(5)
    model, (source, mask, target) = small(positions), batch(steps=70)
    limit, found = torch.tensor([90, 40, 100]), []
    for device in ("cpu", "cuda"):
        model.to(device).zero_grad()
        there = source.to(device), mask.to(device)
        logits, _ = model(*there, target.to(device))
        logits.square().mean().backward()
        constraints = Constraints(BOS, EOS, PAD, torch.zeros_like(limit, device=device), limit.to(device))
        hypotheses = beam_search(model, model.start(*there), constraints, beam=3)
        found.append((logits.detach().cpu(), model.embedding.weight.grad.cpu(), hypotheses.tokens.cpu()))
    torch.testing.assert_close(found[1], found[0], atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_decodes_as_it_predicts(dtype):
    torch.manual_seed(6)
    model, (source, mask, target) = small().to(dtype), batch(steps=80)
    expected = model(source, mask, target)[0].float().log_softmax(-1)
    state = model.start(source, mask)
    steps = []
    with torch.no_grad():
        for symbol in target.unbind(1):
            log_p, _, state = model.step(symbol.unsqueeze(1), state)
            steps.append(log_p.float())
    assert (torch.cat(steps, dim=1) - expected).abs().mean() < 0.1


def test_every_head_is_a_map_and_a_decoder_looks_at_what_came_before():
    weights = np.arange(2 * 3 * 4 * 4, dtype=np.float16).reshape(2, 3, 4, 4) / 100
    words = {side: np.array([f"{side[0]}{k}" for k in range(4)]) for side in ("source", "target")}
    maps = maps_of_sentences("base", [words | {"decoder": weights}], "decoder")
    assert [each.choices["Layer"] + each.choices["Head"] for each in maps] == ["11", "12", "13", "21", "22", "23"]
    assert maps[0].rows == ["t0", "t1", "t2", "t3"]
    assert maps[0].columns == ["<s>", "t0", "t1", "t2"]
    assert np.array(maps[4].weights) == pytest.approx(weights[1, 1].astype(float))


VARIANTS = {
    "cheap": Variant("generated", 0.9, updates=200, operations=4e15),
    "dear": Variant("generated", 0.95, updates=100, operations=4e17),
    "uncounted": Variant("generated", 0.9, updates=100),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return load_results(build(tmp_path_factory.mktemp("runs"), VARIANTS, examples=10, seeds=(1, 2)))


def test_operations_are_spread_evenly_over_the_updates(results):
    cheap, dear, uncounted = (loss_by_operations(results[name]) for name in VARIANTS)
    assert sorted(cheap) == pytest.approx([4e15 * step / 200 for step in range(25, 201, 25)])
    assert sorted(dear) == pytest.approx([1e17, 2e17, 3e17, 4e17])
    assert list(dear.values()) == list(read_curves(results["dear"], metric="loss", split="valid").values())
    assert uncounted == {}


@pytest.mark.parametrize(("shown", "drawn"), [([*VARIANTS], 1), (["uncounted"], 0)])
def test_losses_by_operations_are_drawn_if_there_is_anything_to_draw(shown, drawn, results, tmp_path):
    assert len(LossByOperations({"All": shown}).draw(results, tmp_path)) == drawn
    assert len([*tmp_path.glob("*.png")]) == drawn
