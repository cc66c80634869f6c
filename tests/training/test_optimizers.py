import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shared.config import build
from shared.errors import ReplicationError
from shared.training.config import (
    AdadeltaConfig,
    AdagradConfig,
    AdamConfig,
    RmspropConfig,
    ScheduleConfig,
    SgdConfig,
    TrainingConfig,
)
from shared.training.module import TrainingModule
from shared.training.optimizers import build_optimizer, learning_rate_factor
from shared.training.run import train_run


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


@given(st.integers(0, 100), st.integers(1, 30), st.integers(0, 8))
def test_halving_waits_and_then_halves_again_and_again(hold, every, halvings):
    schedule = ScheduleConfig(name="halving", hold=hold, every=every)
    factor = learning_rate_factor(schedule, updates=1)
    assert all(factor(made) == 1 for made in range(hold))
    first = hold + halvings * every
    assert factor(first) == factor(first + every - 1) == 0.5 ** (halvings + 1)
    assert factor(first + every) == 0.5 ** (halvings + 2)


def test_halving_may_follow_a_warm_up():
    factor = learning_rate_factor(ScheduleConfig(name="halving", warmup=4, hold=6, every=2), updates=10)
    assert [factor(made) for made in range(9)] == [0.25, 0.5, 0.75, 1, 1, 1, 0.5, 0.5, 0.25]


@given(st.integers(0, 10), st.integers(0, 60), st.floats(0.01, 0.99))
def test_a_rate_drops_once_and_stays_there(warmup, more, by):
    hold = warmup + more
    factor = learning_rate_factor(ScheduleConfig(name="drop", warmup=warmup, hold=hold, factor=by), updates=1)
    assert all(factor(made) == 1 for made in range(warmup, hold))
    assert {factor(made) for made in range(hold, hold + 50)} == {by}


@pytest.mark.parametrize(
    "settings",
    [
        {"name": "halving"},
        {"name": "halving", "hold": 3},
        {"name": "halving", "every": 3},
        {"name": "halving", "hold": 3, "every": 3, "factor": 0.5},
        {"name": "drop", "hold": 3},
        {"name": "drop", "factor": 0.5},
        {"name": "drop", "hold": 3, "every": 3, "factor": 0.5},
        {"name": "cosine", "hold": 3, "every": 3},
        {"name": "constant", "hold": 3},
        {"every": 3},
        {"factor": 0.5},
    ],
)
def test_a_schedule_has_what_it_needs_and_nothing_else(settings):
    with pytest.raises(ValueError, match="halving needs hold and every, drop hold and factor, and no other"):
        ScheduleConfig(**settings)


class Naive:
    """One update at a time, for a single weight, as the papers have it; the gradient is that of loss and decay."""

    def __init__(self, config):
        self.config, self.made, self.first, self.second = config, 0, 0.0, 0.0

    def sgd(self, gradient):
        return self.config.learning_rate * gradient

    def adagrad(self, gradient):
        """Duchi et al. (2011): divided by the root of the sum of all squares so far."""
        self.second += gradient**2
        return self.config.learning_rate * gradient / (math.sqrt(self.second) + self.config.epsilon)

    def mean(self, gradient):
        """Of the gradients without its bias towards zero; and what their squares are multiplied by against theirs."""
        (beta1, beta2), self.made = (self.config.beta1, self.config.beta2), self.made + 1
        self.first = beta1 * self.first + (1 - beta1) * gradient
        self.second = beta2 * self.second + (1 - beta2) * gradient**2
        return self.first / (1 - beta1**self.made), 1 / (1 - beta2**self.made)

    def adam(self, gradient):
        """Kingma & Ba (2015), algorithm 1."""
        mean, unbiased = self.mean(gradient)
        return self.config.learning_rate * mean / (math.sqrt(self.second * unbiased) + self.config.epsilon)

    def miscorrected(self, gradient):
        """As optimizers.py of arctic-captions: its b1 and b2 are 1 - β₁ and 1 - β₂."""
        self.mean(gradient)
        b1, b2 = 1 - self.config.beta1, 1 - self.config.beta2
        rate = self.config.learning_rate * math.sqrt(1 - b2**self.made) / (1 - b1**self.made)
        return rate * self.first / (math.sqrt(self.second) + self.config.epsilon)

    def radam(self, gradient):
        """Liu et al. (2020), algorithm 2, but for ρ > 5 where it has 4, and ε, which are as in their code."""
        mean, unbiased = self.mean(gradient)
        most = 2 / (1 - self.config.beta2) - 1
        rho = most - 2 * self.made * (unbiased - 1)
        if rho <= 5:
            return self.config.learning_rate * mean
        r = math.sqrt((rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho) / unbiased)
        return self.config.learning_rate * r * mean / (math.sqrt(self.second) + self.config.epsilon)


@given(
    st.sampled_from([(SgdConfig, "sgd"), (AdagradConfig, "adagrad"), (AdamConfig, "adam"), (AdamConfig, "radam")]),
    st.floats(1e-3, 1), st.sampled_from([0.0, 1e-4, 0.3]), st.lists(st.floats(-3, 3), min_size=1, max_size=12),
)  # fmt: skip
def test_optimisers_are_their_equations_with_decay_in_the_gradient(kind, rate, decay, gradients):
    config = kind[0](name=kind[1], learning_rate=rate, weight_decay=decay)
    weight, twin, value = torch.nn.Parameter(torch.tensor([0.7], dtype=torch.float64)), Naive(config), 0.7
    optimizer = build_optimizer([weight], config)
    for gradient in gradients:
        weight.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.step()
        value -= getattr(twin, config.name)(gradient + decay * value)
        assert weight.item() == pytest.approx(value, rel=1e-9, abs=1e-12)


@given(st.floats(1e-3, 1), st.floats(1e-8, 1), st.lists(st.floats(-3, 3), min_size=1, max_size=12))
def test_adam_may_correct_its_biases_as_xu_et_al_do(rate, epsilon, gradients):
    config = AdamConfig(name="adam", learning_rate=rate, epsilon=epsilon, correction="rate")
    weight, twin, value = torch.nn.Parameter(torch.tensor([0.7], dtype=torch.float64)), Naive(config), 0.7
    optimizer = build_optimizer([weight, torch.nn.Parameter(torch.ones(2))], config)
    for gradient in gradients:
        weight.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.step()
        value -= twin.miscorrected(gradient)
        assert weight.item() == pytest.approx(value, rel=1e-9, abs=1e-12)
    assert optimizer.param_groups[0]["lr"] == rate


def test_adam_of_the_usual_corrections_is_recorded_as_before_there_were_others():
    assert "correction" not in AdamConfig(name="adam", learning_rate=1.0).model_dump()
    assert AdamConfig(name="adam", learning_rate=1.0, correction="rate").model_dump()["correction"] == "rate"


def test_its_first_steps_are_longer_by_as_much_as_in_the_program():
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = build_optimizer([weight], AdamConfig(name="adam", learning_rate=1.0, correction="rate"))
    weight.grad, steps = torch.ones(1), []
    for _ in range(10):  # of 1 each with the usual corrections
        before = weight.item()
        optimizer.step()
        steps.append(before - weight.item())
    assert (steps[0], steps[9]) == (pytest.approx(3.51, abs=0.01), pytest.approx(6.53, abs=0.01))


@pytest.mark.parametrize("name", ["adam", "radam"])
@given(st.floats(1e-3, 1), st.floats(0, 0.5), st.lists(st.floats(-3, 3), min_size=1, max_size=12))
def test_a_decay_that_is_decoupled_takes_its_share_of_the_weight(name, rate, decay, gradients):
    config = AdamConfig(name=name, learning_rate=rate, weight_decay=decay, decoupled=True)
    weight, twin, value = torch.nn.Parameter(torch.tensor([0.7], dtype=torch.float64)), Naive(config), 0.7
    optimizer = build_optimizer([weight], config)
    for gradient in gradients:
        weight.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.step()
        value = value * (1 - rate * decay) - getattr(twin, name)(gradient)
        assert weight.item() == pytest.approx(value, rel=1e-9, abs=1e-12)


@given(
    st.floats(1e-5, 1), st.floats(0, 0.99), st.floats(0, 0.99), st.floats(1e-4, 1),
    st.lists(st.floats(-3, 3), min_size=1, max_size=8),
)  # fmt: skip
def test_rmsprop_is_what_the_code_of_the_paper_computes(rate, decay, momentum, epsilon, gradients):
    config = RmspropConfig(name="rmsprop", learning_rate=rate, decay=decay, momentum=momentum, epsilon=epsilon)
    weight = torch.nn.Parameter(torch.tensor([0.7], dtype=torch.float64))
    unused = torch.nn.Parameter(torch.ones(2))
    optimizer = build_optimizer([weight, unused], config)
    value, square, mean, change = 0.7, 0.0, 0.0, 0.0
    for gradient in gradients:
        weight.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.step()
        mean = decay * mean + (1 - decay) * gradient
        square = decay * square + (1 - decay) * gradient**2
        change = momentum * change - rate * gradient / math.sqrt(square - mean**2 + epsilon)
        value += change
        # Of gradients alike the variance is what rounding leaves of it, beside epsilon.
        assert weight.item() == pytest.approx(value, rel=1e-7, abs=1e-7)
    assert unused.tolist() == [1.0, 1.0]


def test_rmsprop_survives_a_variance_that_rounding_makes_negative():
    weight = torch.nn.Parameter(torch.zeros(200))
    optimizer = build_optimizer([weight], RmspropConfig(name="rmsprop", epsilon=1e-12, momentum=0.0))
    for _ in range(500):
        weight.grad = torch.linspace(100, 300, 200)
        optimizer.step()
    state = optimizer.state[weight]
    assert (state["square"] < state["mean"] ** 2).any()
    assert torch.isfinite(weight).all()


@pytest.mark.parametrize(
    ("more", "message"), [({"decoupled": True, "correction": "rate"}, "leave out one"), ({"rho": 0.9}, "unknown key")]
)
def test_an_optimiser_that_cannot_be_is_refused(more, message):
    settings = {"updates": 1, "validate_every": 1, "optimizer": {"name": "adam", "learning_rate": 0.1} | more}
    with pytest.raises(ReplicationError, match=message):
        build(TrainingConfig, settings, where="training")


def test_optimisers_get_the_settings_they_were_given():
    weights = [torch.nn.Parameter(torch.ones(3))]
    adadelta = build_optimizer(weights, AdadeltaConfig(name="adadelta")).defaults
    assert (adadelta["lr"], adadelta["rho"], adadelta["eps"]) == (1.0, 0.95, 1e-6)  # appendix B.2 of Bahdanau et al.
    rmsprop = build_optimizer(weights, RmspropConfig(name="rmsprop")).defaults  # of the code of Xu et al.
    assert rmsprop == {"lr": 1e-4, "decay": 0.95, "momentum": 0.9, "epsilon": 1e-4}
    adam = build_optimizer(weights, AdamConfig(name="adam", learning_rate=0.1, beta2=0.98)).defaults
    assert (adam["lr"], adam["betas"], adam["eps"]) == (0.1, (0.9, 0.98), 1e-8)
    radam = build_optimizer(weights, AdamConfig(name="radam", learning_rate=0.1, epsilon=1e-6)).defaults
    assert (radam["lr"], radam["betas"], radam["eps"]) == (0.1, (0.9, 0.999), 1e-6)


class Falling(TrainingModule):
    """One weight whose gradient is 1."""

    def training_step(self, batch, batch_idx):
        loss = self.model.weight.sum()
        self.log("train_loss", loss.detach())
        return loss

    def validation_step(self, batch, batch_idx):
        self.collect({"loss": torch.zeros(())}, 1)


class Nothing:
    """A batch."""

    tokens = 1

    def to(self, device):
        return self


def test_the_schedule_drives_the_optimiser(tmp_path):
    config = TrainingConfig(
        updates=7, validate_every=7, optimizer=SgdConfig(name="sgd", learning_rate=0.5), clip=None,
        schedule=ScheduleConfig(name="halving", warmup=4, hold=5, every=1),
    )  # fmt: skip
    module = Falling(torch.nn.Linear(1, 1, bias=False), config)
    before = module.model.weight.item()
    train_run(
        module, config, batches=lambda start: itertools.repeat(Nothing()), valid=[Nothing()], folder=tmp_path / "run",
        seed=1, fingerprint="", label="falls",
    )  # fmt: skip
    assert before - module.model.weight.item() == pytest.approx(0.5 * (0.25 + 0.5 + 0.75 + 1 + 1 + 0.5 + 0.25))
