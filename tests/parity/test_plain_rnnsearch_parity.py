"""The whole of RNNsearch against torch's GRU cells with plain autograd, weights copied.

Torch's cell applies the reset gate after the recurrent product. A diagonal U commutes with the gate, so that the two
agree with the gate at work; the update gate's sign is turned.
"""

import pytest
import torch
from torch import nn

from benchmarks.plain_rnnsearch import PlainRNNsearch
from replications.bahdanau.model import RNNsearch
from shared.layers.gated_recurrence import GatedUnit

F64 = torch.float64
M, N, A = 4, 6, 5
SIZES = {
    "source_vocabulary": 11, "target_vocabulary": 9, "embedding_size": M, "hidden_size": N, "alignment_size": A,
    "maxout_size": 3,
}  # fmt: skip


def turned(candidate, update, reset):
    """The order and the signs of torch's gates: reset, update, candidate."""
    return torch.cat((reset, -update, candidate), dim=-1)


def copy_cell(cell: nn.GRUCell, unit: GatedUnit, direction: int, context: nn.Linear | None = None) -> None:
    w = torch.cat((unit.w[direction], *([] if context is None else [context.weight.t()])))  # (I, 3N)
    cell.weight_ih.copy_(turned(*w.split(N, dim=1)).t())
    cell.weight_hh.copy_(turned(unit.u_candidate[direction], *unit.u_gates[direction].split(N, dim=1)).t())
    cell.bias_ih.copy_(turned(*unit.b[direction, 0].split(N)))
    cell.bias_hh.zero_()


@pytest.fixture(params=[False, True], ids=["read-out word by word", "read-out after the loop"])
def pair(request):
    ours, plain = RNNsearch(**SIZES), PlainRNNsearch(**SIZES, batched_readout=request.param)
    ours, plain = ours.to(F64), plain.to(F64)
    out, attention = ours.output, ours.attention
    with torch.no_grad():
        for parameter in ours.parameters():
            nn.init.normal_(parameter, std=0.5)
        for unit in (ours.encoder.unit, ours.unit):
            for matrix in unit.u_candidate:
                matrix.copy_(torch.diag(torch.randn(N, dtype=F64)))
        for layer, weight, bias in (
            (plain.source, ours.encoder.embedding.weight, None), (plain.target, ours.embedding.weight, None),
            (plain.start, ours.w_s.weight, ours.w_s.bias), (plain.query, attention.w_a.t(), None),
            (plain.key, attention.u_a.t(), torch.zeros(A)), (plain.score, attention.v_a.unsqueeze(0), None),
            (plain.readout, torch.cat((out.u_o.weight, out.v_o.weight, out.c_o.weight), dim=1), out.u_o.bias),
            (plain.output, out.w_o.weight, out.w_o.bias),
        ):  # fmt: skip
            layer.weight.copy_(weight)
            if bias is not None:
                layer.bias.copy_(bias)
        copy_cell(plain.forward_cell, ours.encoder.unit, 0)
        copy_cell(plain.backward_cell, ours.encoder.unit, 1)
        copy_cell(plain.cell, ours.unit, 0, ours.c)
    return ours, plain


def test_logits_weights_and_gradients_are_those_of_torchs_cells(pair):
    ours, plain = pair
    mask = torch.arange(6) < torch.tensor([6, 3, 1]).unsqueeze(1)
    source, target = torch.randint(1, 11, (3, 6)) * mask, torch.randint(1, 9, (3, 5))
    found, expected = ours(source, mask, target), plain(source, mask, target)
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=0)
    cotangents = [torch.randn_like(output) for output in expected]
    torch.autograd.backward(found, cotangents)
    torch.autograd.backward(expected, cotangents)
    unit, cell = ours.unit, plain.cell
    for mine, theirs in (
        (ours.encoder.embedding.weight.grad, plain.source.weight.grad),
        (ours.embedding.weight.grad, plain.target.weight.grad),
        (ours.w_s.weight.grad, plain.start.weight.grad),
        (ours.attention.w_a.grad, plain.query.weight.grad.t()),
        (ours.attention.u_a.grad, plain.key.weight.grad.t()),
        (ours.attention.v_a.grad, plain.score.weight.grad[0]),
        (turned(*torch.cat((unit.w.grad[0], ours.c.weight.grad.t())).split(N, dim=1)).t(), cell.weight_ih.grad),
        (turned(*unit.b.grad[0, 0].split(N)), cell.bias_ih.grad),
        (unit.u_gates.grad[0, :, N:].t(), cell.weight_hh.grad[:N]),
        (-unit.u_gates.grad[0, :, :N].t(), cell.weight_hh.grad[N : 2 * N]),
        (unit.u_candidate.grad[0].diagonal(), cell.weight_hh.grad[2 * N :].diagonal()),
        (ours.output.w_o.weight.grad, plain.output.weight.grad),
    ):  # fmt: skip
        torch.testing.assert_close(mine, theirs, atol=1e-9, rtol=1e-9)
