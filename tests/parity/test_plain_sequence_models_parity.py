"""The Linear Transformer and the Performer against twins of loops: values and all gradients."""

import pytest
import torch

from tests.parity import plain_sequence_models as equations
from tests.replications.small_sequences import F64, MODELS, PERFORMERS, TRANSFORMERS, VOCABULARY, H, N, padded, small

CASES = [(name, causal) for name in MODELS for causal in (True, False) if causal or "lsh" not in name]
"""Attention by hashing sees what is near in an order of chunks where it is not causal, which has a test of its own."""


def reader(name: str, model: torch.nn.Module, causal: bool) -> equations.Reader:
    weights = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    sizes = {"heads": H, "layers": N, "causal": causal}
    if name in PERFORMERS:
        return equations.Reader(weights, "softmax" if name == "exact" else name, **sizes)
    section = TRANSFORMERS[name]
    positions = section.get("positions")
    beside, grid = positions in ("concatenated", "rows and columns"), positions == "rows and columns"
    sizes |= {"columns": round(section["max_length"] ** 0.5) if grid else 0}
    return equations.Reader(weights, section["attention"], beside=beside, chunk=section.get("chunk", 0), **sizes)


def give_exact_sinusoids(model: torch.nn.Module, columns: int) -> None:
    """Ours are rounded to single precision."""
    width = model.embedding.embedding_dim
    table = torch.stack([equations.encoded(place, width, columns) for place in range(12)])
    torch.testing.assert_close(model.positions(0, 12), table, atol=1e-6, rtol=0)
    given = model.positions.sinusoids if columns else model.positions
    given.table = torch.stack([equations.sinusoid(place, width // 2 if columns else width) for place in range(12)])


@pytest.mark.parametrize(("name", "causal"), CASES, ids=str)
def test_values_and_gradients_are_those_of_the_equations(name: str, causal: bool) -> None:
    model = small(name, causal=causal, std=0.4).train()
    plain = reader(name, model, causal)
    told = equations.linear_transformer if name in TRANSFORMERS else equations.performer
    give_exact_sinusoids(model, plain.columns)
    inputs, mask = padded([9, 1, 6])
    targets = torch.randint(VOCABULARY - 1, inputs.shape)
    h = model(inputs, mask)
    nats = model.output(h, targets)
    expected_states, expected = [], []
    for row, length in enumerate(mask.sum(1).tolist()):
        states = told(plain, inputs[row, :length].tolist())
        expected_states += states
        for state, target in zip(states, targets[row].tolist(), strict=False):
            pixels = name == "linear, pixels"
            expected.append(
                equations.pixel_nats(plain.weights, state, target, VOCABULARY - 1)
                if pixels
                else equations.symbol_nats(plain.weights, state, target)
            )
    close = {"atol": 1e-10, "rtol": 1e-10}
    torch.testing.assert_close(h[mask], torch.stack(expected_states), **close)
    torch.testing.assert_close(nats[mask], torch.stack(expected), **close)
    cotangent, parameters = torch.randn(len(expected), dtype=F64), dict(model.named_parameters())
    found, wanted = (
        torch.autograd.grad((each * cotangent).sum(), list(parameters.values()))
        for each in (nats[mask], torch.stack(expected))
    )
    for weight, ours, theirs in zip(parameters, found, wanted, strict=True):
        assert theirs.abs().max() > 1e-8, weight
        torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=1e-9)
