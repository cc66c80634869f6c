"""Contenders that take turns: how often and in which order each is called, and what is made of what they return."""

from functools import partial
from itertools import count

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shared.metrics import turns
from shared.metrics.turns import medians_of_turns, now, timed

ROUNDS = st.integers(1, 7).flatmap(
    lambda rounds: st.lists(st.lists(st.floats(0, 100), min_size=rounds, max_size=rounds), min_size=1, max_size=4)
)
"""Of each contender, what it returns at each turn."""


@given(ROUNDS)
def test_of_each_there_is_the_median_of_its_own(times):
    medians = medians_of_turns({n: iter(seconds).__next__ for n, seconds in enumerate(times)}, times[0])
    assert [*medians] == [*range(len(times))]
    for number, seconds in enumerate(times):
        ordered, half = sorted(seconds), len(seconds) // 2
        middle = ordered[half] if len(seconds) % 2 else (ordered[half - 1] + ordered[half]) / 2
        assert medians[number] == pytest.approx(middle)


def test_the_next_turn_is_asked_for_when_the_one_before_is_over():
    order = []

    def measure(name):
        order.append(name)
        return float(len(order))

    def two():
        for turn in (1, 2):
            order.append(turn)
            yield

    medians = medians_of_turns({name: partial(measure, name) for name in "ab"}, two())
    assert order == [1, "a", "b", 2, "a", "b"]
    assert medians == {"a": 3.5, "b": 4.5}


def test_the_clock_is_asked_right_before_and_right_after_each_call():
    order, ticks = [], count(10, 3)

    def clock():
        order.append("clock")
        return float(next(ticks))

    measure = timed(lambda: order.append("call"), clock)
    assert order == []
    assert [measure(), measure()] == [3, 3]
    assert order == ["clock", "call", "clock"] * 2


@pytest.mark.parametrize(("gpu", "waits"), [(True, ["waits"]), (False, [])])
def test_the_time_is_told_after_a_gpu_is_waited_for(monkeypatch, gpu, waits):
    order = []

    def told():
        order.append("told")
        return 7.0

    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: order.append("waits"))
    monkeypatch.setattr(turns.time, "perf_counter", told)
    assert now() == 7
    assert order == [*waits, "told"]
