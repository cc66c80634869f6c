"""Parity with torch's own recurrent layers, weights copied.

Their GRU applies the reset gate after the recurrent product and lets z keep the old state. With a reset gate that is
always open, and the sign of the update gate turned, the two are the same function.
"""

import pytest
import torch
from torch import nn

from replications.bahdanau.model import Encoder
from shared.layers.gated_recurrence import GatedUnit, gated_recurrence

F64 = torch.float64
OPEN = 60.0  # sigmoid(60) is 1 in float64 to the last bit that matters


def copied(unit: GatedUnit, direction: int) -> dict[str, torch.Tensor]:
    """The unit's weights in the layout of ``nn.GRU``: reset, update (sign turned), candidate."""
    n = unit.u_candidate.size(-1)
    w_c, w_z, w_r = unit.w[direction].split(n, dim=1)
    b_c, b_z, b_r = unit.b[direction, 0].split(n)
    u_z, u_r = unit.u_gates[direction].split(n, dim=1)
    return {
        "weight_ih": torch.cat((w_r, -w_z, w_c), dim=1).t(),
        "weight_hh": torch.cat((u_r, -u_z, unit.u_candidate[direction]), dim=1).t(),
        "bias_ih": torch.cat((b_r, -b_z, b_c)),
        "bias_hh": torch.zeros(3 * n, dtype=unit.b.dtype),
    }


def opened(unit: GatedUnit) -> GatedUnit:
    n = unit.u_candidate.size(-1)
    with torch.no_grad():
        for parameter in unit.parameters():
            nn.init.normal_(parameter, std=0.4)
        unit.b[..., 2 * n :] = OPEN
    return unit


@pytest.mark.parametrize(("dtype", "tolerance"), [(F64, 1e-10), (torch.float32, 1e-5)])
def test_with_an_open_reset_gate_it_is_torchs_cell(dtype, tolerance):
    unit = opened(GatedUnit(input_size=5, hidden_size=4)).to(dtype)
    cell = nn.GRUCell(5, 4).to(dtype)
    with torch.no_grad():
        for name, value in copied(unit, 0).items():
            getattr(cell, name).copy_(value)
    x = torch.randn(7, 3, 5, dtype=dtype, requires_grad=True)
    h = torch.zeros(3, 4, dtype=dtype)
    states = []
    for step in x:
        h = cell(step, h)
        states.append(h)
    expected = torch.stack(states)
    mask = torch.ones(7, 1, 3, dtype=torch.bool)
    projected = unit.project(x.flatten(0, 1).unsqueeze(0)).view(7, 3, 12).unsqueeze(1)
    initial = torch.zeros(1, 3, 4, dtype=dtype)
    ours = gated_recurrence(projected, initial, unit.u_gates, unit.u_candidate, mask)[:, 0]
    torch.testing.assert_close(ours, expected, atol=tolerance, rtol=tolerance)
    cotangent = torch.randn_like(expected)
    (ours_x,) = torch.autograd.grad(ours, x, cotangent, retain_graph=True)
    (theirs_x,) = torch.autograd.grad(expected, x, cotangent, retain_graph=True)
    torch.testing.assert_close(ours_x, theirs_x, atol=tolerance, rtol=tolerance)
    (ours_u,) = torch.autograd.grad(ours, unit.u_candidate, cotangent)
    (theirs_u,) = torch.autograd.grad(expected, cell.weight_hh, cotangent)
    torch.testing.assert_close(ours_u[0], theirs_u[8:].t(), atol=10 * tolerance, rtol=10 * tolerance)


def test_the_bidirectional_encoder_is_torchs_on_packed_sequences():
    encoder = Encoder(vocabulary=9, embedding_size=5, hidden_size=4, bidirectional=True, dropout=0.0).to(F64)
    opened(encoder.unit)
    theirs = nn.GRU(5, 4, bidirectional=True, batch_first=True).to(F64)
    with torch.no_grad():
        for direction, suffix in enumerate(("", "_reverse")):
            for name, value in copied(encoder.unit, direction).items():
                getattr(theirs, f"{name}_l0{suffix}").copy_(value)
    lengths = torch.tensor([6, 3, 1])
    mask = torch.arange(6) < lengths.unsqueeze(1)
    source = torch.randint(1, 9, (3, 6))
    packed = nn.utils.rnn.pack_padded_sequence(encoder.embedding(source), lengths, batch_first=True)
    expected, _ = nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
    ours = encoder(source, mask)
    torch.testing.assert_close(ours[mask], expected[mask], atol=1e-10, rtol=0)
