"""Smoothed losses by hand, and optimisers and their schedules."""

import contextlib
import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shared.data.tokenizers import PAD
from shared.training import config as configs
from shared.training.loss import smoothed_loss, token_nll
from shared.training.module import TrainingModule
from shared.training.optimizers import build_optimizer, learning_rate_factor
from tests.tasks.modules import train


@given(st.sampled_from(["constant", "cosine", "noam"]), st.integers(0, 50), st.integers(1, 400))
def test_a_schedule_rises_to_one_and_never_exceeds_it(name, warmup, updates):
    factor = learning_rate_factor(configs.ScheduleConfig(name=name, warmup=warmup), updates=updates)
    values = [factor(made) for made in range(max(updates, warmup + 1))]
    assert max(values) == pytest.approx(1.0)
    assert values[max(0, warmup - 1)] == pytest.approx(1.0)
    assert all(0 <= value <= 1 for value in values)
    assert values[: max(0, warmup - 1)] == [pytest.approx((u + 1) / warmup) for u in range(max(0, warmup - 1))]


def test_after_the_warm_up_each_falls_in_its_own_way():
    def at(name, made):
        return learning_rate_factor(configs.ScheduleConfig(name=name, warmup=10), updates=110)(made)

    assert at("constant", 109) == 1
    assert at("noam", 39) == pytest.approx(math.sqrt(10 / 40))
    assert at("cosine", 59) == pytest.approx(0.5)
    assert at("cosine", 109) == pytest.approx(0, abs=1e-9)


@given(st.integers(0, 100), st.integers(1, 30), st.integers(0, 8))
def test_halving_waits_and_then_halves_again_and_again(hold, every, halvings):
    schedule = configs.ScheduleConfig(name="halving", hold=hold, every=every)
    factor = learning_rate_factor(schedule, updates=1)
    assert all(factor(made) == 1 for made in range(hold))
    first = hold + halvings * every
    assert factor(first) == factor(first + every - 1) == 0.5 ** (halvings + 1)
    assert factor(first + every) == 0.5 ** (halvings + 2)


@given(st.integers(0, 10), st.integers(0, 60), st.floats(0.01, 0.99))
def test_a_rate_drops_once_and_stays_there(warmup, more, by):
    hold = warmup + more
    factor = learning_rate_factor(configs.ScheduleConfig(name="drop", warmup=warmup, hold=hold, factor=by), updates=1)
    assert all(factor(made) == 1 for made in range(warmup, hold))
    assert {factor(made) for made in range(hold, hold + 50)} == {by}


GIVEN = {"hold": 3, "every": 3, "factor": 0.5}


@pytest.mark.parametrize("name", ["constant", "cosine", "noam", "halving", "drop"])
@pytest.mark.parametrize("keys", [keys for count in range(4) for keys in itertools.combinations(GIVEN, count)])
def test_a_schedule_has_what_it_needs_and_nothing_else(name, keys):
    right = keys == {"halving": ("hold", "every"), "drop": ("hold", "factor")}.get(name, ())
    said = "halving needs hold and every, drop hold and factor, and no other"
    with contextlib.nullcontext() if right else pytest.raises(ValueError, match=said):
        configs.ScheduleConfig(name=name, **{key: GIVEN[key] for key in keys})


class Rmsprop:
    """One update at a time, for a single weight, as optimizers.py of arctic-captions."""

    def __init__(self, config):
        self.config, self.first, self.second, self.change = config, 0.0, 0.0, 0.0

    def __call__(self, weight, gradient):
        """The weight after an update."""
        self.first = self.config.decay * self.first + (1 - self.config.decay) * gradient
        self.second = self.config.decay * self.second + (1 - self.config.decay) * gradient**2
        deviation = math.sqrt(self.second - self.first**2 + self.config.epsilon)
        self.change = self.config.momentum * self.change + self.config.learning_rate * gradient / deviation
        return weight - self.change


class Plain:
    """PyTorch's own, not fused, with every setting: for optimisers that are its."""

    def __init__(self, config):
        settings = {"lr": config.learning_rate, "weight_decay": config.weight_decay}
        if isinstance(config, configs.AdamConfig):
            settings |= {"betas": (config.beta1, config.beta2), "decoupled_weight_decay": config.decoupled}
        settings |= {} if config.name == "sgd" else {"eps": config.epsilon}
        kind = {"sgd": "SGD", "adagrad": "Adagrad", "adam": "Adam", "radam": "RAdam"}[config.name]
        self.weight = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
        self.optimizer = getattr(torch.optim, kind)([self.weight], foreach=False, **settings)

    def __call__(self, weight, gradient):
        """The weight after an update."""
        self.weight.data.fill_(weight)
        self.weight.grad = torch.full((1,), gradient, dtype=torch.float64)
        self.optimizer.step()
        return self.weight.item()


RATES, SHARES = st.floats(1e-3, 1), st.floats(0, 0.99)
DECAYING = {"learning_rate": RATES, "weight_decay": st.sampled_from([0.0, 1e-4, 0.3])}
ADAM = {"learning_rate": RATES, "epsilon": st.floats(1e-8, 1), "beta2": st.sampled_from([0.98, 0.999])}
OPTIMIZERS = {
    "sgd": st.builds(configs.SgdConfig, name=st.just("sgd"), **DECAYING),
    "adagrad": st.builds(configs.AdagradConfig, name=st.just("adagrad"), **DECAYING),
    "adam": st.builds(configs.AdamConfig, name=st.just("adam"), decoupled=st.booleans(), **ADAM | DECAYING),
    "radam": st.builds(configs.AdamConfig, name=st.just("radam"), decoupled=st.booleans(), **ADAM | DECAYING),
    "rmsprop": st.builds(
        configs.RmspropConfig, name=st.just("rmsprop"), learning_rate=st.floats(1e-5, 1), decay=SHARES, momentum=SHARES,
        epsilon=st.floats(1e-4, 1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", OPTIMIZERS)
@given(st.data(), st.lists(st.floats(-3, 3), min_size=1, max_size=12))
def test_optimisers_are_pytorchs_or_their_equations_and_leave_what_has_no_gradient(kind, data, gradients):
    config = data.draw(OPTIMIZERS[kind])
    weight, unused = torch.nn.Parameter(torch.tensor([0.7], dtype=torch.float64)), torch.nn.Parameter(torch.ones(2))
    optimizer, update, value = (
        build_optimizer([weight, unused], config),
        Rmsprop(config) if kind == "rmsprop" else Plain(config),
        0.7,
    )
    # Of gradients alike the variance that rmsprop divides by is what rounding leaves of it, beside epsilon.
    tolerance = {"rel": 1e-7, "abs": 1e-7} if kind == "rmsprop" else {"rel": 1e-9, "abs": 1e-12}
    for gradient in gradients:
        weight.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.step()
        value = update(value, gradient)
        assert weight.item() == pytest.approx(value, **tolerance)
    assert unused.tolist() == [1.0, 1.0]
    assert optimizer.param_groups[0]["lr"] == config.learning_rate


def test_rmsprop_survives_a_variance_that_rounding_makes_negative():
    weight = torch.nn.Parameter(torch.zeros(200))
    optimizer = build_optimizer([weight], configs.RmspropConfig(name="rmsprop", epsilon=1e-12, momentum=0.0))
    for _ in range(500):
        weight.grad = torch.linspace(100, 300, 200)
        optimizer.step()
    state = optimizer.state[weight]
    assert (state["square"] < state["mean"] ** 2).any()
    assert torch.isfinite(weight).all()


def test_what_is_not_set_is_as_in_the_papers():
    weights = [torch.nn.Parameter(torch.ones(3))]
    adadelta = build_optimizer(weights, configs.AdadeltaConfig(name="adadelta")).defaults
    assert (adadelta["lr"], adadelta["rho"], adadelta["eps"]) == (1.0, 0.95, 1e-6)  # appendix B.2 of Bahdanau et al.
    rmsprop = build_optimizer(weights, configs.RmspropConfig(name="rmsprop")).defaults  # of the code of Xu et al.
    assert rmsprop == {"lr": 1e-4, "decay": 0.95, "momentum": 0.9, "epsilon": 1e-4}


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
    config = configs.TrainingConfig(
        updates=7, validate_every=7, optimizer=configs.SgdConfig(name="sgd", learning_rate=0.5), clip=None,
        schedule=configs.ScheduleConfig(name="halving", warmup=4, hold=5, every=1),
    )  # fmt: skip
    module = Falling(torch.nn.Linear(1, 1, bias=False), config)
    before = module.model.weight.item()
    train(module, tmp_path / "run", lambda start: itertools.repeat(Nothing()), [Nothing()])
    assert before - module.model.weight.item() == pytest.approx(0.5 * (0.25 + 0.5 + 0.75 + 1 + 1 + 0.5 + 0.25))


def case():
    logits = torch.randn(3, 5, 7, dtype=torch.float64)
    labels = torch.randint(1, 7, (3, 5))
    labels[1, 3:] = PAD
    return logits, labels


def test_each_label_costs_its_negative_log_probability_and_padding_nothing():
    logits, labels = case()
    expected = -logits.float().log_softmax(-1).gather(2, labels.unsqueeze(2)).squeeze(2)
    torch.testing.assert_close(token_nll(logits, labels), expected * (labels != PAD))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("over", ["all", "others"])
def test_smoothing_gives_each_symbol_its_share_or_each_but_the_label(over, smoothing):
    logits, labels = case()
    share, kept = (smoothing / 7, smoothing / 7) if over == "all" else (smoothing / 6, 0.0)  # PAD has its own, too
    log_p, real = logits.float().log_softmax(-1), labels != PAD
    target = torch.full_like(log_p, share).scatter(2, labels.unsqueeze(2), 1 - smoothing + kept)
    by_hand = -(target * log_p).sum(-1)
    torch.testing.assert_close(smoothed_loss(logits, labels, smoothing, over), by_hand[real].mean())
