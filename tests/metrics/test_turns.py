"""Contenders that take turns: how often and in which order each is called, and what is made of what they return."""

from functools import partial
from itertools import count

import pytest
import torch

from shared.metrics import turns
from shared.metrics.turns import medians_of_turns, now, timed

"""Of each contender, what it returns at each turn."""


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
