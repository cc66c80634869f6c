"""The hand-written LSTM unit against its equations, and the step loop against ``torch.nn.LSTM``'s own."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.layers.stacked_lstm import StackedLSTM, lstm_cell

F64 = torch.float64
many = settings(deadline=None, max_examples=30)
layers = pytest.mark.parametrize("layers", [1, 2, 3])
T, B, KNOWN, FED, N = 5, 3, 4, 2, 6


def lstm_of(layers, *, dropout=0.0):
    lstm = StackedLSTM(input_size=KNOWN + FED, hidden_size=N, layers=layers, dropout=dropout).to(F64)
    for parameter in lstm.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return lstm


def inputs_of(layers):
    """x (T, B, known), fed (T, B, fed), and h and c (L, B, N), all wanting gradients."""
    shapes = (T, B, KNOWN), (T, B, FED), (layers, B, N), (layers, B, N)
    return [torch.randn(shape, dtype=F64, requires_grad=True) for shape in shapes]


def equations(gates, c):
    i, f, g, o = gates.chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def unroll(lstm, x, fed, h, c):
    """What ``torch.nn.LSTM`` returns, from the loop."""
    state = list(zip(h.unbind(0), c.unbind(0), strict=True))
    loop, top = lstm.unrolled(x), []
    for t in range(len(x)):
        state = loop.step(t, fed[t], state)
        top.append(state[-1][0])
    h, c = (torch.stack(tensors) for tensors in zip(*state, strict=True))
    return torch.stack(top), (h, c)


@pytest.mark.parametrize(("dtype", "tolerance"), [(F64, 1e-12), (torch.float32, 1e-5)])
@many
@given(batch=st.integers(1, 4), width=st.integers(1, 5), scale=st.sampled_from([0.1, 1, 5]))
def test_the_unit_has_values_and_gradients_of_the_equations(dtype, tolerance, batch, width, scale):
    gates = (scale * torch.randn(batch, 4 * width, dtype=dtype)).requires_grad_()
    c = (scale * torch.randn(batch, width, dtype=dtype)).requires_grad_()
    fast, plain = lstm_cell(gates, c), equations(gates, c)
    torch.testing.assert_close(fast, plain, atol=tolerance, rtol=tolerance)
    cotangents = [torch.randn_like(output) for output in fast]
    ours, theirs = (torch.autograd.grad(outputs, (gates, c), cotangents) for outputs in (fast, plain))
    torch.testing.assert_close(ours, theirs, atol=10 * tolerance, rtol=10 * tolerance)


def test_the_hand_written_backward_pass_passes_gradcheck():
    gates, c = (torch.randn(3, n, dtype=F64, requires_grad=True) for n in (8, 2))
    assert torch.autograd.gradcheck(lstm_cell, (gates, c))


@pytest.mark.parametrize("used", [0, 1])
def test_the_loss_may_use_only_the_hidden_or_only_the_cell_state(used):
    gates, c = (torch.randn(3, n, dtype=F64, requires_grad=True) for n in (8, 2))
    ours, theirs = (
        torch.autograd.grad(cell(gates, c)[used].square().sum(), (gates, c)) for cell in (lstm_cell, equations)
    )
    torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-12)


def test_extreme_sums_saturate_without_nan():
    gates = (1e30 * torch.randn(3, 8)).requires_grad_()
    h, c = lstm_cell(gates, torch.zeros(3, 2))
    (gradient,) = torch.autograd.grad((h + c).sum(), gates)
    assert all(tensor.isfinite().all() for tensor in (h, c, gradient))


def test_the_states_have_the_type_of_the_cell_state():
    gates, c = torch.randn(3, 8).bfloat16().requires_grad_(), torch.randn(3, 2)
    h, after = lstm_cell(gates, c)
    assert h.dtype == after.dtype == torch.float32
    (h + after).sum().backward()
    assert gates.grad.dtype == torch.bfloat16


@layers
def test_the_loop_is_torchs_own_if_what_is_fed_is_known_before(layers):
    lstm, inputs = lstm_of(layers), inputs_of(layers)
    x, fed, h, c = inputs
    whole, final = lstm(torch.cat((x, fed), dim=2), (h, c))
    looped, last = unroll(lstm, *inputs)
    ours, theirs = (looped, *last), (whole, *final)
    torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-12)
    cotangents = [torch.randn_like(output) for output in theirs]
    wanted = [*inputs, *lstm.parameters()]
    assert len(wanted) == 4 + 2 * layers  # no biases
    gradients = [torch.autograd.grad(outputs, wanted, cotangents) for outputs in (ours, theirs)]
    torch.testing.assert_close(*gradients, atol=1e-11, rtol=1e-11)


@layers
def test_zeros_in_front_leave_the_state_at_rest_and_change_nothing(layers):
    lstm, (x, fed, _, _) = lstm_of(layers), inputs_of(layers)
    inputs = torch.cat((x, fed), dim=2)
    padded = torch.cat((torch.zeros(4, B, KNOWN + FED, dtype=F64), inputs))
    alone, final = lstm(inputs)
    behind, same = lstm(padded)
    assert not behind[:4].any()
    torch.testing.assert_close((behind[4:], same), (alone, final), atol=1e-14, rtol=0)
    rest = torch.zeros(layers, B, N, dtype=F64)
    looped, _ = unroll(lstm, *padded.split((KNOWN, FED), dim=2), rest, rest)
    assert not looped[:4].any()
    torch.testing.assert_close(looped[4:], alone, atol=1e-12, rtol=0)


@layers
def test_sequences_that_end_together_are_read_as_each_would_be_alone(layers):
    lstm, lengths = lstm_of(layers), (70, 38, 21, 2)
    alone = [torch.randn(length, 1, KNOWN + FED, dtype=F64, requires_grad=True) for length in lengths]
    padding = torch.tensor([max(lengths) - length for length in lengths])
    padded = torch.cat(
        [torch.cat((x.new_zeros(rest, *x.shape[1:]), x)) for x, rest in zip(alone, padding.tolist(), strict=True)],
        dim=1,
    )
    top, final = lstm.after_padding(padded, padding)
    outputs = top, *final
    each = [lstm(x) for x in alone]
    for place, (rest, (wanted, state)) in enumerate(zip(padding.tolist(), each, strict=True)):
        assert not top[:rest, place].any()
        torch.testing.assert_close(top[rest:, place], wanted[:, 0], atol=1e-12, rtol=0)
        torch.testing.assert_close([s[:, place] for s in final], [s[:, 0] for s in state], atol=1e-12, rtol=0)
    wanting = [*alone, *lstm.parameters()]
    together = torch.autograd.grad(sum(tensor.square().sum() for tensor in outputs), wanting)
    apart = torch.autograd.grad(sum(s.square().sum() for h, state in each for s in (h, *state)), wanting)
    torch.testing.assert_close(together, apart, atol=1e-10, rtol=1e-10)


def test_gradients_that_grow_at_rest_stay_finite():
    """Without the cut infinity times zero would be in the sums; weights are as large as training has made them."""
    lstm, padding = StackedLSTM(input_size=3, hidden_size=64, layers=1), torch.tensor([0, 150])
    torch.nn.init.normal_(lstm.weight_hh_l0, std=1.2)
    x = torch.randn(152, 2, 3).masked_fill((torch.arange(152).unsqueeze(1) < padding).unsqueeze(2), 0)
    for read, finite in ((lstm, False), (lambda x: lstm.after_padding(x, padding), True)):
        top, _ = read(x)
        gradients = torch.autograd.grad(top[-1, 1].sum(), lstm.parameters())
        assert all(gradient.isfinite().all() for gradient in gradients) == finite


@layers
def test_dropout_acts_between_layers_only(layers):
    lstm, inputs = lstm_of(layers, dropout=1.0), inputs_of(layers)
    x, fed, h, c = inputs
    top, (h_n, _) = unroll(lstm, *inputs)
    for layer in range(layers):
        below = torch.cat((x, fed), dim=2) if layer == 0 else torch.zeros(T, B, N, dtype=F64)
        one = torch.nn.LSTM(below.size(2), N, bias=False).to(F64)
        one.weight_ih_l0, one.weight_hh_l0 = (getattr(lstm, f"weight_{kind}_l{layer}") for kind in ("ih", "hh"))
        alone, _ = one(below, (h[layer : layer + 1], c[layer : layer + 1]))
        torch.testing.assert_close(h_n[layer], alone[-1], atol=1e-12, rtol=0)  # all that went up was dropped
    torch.testing.assert_close(top, alone, atol=1e-12, rtol=0)  # the outputs were not
    lstm.eval()
    torch.testing.assert_close(unroll(lstm, *inputs)[0], lstm(torch.cat((x, fed), dim=2), (h, c))[0])


def test_what_is_not_dropped_is_scaled_up():
    lstm, inputs = lstm_of(2, dropout=0.5), inputs_of(2)
    with torch.no_grad():
        lstm.weight_ih_l1.mul_(0.001)  # small gates are linear in what comes from below
        lstm.weight_hh_l1.zero_()
        x, fed, h, _ = inputs
        rest = torch.zeros_like(h)
        mean = torch.stack([unroll(lstm, x, fed, rest, rest)[0] for _ in range(400)]).mean(0)
        lstm.eval()
        expected = unroll(lstm, x, fed, rest, rest)[0]
    assert (mean - expected).norm() < 0.15 * expected.norm()


def test_one_layer_has_no_dropout_of_its_own():
    lstm, inputs = lstm_of(1, dropout=0.9), inputs_of(1)
    assert torch.equal(unroll(lstm, *inputs)[0], unroll(lstm, *inputs)[0])
