import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shared.training.schedules import (
    AdadeltaConfig,
    AdamConfig,
    ScheduleConfig,
    build_optimizer,
    build_schedule,
    learning_rate_factor,
)  # fmt: skip


@given(st.sampled_from(["constant", "cosine", "noam"]), st.integers(0, 50), st.integers(1, 400))
def test_a_schedule_rises_to_one_and_never_exceeds_it(name, warmup, updates):
    factor = learning_rate_factor(ScheduleConfig(name=name, warmup=warmup), updates=updates)
    values = [factor(made) for made in range(max(updates, warmup + 1))]
    assert max(values) == pytest.approx(1.0)
    assert values[max(0, warmup - 1)] == pytest.approx(1.0)
    assert all(0 <= value <= 1 for value in values)
    assert values[: max(0, warmup - 1)] == [pytest.approx((u + 1) / warmup) for u in range(max(0, warmup - 1))]


def test_after_the_warm_up_each_falls_in_its_own_way():
    def at(name, made):
        return learning_rate_factor(ScheduleConfig(name=name, warmup=10), updates=110)(made)

    assert at("constant", 109) == 1
    assert at("noam", 39) == pytest.approx(math.sqrt(10 / 40))
    assert at("cosine", 59) == pytest.approx(0.5)
    assert at("cosine", 109) == pytest.approx(0, abs=1e-9)


def test_optimisers_get_the_settings_they_were_given():
    weights = [torch.nn.Parameter(torch.ones(3))]
    adadelta = build_optimizer(weights, AdadeltaConfig(name="adadelta")).defaults
    assert (adadelta["lr"], adadelta["rho"], adadelta["eps"]) == (1.0, 0.95, 1e-6)  # appendix B.2 of Bahdanau et al.
    adam = build_optimizer(weights, AdamConfig(name="adam", learning_rate=0.1, beta2=0.98)).defaults
    assert (adam["lr"], adam["betas"], adam["eps"]) == (0.1, (0.9, 0.98), 1e-8)


def test_the_schedule_drives_the_optimiser():
    weights = [torch.nn.Parameter(torch.ones(3))]
    optimizer = build_optimizer(weights, AdamConfig(name="adam", learning_rate=0.5))
    schedule = build_schedule(optimizer, ScheduleConfig(name="constant", warmup=4), updates=9)
    rates = []
    for _ in range(5):
        rates.append(optimizer.param_groups[0]["lr"])
        weights[0].grad = torch.ones(3)
        optimizer.step()
        schedule.step()
    assert rates == pytest.approx([0.125, 0.25, 0.375, 0.5, 0.5])
