"""What is measured while something runs: peaks of memory, to the byte, and times of contenders that take turns."""

from functools import partial
from itertools import count

import pytest
import torch
from torch import nn
from torch.nn import functional

from shared.metrics import turns
from shared.metrics.peak_memory import peak_memory
from shared.metrics.turns import medians_of_turns, now, timed

SIZE = 5_000  # few enough for one thread to add up: more threads would need numbers of their own
BYTES = 4 * SIZE


def made(count=1):
    return torch.empty(count * SIZE)


def test_what_is_held_at_once_counts():
    def run():
        first, second = made(2), made(3)
        del first
        third = made(1)
        del second, third
        return made(4)

    assert peak_memory(run) == 5 * BYTES


def test_what_is_returned_is_held_to_the_end():
    assert peak_memory(lambda: [made(), made(), made()]) == 3 * BYTES


def test_what_was_there_before_counts_nothing():
    kept = made(5)
    assert peak_memory(lambda: kept[:10]) == 0
    assert peak_memory(kept.neg_) == 0
    assert peak_memory(kept.sum) == 4


def test_what_only_lives_within_an_operator_counts():
    x, y = made(), made()
    assert functional.mse_loss(x, y).numel() == 1
    assert peak_memory(lambda: functional.mse_loss(x, y)) > BYTES


@pytest.mark.parametrize("keeps", [True, False])
def test_what_autograd_keeps_counts(keeps):
    x = torch.ones(SIZE, requires_grad=True)

    def run():
        with torch.set_grad_enabled(keeps):
            y = x.exp()  # which its gradient is made from
            y = y.sin()
            return y.sum()

    assert peak_memory(run) == 2 * BYTES + 4 * keeps


def test_a_backward_pass_counts():
    layer, x = nn.Linear(300, 200, bias=False), torch.ones(50, 300)

    def run():
        torch.autograd.grad(layer(x), layer.weight, torch.ones(50, 200))

    assert peak_memory(run) == 4 * (2 * 50 * 200 + 300 * 200)
    assert peak_memory(run) == peak_memory(run)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu():
    device = torch.device("cuda")
    kept = torch.empty(2**20, device=device)
    peak = peak_memory(lambda: [torch.empty(2**20, device=device) for _ in range(3)], device)
    assert peak == 3 * 4 * kept.numel()


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
