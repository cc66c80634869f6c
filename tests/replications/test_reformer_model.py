"""Reformer: the checklist, its equations in numpy, the backward pass of any depth, and what training keeps."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch

from replications.reformer.model import Reformer, ReformerAttention, Streams, two_streams
from replications.reformer.replication import REPLICATION, build_model
from replications.reformer.settings import ModelConfig
from shared.attention.twins import plain_equations
from tests.checklist import spread
from tests.replications.shipped_variants import scale_file_of
from tests.replications.studied import measured


def small(**changes: object) -> Reformer:
    sizes = {"layers": 3, "heads": 2, "width": 8, "hidden": 12, "rounds": 2, "buckets": 4, "chunk": 2, "length": 9}
    torch.manual_seed(0)
    section = {"attention": "shared", "reversible": True} | sizes | changes
    return build_model(ModelConfig.model_validate(section), 7, True).double()


def attended(x: np.ndarray, attention: ReformerAttention) -> np.ndarray:
    """Section 2 with loops: shared queries and keys, causal, a position itself only where there is nothing else."""
    w_q, w_v, w_o = (w.weight.detach().numpy().T for w in (attention.w_q, attention.w_v, attention.w_o))
    out = np.zeros_like(x)
    for head in np.split(np.arange(x.shape[1]), attention.heads):
        q, v = x @ w_q[:, head], x @ w_v[:, head]
        k = q / np.linalg.norm(q, axis=1, keepdims=True)
        for i in range(len(x)):
            seen = np.arange(i) if i else np.array([0])
            weights = np.exp(k[seen] @ q[i] / len(head) ** 0.5)
            out[i, head] = weights / weights.sum() @ v[seen]
    return out @ w_o


def normed(x: np.ndarray, norm: torch.nn.LayerNorm) -> np.ndarray:
    scale, shift = norm.weight.detach().numpy(), norm.bias.detach().numpy()
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + norm.eps) * scale + shift


def test_it_is_the_equations_in_numpy() -> None:
    model, symbols = spread(small(), 0.5), torch.randint(7, (1, 9))
    x = (model.embedding(symbols)[0] + model.positions(0, 9)).detach().numpy()
    x1, x2 = x, x
    for layer in model.layers:
        x1 = x1 + attended(normed(x2, layer.attention_norm), layer.attention)
        w_1, b_1, w_2, b_2 = (p.detach().numpy() for p in layer.feed_forward.parameters())
        x2 = x2 + np.maximum(0, normed(x1, layer.feed_forward_norm) @ w_1.T + b_1) @ w_2.T + b_2
    expected = normed(np.concatenate((x1, x2), axis=1), model.norm)
    np.testing.assert_allclose(model(symbols)[0].detach().numpy(), expected, atol=1e-10)


@pytest.mark.parametrize("attention", ["full", "shared", "lsh"])
@pytest.mark.parametrize("size", [None, 1, 4])
def test_inputs_and_gradients_are_those_of_autograd(attention: str, size: int | None) -> None:
    """Chunks need not divide the sequence, and an input may want no gradient."""
    model = small(attention=attention, feed_forward_chunk=size)
    layers = [Streams(layer, None, True, size) for layer in model.layers]
    x1, x2 = (torch.randn(2, 9, 8, dtype=torch.float64) for _ in range(2))
    found = []
    for form in (nullcontext, plain_equations):
        a, b = x1.clone().requires_grad_(), x2.clone().requires_grad_()
        with form():
            y1, y2 = two_streams(a, b, layers)
        parameters = list(model.layers.parameters())
        found.append((y1, y2, *torch.autograd.grad((y1.sin() + y2.cos()).sum(), (a, b, *parameters))))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=1e-9)
    y1, _ = two_streams(x1, x2, layers)
    assert y1.requires_grad


def test_the_study_finds_equal_gradients_and_a_memory_that_depth_does_not_change() -> None:
    run = scale_file_of("reformer", "quick").run("reversibility")
    study, small_sizes = REPLICATION.runners["study"]["reversibility"], {"hidden": 2048, "length": 64, "depths": [1, 3]}
    found = measured(study, {**run.model, **small_sizes, "positions": 8})
    assert all(found[f"{each}.gradients_float64"] < 1e-12 for each in ("shared", "lsh"))
    assert all(found[f"{each}.gradients_float32"] < 1e-5 for each in ("shared", "lsh"))
    assert found["reversible.growth"] == 1.0 < found["lsh.growth"] < 1.5 < 2.5 < found["plain.growth"]
    assert found["reversible.kept_n3"] < found["plain.kept_n1"]
    assert found["chunked.difference"] < 1e-12
    assert found["chunked.peak"] < 1
