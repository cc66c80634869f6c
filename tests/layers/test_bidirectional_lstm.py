"""The bidirectional LSTM against its equations, against torch's packed sequences, and over padding."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from shared.layers.bidirectional_lstm import BidirectionalLSTM

F64 = torch.float64
INPUT, U = 4, 3
DIRECTIONS = ("", "_reverse")
TOLERANCES = [(F64, 1e-10), (torch.float32, 1e-5)]
many = settings(deadline=None, max_examples=30)
some_lengths = st.lists(st.integers(1, 9), min_size=1, max_size=5)
seeds = st.integers(0, 2**31)


def case(lengths, seed, dtype=F64):
    """A layer with weights large enough to matter, and inputs under their mask, with garbage at padding."""
    torch.manual_seed(seed)
    layer = BidirectionalLSTM(input_size=INPUT, hidden_size=U).to(dtype)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.7)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return layer, torch.randn(*mask.shape, INPUT, dtype=dtype), mask


def weights(layer, direction):
    """Of the words, of the bias, and of the state."""
    of_inputs = getattr(layer.lstm, f"weight_ih_l0{direction}")
    return of_inputs[:, :INPUT], of_inputs[:, INPUT], getattr(layer.lstm, f"weight_hh_l0{direction}")


def torchs_own(layer):
    """With two biases per gate, of which the second is zero."""
    lstm = nn.LSTM(INPUT, U, bidirectional=True, batch_first=True).to(layer.lstm.weight_ih_l0.dtype)
    with torch.no_grad():
        for direction in DIRECTIONS:
            names = "weight_ih", "bias_ih", "weight_hh"
            for name, weight in zip(names, weights(layer, direction), strict=True):
                getattr(lstm, f"{name}_l0{direction}").copy_(weight)
            getattr(lstm, f"bias_hh_l0{direction}").zero_()
    return lstm


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES)
@many
@given(lengths=some_lengths, seed=seeds)
def test_it_is_torchs_packed_lstm_in_values_and_gradients(dtype, tolerance, lengths, seed):
    layer, x, mask = case(lengths, seed, dtype)
    lstm, x = torchs_own(layer), x.requires_grad_()
    packed = pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    found, (expected, _) = layer(x, mask), pad_packed_sequence(lstm(packed)[0], batch_first=True)
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)
    cotangent = torch.randn_like(found)
    (ours,), (theirs,) = (torch.autograd.grad(h, x, cotangent, retain_graph=True) for h in (found, expected))
    torch.testing.assert_close(ours, theirs, atol=10 * tolerance, rtol=10 * tolerance)
    torch.autograd.backward((found, expected), (cotangent, cotangent))
    for direction in DIRECTIONS:
        bias = getattr(lstm, f"bias_ih_l0{direction}").grad.unsqueeze(1)
        gradients = torch.cat((getattr(lstm, f"weight_ih_l0{direction}").grad, bias), dim=1)
        ours = [getattr(layer.lstm, f"weight_{kind}_l0{direction}").grad for kind in ("ih", "hh")]
        theirs = [gradients, getattr(lstm, f"weight_hh_l0{direction}").grad]
        torch.testing.assert_close(ours, theirs, atol=10 * tolerance, rtol=10 * tolerance)


def one_direction(layer, direction, words):
    """States h (n, u) after each of the words (n, I), from the LSTM's equations."""
    w, b, v = weights(layer, direction)
    h = c = torch.zeros(U, dtype=words.dtype)
    states = []
    for word in words:
        i, f, g, o = (w @ word + b + v @ h).chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        states.append(h)
    return torch.stack(states)


@many
@given(lengths=some_lengths, seed=seeds)
def test_each_direction_reads_its_text_alone_by_the_equations(lengths, seed):
    layer, x, mask = case(lengths, seed)
    h = layer(x, mask)
    for row, length in enumerate(lengths):
        words = x[row, :length]
        backward = one_direction(layer, "_reverse", words.flip(0)).flip(0)
        expected = torch.cat((one_direction(layer, "", words), backward), dim=1)
        torch.testing.assert_close(h[row, :length], expected, atol=1e-12, rtol=0)


@many
@given(lengths=some_lengths, seed=seeds, dtype=st.sampled_from([F64, torch.float32]))
def test_what_stands_at_padding_is_not_read_and_gives_zero(lengths, seed, dtype):
    layer, x, mask = case(lengths, seed, dtype)
    h, outside = layer(x, mask), ~mask.unsqueeze(-1)
    other = torch.where(outside, 1e3 * torch.randn_like(x), x).requires_grad_()
    again = layer(other, mask)
    assert torch.equal(again, h)
    assert not h.masked_select(outside).any()
    (gradient,) = torch.autograd.grad(again.sum(), other)
    assert not gradient.masked_select(outside).any()


def test_a_unit_at_rest_that_reads_padding_stays_at_rest():
    layer, _, _ = case([6, 6], seed=1, dtype=torch.float32)
    h, (_, cell) = layer.lstm(torch.zeros(2, 6, INPUT + 1))
    assert not h.any()
    assert not cell.any()


@many
@given(lengths=some_lengths, seed=seeds, more=st.integers(1, 4))
def test_columns_of_padding_change_nothing(lengths, seed, more):
    """What remains is that sums of products of another shape may be rounded in another order."""
    layer, x, mask = case(lengths, seed)
    garbage = torch.randn(len(lengths), more, INPUT, dtype=F64)
    wider = layer(torch.cat((x, garbage), dim=1), nn.functional.pad(mask, (0, more)))
    assert not wider[:, max(lengths) :].any()
    torch.testing.assert_close(wider[:, : max(lengths)], layer(x, mask), atol=1e-13, rtol=0)


@many
@given(lengths=some_lengths, seed=seeds)
def test_a_batch_is_its_texts(lengths, seed):
    layer, x, mask = case(lengths, seed)
    h = layer(x, mask)
    for row, length in enumerate(lengths):
        one = slice(row, row + 1)
        alone = layer(x[one, :length], mask[one, :length])
        torch.testing.assert_close(h[one, :length], alone, atol=1e-13, rtol=0)


@pytest.mark.parametrize(("width", "hidden_size"), [(1, 1), (5, 3), (100, 300)])
def test_there_is_one_bias_per_gate(width, hidden_size):
    layer = BidirectionalLSTM(input_size=width, hidden_size=hidden_size)
    count = sum(parameter.numel() for parameter in layer.parameters())
    assert count == 2 * 4 * hidden_size * (width + 1 + hidden_size)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_computes_the_same():
    layer, x, mask = case([7, 4, 1], seed=1)
    found = []
    for device in ("cpu", "cuda"):
        layer.to(device).zero_grad()
        h = layer(x.to(device), mask.to(device))
        assert not h[~mask].any()
        h.square().sum().backward()
        found.append([h.detach().cpu(), *(parameter.grad.cpu() for parameter in layer.parameters())])
    torch.testing.assert_close(*found, atol=1e-8, rtol=1e-8)
