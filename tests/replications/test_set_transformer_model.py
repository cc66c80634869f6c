"""Set Transformer: its equations set by set in numpy, parameters, and the study of order and cost."""

from pathlib import Path

import numpy as np
import pytest
import torch

from replications.set_transformer.model import ISAB, MAB, PMA, SAB, SetModel
from replications.set_transformer.replication import REPLICATION
from tests.checklist import spread
from tests.replications.shipped_variants import scale_file_of

SIZES = (4, 1, 3)  # with as many elements as inducing points, too
X, D, H, M = 3, 8, 2, 4


def network(**changes: object) -> SetModel:
    torch.manual_seed(1)
    sizes = {"encoder": "sab", "pooling": "attention", "blocks": 2, "decoder": 1, "norm": False}
    shape = {"elements": X, "outputs": (2, 5), "width": D, "heads": H, "points": M}
    return spread(SetModel(**shape | sizes | changes))  # type: ignore[arg-type, return-value]


def linear(x: np.ndarray, layer: torch.nn.Module) -> np.ndarray:
    """A linear layer, or one with a ReLU after it."""
    if isinstance(layer, torch.nn.Sequential):
        return np.maximum(0, linear(x, layer[0]))
    weight, bias = (p.detach().numpy() for p in layer.parameters())
    return x @ weight.T + bias


def normed(x: np.ndarray, norm: torch.nn.Module) -> np.ndarray:
    if isinstance(norm, torch.nn.Identity):
        return x
    scale, shift = (p.detach().numpy() for p in norm.parameters())
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + norm.eps) * scale + shift


def mab(x: np.ndarray, y: np.ndarray, block: MAB) -> np.ndarray:
    """Equations 6 and 7, head by head and row by row."""
    multihead = block.multihead
    w_q, w_kv, w_o = (w.weight.detach().numpy() for w in (multihead.w_q, multihead.w_kv, multihead.w_o))
    heads = np.zeros_like(x)
    for head in np.split(np.arange(D), H):
        q, k, v = x @ w_q[head].T, y @ w_kv[head].T, y @ w_kv[D + head].T
        for i in range(len(x)):
            weights = np.exp(k @ q[i] / np.sqrt(D))
            heads[i, head] = weights @ v / weights.sum()
    h = normed(x + heads @ w_o.T, block.norm_h)
    return normed(h + linear(h, block.rff), block.norm)


def block_of(x: np.ndarray, block: torch.nn.Module) -> np.ndarray:
    """Equations 8 to 11."""
    if isinstance(block, SAB):
        return mab(x, x, block.mab)
    if isinstance(block, ISAB):
        return mab(x, mab(block.points.detach().numpy(), x, block.mab_h), block.mab)
    if isinstance(block, PMA):
        return mab(block.seeds.detach().numpy(), linear(x, block.rff), block.mab)
    return linear(x, block)


@pytest.mark.parametrize("encoder", ["sab", "isab", "rff"])
@pytest.mark.parametrize("pooling", ["attention", "mean", "max"])
@pytest.mark.parametrize("norm", [False, True])
def test_it_is_the_equations_set_by_set(encoder: str, pooling: str, norm: bool) -> None:
    model, x = network(encoder=encoder, pooling=pooling, norm=norm), torch.randn(3, max(SIZES), X, dtype=torch.float64)
    mask = torch.arange(max(SIZES)) < torch.tensor(SIZES).unsqueeze(1)
    found = model(x, mask).detach().numpy()
    for row, size in enumerate(SIZES):
        z = linear(x[row, :size].numpy(), model.embedding)
        for block in model.encoder:
            z = block_of(z, block)
        z = block_of(z, model.pma) if model.pma else z.mean(0, keepdims=True) if pooling == "mean" else z.max(0)[None]
        for block in model.decoder:
            z = block_of(z, block)
        np.testing.assert_allclose(found[row], linear(z, model.output).reshape(2, 5), atol=1e-10)


def test_the_study_finds_no_order_and_a_linear_cost() -> None:
    run = scale_file_of("set_transformer", "quick").run("order")
    study = REPLICATION.runners["study"]["order"]  # type: ignore[index]
    sizes = {"sizes": [8, 16, 64], "width": D, "heads": H, "points": M}
    found = study.evaluate(run.with_model({**run.model, **sizes}), prepared=Path(), trained=[Path("seed1")], out=Path())
    for form in ("sab", "isab", "mean", "max"):
        assert found[f"{form}.invariance"] < 1e-10
        assert found[f"{form}.equivariance"] < 1e-10
    for n in sizes["sizes"]:  # projections, scores and sums, rFF

        def cost(queries: int, keys: int) -> int:
            return 2 * D * D * (queries + keys) + 2 * queries * keys * D + queries * D * D

        assert found[f"sab.operations_n{n}"] == cost(n, n)
        assert found[f"isab.operations_n{n}"] == cost(M, n) + cost(n, M)
    assert found["isab.growth"] == 1.0 < 1.5 < found["sab.growth"]
