"""The study of exactness: that it measures what it says, finds what is wrong, and counts what is kept."""

import json
from itertools import product

import pytest
import torch

from replications.linear_transformer import exactness
from tests.replications.studied import NETWORK, SECTION, build_studied, measured

SMALL = SECTION | {"study": "exactness", "symbols": 7, "length": 10, "lengths": [64, 192], "draws": 2}
H, C = SECTION["heads"], SECTION["width"] // SECTION["heads"]
F64 = torch.float64


def network(length=9):
    torch.manual_seed(3)
    return build_studied(SECTION | {"attention": "linear", "max_length": length}, 7, True).double().eval()


def evaluate(**changes):
    return measured(exactness.Exactness(*NETWORK), SMALL | changes)


# ---------------------------------------------------------------------------------------------------------------
# The equations


@pytest.mark.parametrize("form", [exactness.sum_over_keys, exactness.cumulative_sums])
def test_the_equation_by_hand(form):
    q = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])[None, None]
    k = torch.tensor([[5.0, 1.0], [1.0, 3.0], [2.0, 2.0]])[None, None]
    v = torch.tensor([[1.0], [9.0], [4.0]])[None, None]
    # Weights 5; 2 and 6; 6, 4 and 4.
    torch.testing.assert_close(form(q, k, v).flatten(), torch.tensor([1.0, 56 / 8, (6 + 36 + 16) / 14]))


def test_a_whole_network_by_the_equation(monkeypatch):
    model, inputs = network(), torch.randint(7, (2, 9))
    expected = model(inputs)
    with exactness.by_equation(model):
        torch.testing.assert_close(model(inputs), expected, atol=1e-12, rtol=0)
        # What attention does has no part in it.
        monkeypatch.setattr("replications.linear_transformer.model.linear_attention", lambda q, k, v, mask, causal: v)
        torch.testing.assert_close(model(inputs), expected, atol=1e-12, rtol=0)
    assert (model(inputs) - expected).abs().max() > 0.01


def test_the_recurrent_form_sees_a_symbol_at_a_time():
    model, inputs = network(), torch.randint(7, (2, 9))
    seen = []
    model.embedding.register_forward_hook(lambda _, x, out: seen.append(x[0].squeeze(1).tolist()))
    h = exactness.step_by_step(model, inputs)
    assert seen == inputs.T.tolist()
    torch.testing.assert_close(h, model(inputs), atol=1e-12, rtol=0)


# ---------------------------------------------------------------------------------------------------------------
# Differences


def outcome(values, *gradients):
    return exactness.Outcome(torch.tensor(values, dtype=F64), tuple(torch.tensor(g, dtype=F64) for g in gradients))


def test_differences_are_the_largest_and_those_of_gradients_relative():
    exact = outcome([1.0, 2.0], [10.0, -40.0], [0.5, 0.1])
    close, far = (outcome([1.0, 2.5], [12.0, -40.0], [0.5, 0.1]), outcome([4.0, 2.0], [10.0, -40.0], [0.5, 0.2]))
    outcomes = dict.fromkeys(product(("chunkwise", "recurrent"), exactness.TYPES), exact)
    outcomes |= {("chunkwise", "float32"): close, ("recurrent", "float64"): far}
    found = exactness.differences("level", outcomes, exact)
    single, double = {"values": 0.5, "gradients": 2 / 40}, {"values": 3.0, "gradients": 0.1 / 0.5}
    for what in ("values", "gradients"):
        for form, by_type in {
            "chunkwise": (single[what], 0.0), "recurrent": (0.0, double[what]),
            "recurrent_to_chunkwise": (single[what], double[what]),
        }.items():  # fmt: skip
            assert [found.pop(f"level_{form}.{what}_{name}") for name in ("float32", "float64")] == pytest.approx(
                by_type
            )
    assert not found


def test_outcomes_of_a_network_are_its_states_and_the_gradients_of_its_parameters():
    model, inputs, targets = network().float(), torch.randint(7, (2, 9)), torch.randint(7, (2, 9))
    outcomes, exact = exactness.model_outcomes(model, inputs, targets)
    model.output(model(inputs), targets).sum().backward()
    for (_, of), (values, gradients) in [*outcomes.items(), (("exact", "float64"), exact)]:
        assert {values.dtype, *(g.dtype for g in gradients)} == {exactness.TYPES[of]}
        torch.testing.assert_close(values.float(), model(inputs), atol=1e-5, rtol=1e-4)
        for gradient, parameter in zip(gradients, model.parameters(), strict=True):
            torch.testing.assert_close(gradient.float(), parameter.grad, atol=1e-4, rtol=1e-3)


# ---------------------------------------------------------------------------------------------------------------
# What is kept


def test_what_is_kept_and_what_of_it_is_new():
    q, k, v = (torch.rand(1, 2, 5, 4) for _ in range(3))
    assert exactness.kept_bytes(lambda q, k, v: q * k + v, q, k, v) == (2 * 4 * 40, 0)
    assert exactness.kept_bytes(lambda q, k, v: v.exp(), q, k, v) == (4 * 40, 0)  # the result
    assert exactness.kept_bytes(lambda q, k, v: v.exp().exp(), q, k, v) == (2 * 4 * 40, 4 * 40)
    assert exactness.kept_bytes(lambda q, k, v: q[..., 1:] * k[..., :3], q, k, v) == (2 * 4 * 40, 0)  # parts of inputs


def test_the_chunkwise_form_keeps_a_number_for_every_symbol_more():
    metrics = exactness.kept(exactness.heads_of(network()), [64, 256])
    for length in (64, 256):
        given = 4 * 4 * H * length * C
        assert metrics[f"chunkwise.kept_bytes_n{length}"] == given + metrics[f"chunkwise.kept_beyond_n{length}"]
        assert metrics[f"cumulative.kept_beyond_n{length}"] >= 4 * H * length * C * C
        assert metrics[f"parallel.kept_beyond_n{length}"] >= 4 * H * length * length
        ratio = metrics[f"cumulative.kept_bytes_n{length}"] / metrics[f"chunkwise.kept_bytes_n{length}"]
        assert metrics[f"kept_ratio@{length}"] == ratio
    assert metrics["chunkwise.kept_beyond_per_symbol"] == 1
    assert metrics["cumulative.kept_beyond_per_symbol"] > C * C
    assert metrics["parallel.kept_beyond_per_symbol"] > 64 + 256
    chunkwise, cumulative, parallel = (
        metrics[f"{form}.kept_growth"] for form in ("chunkwise", "cumulative", "parallel")
    )
    assert chunkwise < 1 == cumulative < 2 < parallel
    assert metrics["kept_ratio"] == metrics["kept_ratio@256"] > 1


# ---------------------------------------------------------------------------------------------------------------
# The study


def test_differences_of_the_study_are_those_of_rounding():
    metrics = evaluate(length=70)
    apart = [name for name in metrics if name.endswith(tuple(exactness.TYPES))]
    assert len(apart) == 4 * (len(exactness.FORMS) + 1 + 3)
    assert json.loads(json.dumps(metrics)) == metrics
    for name in apart:
        assert 0 <= metrics[name] < (1e-5 if name.endswith("32") else 1e-12), name
        assert metrics[name] > 1e-9 or name.endswith("64"), name  # rounding in float32 is seen
    assert metrics["kept_ratio"] == metrics["kept_ratio@192"]


def test_a_wrong_gradient_and_one_that_is_not_a_number_are_found(monkeypatch):
    right = exactness.FORMS["chunkwise"]
    monkeypatch.setitem(exactness.FORMS, "chunkwise", lambda q, k, v: right(q, 1.001 * k.detach() - 0.001 * k, v))
    metrics = evaluate()
    assert metrics["layer_chunkwise.values_float64"] < 1e-12
    assert metrics["layer_chunkwise.gradients_float64"] > 0.9
    assert metrics["layer_recurrent.gradients_float64"] < 1e-12
    draws = iter([1.0, 1.0, torch.nan, torch.nan, 1.0, 1.0])  # of the second network
    monkeypatch.setitem(exactness.FORMS, "parallel", lambda q, k, v: right(q, k, v) * next(draws, 1.0))
    metrics = evaluate(draws=3)
    assert torch.tensor(metrics["layer_parallel.values_float64"]).isnan()
