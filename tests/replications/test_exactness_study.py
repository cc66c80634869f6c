"""The studies of exactness and of generation: what they measure, of whom, and what they make of their numbers."""

import json
from itertools import chain, count, product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from replications.linear_transformer import exactness, generation
from replications.linear_transformer.settings import SUBJECTS, GenerationConfig
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


SMALL_GENERATION = SECTION | {"study": "generation", "length": 12, "symbols": 7, "batch": 3, "places": 2, "repeats": 1}


def settings(**changes):
    return GenerationConfig(study="generation", batch=2, **changes)


def generator(attention, length=12, **changes):
    section = SECTION | {"attention": attention, "max_length": length} | changes
    return build_studied(section, 7, True).eval()


@given(st.integers(4, 3000), st.integers(2, 40))
def test_spans_are_a_picture_and_their_places_no_further_than_their_middles(length, places):
    if places > length:
        with pytest.raises(ValidationError, match=f"{places} places do not fit into a length of {length}"):
            settings(length=length, places=places)
        return
    spans = settings(length=length, places=places).spans
    assert list(chain(*spans)) == list(range(length))
    assert len(spans) == places
    for span in spans:  # symbol t is drawn from t + 1
        mean = sum(t + 1 for t in span) / len(span)
        assert mean - 0.5 <= generation.middle(span) <= mean
        assert generation.middle(span) >= 1


class Clock:
    """Stands still but for what is added to it."""

    now = 0.0

    def __call__(self):
        return self.now


class Watched:
    """A network whose clock goes by what it reads: a step takes 1 and as much as is remembered, a prefix its square."""

    def __init__(self, clock):
        self.clock, self.seen, self.drawn = clock, [], count(100)
        self.embedding, self.output = torch.nn.Embedding(1, 1), self

    def initial_state(self, batch):
        self.seen.append(("begin", batch))
        return 0

    def step(self, symbols, state):
        self.seen.append((symbols.tolist(), state))
        self.clock.now += 1 + state
        return torch.tensor([state]), state + 1

    def __call__(self, inputs):
        self.seen.append(tuple(inputs.shape))
        self.clock.now += inputs.size(1) ** 2
        return inputs.unsqueeze(-1).float()

    def sample(self, h):
        return torch.tensor([next(self.drawn)] * len(h))


def test_a_stepwise_way_draws_every_symbol_after_the_one_before():
    clock = Clock()
    network = Watched(clock)
    way = generation.Stepwise(network, symbols=1, batch=1, clock=clock)
    assert [way.seconds(range(3)), way.seconds(range(3, 5))] == [1 + 2 + 3, 4 + 5]
    assert network.seen == [("begin", 1), ([0], 0), ([100], 1), ([101], 2), ([102], 3), ([103], 4)]
    assert way.seconds(range(1)) == 1
    assert network.seen[6:] == [("begin", 1), ([0], 0)]


def test_a_recomputed_way_reads_one_prefix_for_a_span():
    clock = Clock()
    network = Watched(clock)
    way = generation.Recomputed(network, symbols=1, batch=4, clock=clock)
    assert [way.seconds(range(3)), way.seconds(range(3, 10))] == [3 * 2**2, 7 * 7**2]
    assert network.seen == [(4, 2), (4, 7)]


def test_some_pictures_stand_for_a_batch():
    clock = Clock()
    network = Watched(clock)
    way, single = (generation.Recomputed(network, symbols=1, batch=batch, clock=clock, together=2) for batch in (6, 1))
    assert [way.seconds(range(3)), single.seconds(range(3))] == [3 * 3 * 2**2, 3 * 2**2]
    assert network.seen == [(2, 2), (1, 2)]


def test_medians_of_ways_that_take_turns_at_every_span():
    order = []

    class Scripted(generation.Way):
        def __init__(self, name, times):
            self.name, self.times = name, iter(times)

        def seconds(self, span):
            order.append((self.name, span.start))
            return next(self.times)

    ways = {"a": Scripted("a", [99, 1, 5, 2, 6, 9, 9]), "b": Scripted("b", [99, 10, 20, 70, 30, 40, 10])}
    assert generation.seconds_by_span(ways, [range(4), range(4, 8)], 3) == {"a": [2, 6], "b": [40, 20]}
    assert order == [("a", 0), ("b", 0)] + [("a", 0), ("b", 0), ("a", 4), ("b", 4)] * 3


def test_what_times_become():
    seconds = {name: [1.0, 3.0] for name in generation.OTHERS} | {"softmax": [2.0, 10.0], "linear": [0.4, 0.4]}
    spans = [range(4), range(4, 9)]
    alone, together = (generation.timings(seconds, spans, batch) for batch in (1, 2))
    assert alone["softmax.seconds_b1"] == together["softmax.seconds_b2"] == 12
    assert (alone["linear.pictures_per_second_b1"], together["linear.pictures_per_second_b2"]) == (1.25, 2.5)
    assert (alone["softmax.milliseconds_n2"], alone["softmax.milliseconds_n7"]) == (500, 2000)
    assert (together["softmax.milliseconds_in_batch_n2"], together["softmax.milliseconds_in_batch_n7"]) == (250, 1000)
    assert alone["softmax.growth_b1"] == together["softmax.growth_b2"] == 4
    assert alone["speedup_over_softmax@1"] == pytest.approx(15)
    assert together["speedup_over_stateful_softmax@2"] == pytest.approx(5)
    better = generation.throughputs(alone | together | {"lsh_1.pictures_per_second_b1": 5.0}, (1, 2))
    assert better == {f"throughput_over_{name}": pytest.approx(5) for name in generation.OTHERS} | {
        "throughput_over_softmax": pytest.approx(15), "throughput_over_lsh_1": pytest.approx(0.5)
    }  # fmt: skip


def test_times_of_the_study_are_those_of_its_clock():
    clock = count()  # every look at it is a second later
    study = generation.Generation(*NETWORK, clock=lambda: float(next(clock)))
    metrics = measured(study, SMALL_GENERATION)
    assert metrics["linear.seconds_b1"] == 2  # a look before and after each of two spans
    assert metrics["speedup_over_softmax@3"] == 6  # where the one symbol that is timed stands for six
    metrics = measured(study, SMALL_GENERATION | {"recomputed": 1})
    assert metrics["speedup_over_softmax@3"] == 3 * 6
    assert metrics["speedup_over_softmax@1"] == metrics["speedup_over_stateful_softmax@3"] * 6 == 6


@pytest.mark.parametrize(("subject", "stepwise"), [(name, way) for name, (_, way) in SUBJECTS.items()])
@torch.inference_mode()
def test_every_subject_is_the_network_that_it_is_called(subject, stepwise):
    changes, _ = SUBJECTS[subject]
    model = generator(**changes)
    way = (generation.Stepwise if stepwise else generation.Recomputed)(model, symbols=7, batch=3, clock=Clock())
    shapes = []
    for layer in model.layers:
        layer.attention.heads.w_o.register_forward_hook(lambda _, x, out: shapes.append(tuple(out.shape[:-1])))
    assert way.seconds(range(5)) == 0
    assert shapes == [(3, 1)] * 10 if stepwise else [(3, 3)] * 2
    assert getattr(model.layers[0].attention.heads, "rotations", torch.ones(1, 1)).size(1) == changes.get("rounds", 1)


@pytest.mark.parametrize("length", [1, 9, 40])
@torch.inference_mode()
def test_what_is_remembered_is_counted(length):
    layers, heads, width = SECTION["layers"], SECTION["heads"], SECTION["width"]
    head = width // heads
    assert generation.remembered(generator("linear", length), length) == layers * heads * head * (head + 1)
    assert generation.remembered(generator("softmax", length), length) == layers * 2 * length * width


def test_a_picture_of_mnist_is_remembered_in_a_48th_of_the_numbers():
    of_softmax = {196: 802_816, 784: 3_211_264}
    metrics = generation.states({"linear": {196: 67_584, 784: 67_584}, "stateful_softmax": of_softmax})
    assert metrics["state_ratio"] == pytest.approx(47.5, abs=0.05)
    assert (metrics["linear.state_growth"], metrics["stateful_softmax.state_growth"]) == (1, 4)
    assert metrics["stateful_softmax.state_floats_n196"] == 802_816
