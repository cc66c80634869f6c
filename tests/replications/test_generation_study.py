"""The study of generation: what is timed, how times become numbers, and how much a network remembers; no real time."""

from itertools import chain, count

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from replications.linear_transformer import generation
from replications.linear_transformer.settings import SUBJECTS, GenerationConfig
from tests.replications.studied import NETWORK, SECTION, build_studied, measured

SMALL = SECTION | {"study": "generation", "length": 12, "symbols": 7, "batch": 3, "places": 2, "repeats": 1}


def settings(**changes):
    return GenerationConfig(study="generation", batch=2, **changes)


def network(attention, length=12, **changes):
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
    metrics = measured(study, SMALL)
    assert metrics["linear.seconds_b1"] == 2  # a look before and after each of two spans
    assert metrics["speedup_over_softmax@3"] == 6  # where the one symbol that is timed stands for six
    metrics = measured(study, SMALL | {"recomputed": 1})
    assert metrics["speedup_over_softmax@3"] == 3 * 6
    assert metrics["speedup_over_softmax@1"] == metrics["speedup_over_stateful_softmax@3"] * 6 == 6


@pytest.mark.parametrize(("subject", "stepwise"), [(name, way) for name, (_, way) in SUBJECTS.items()])
@torch.inference_mode()
def test_every_subject_is_the_network_that_it_is_called(subject, stepwise):
    changes, _ = SUBJECTS[subject]
    model = network(**changes)
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
    assert generation.remembered(network("linear", length), length) == layers * heads * head * (head + 1)
    assert generation.remembered(network("softmax", length), length) == layers * 2 * length * width


def test_a_picture_of_mnist_is_remembered_in_a_48th_of_the_numbers():
    of_softmax = {196: 802_816, 784: 3_211_264}
    metrics = generation.states({"linear": {196: 67_584, 784: 67_584}, "stateful_softmax": of_softmax})
    assert metrics["state_ratio"] == pytest.approx(47.5, abs=0.05)
    assert (metrics["linear.state_growth"], metrics["stateful_softmax.state_growth"]) == (1, 4)
    assert metrics["stateful_softmax.state_floats_n196"] == 802_816
