"""What the caption generator and its baselines must do whatever their sizes are, and how places are learned."""

import itertools
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from replications.show_attend_tell.learning import Reinforce, doubly_stochastic_penalty
from replications.show_attend_tell.replication import build_model
from replications.show_attend_tell.settings import ModelConfig
from shared.data.tokenizers import BOS, EOS, PAD
from shared.vision.features import Grid
from tests.checklist import F64, spread

VOCABULARY, GRID = 11, Grid(rows=2, columns=3, size=5)
SIZES = {
    "attention": "soft", "m": 4, "n": 3, "a": 6, "attention_layers": 2, "initial_layers": 2, "penalty": 0.5,
    "hard": {"reinforce": 0.7, "entropy": 0.3},
}  # fmt: skip
HARD = {"attention": "hard", "penalty": 0.0}
VARIANTS = {
    "soft": {}, "no gate": {"gate": False}, "no penalty": {"penalty": 0.0},
    "one layer": {"attention_layers": 1, "initial_layers": 1, "tanh_output": False},
    "supervised": {"penalty": 0.0, "supervision": 0.8},
    "hard": HARD, "hard, no gate": HARD | {"gate": False},
    "hard, sampled": HARD | {"hard": {"reinforce": 0.7, "entropy": 0.3, "sampling": 1.0}},
    "hard, score function": HARD | {"hard": {"reinforce": 0.7, "entropy": 0.3, "pathwise": False, "coin": "batch"}},
    "mean": {"attention": "mean", "penalty": 0.0},
}  # fmt: skip


class Input(NamedTuple):
    """What a model is called with."""

    features: Tensor
    captions: Tensor
    regions: Tensor


def small(variant="soft", **changes):
    """With weights large enough to matter, biases too."""
    config = ModelConfig.model_validate(SIZES | VARIANTS[variant] | changes)
    model = spread(build_model(config, VOCABULARY, GRID), 0.5)
    with torch.no_grad():
        model.embedding.weight[BOS] = 0
    return model


def given(lengths=(5, 3, 1)):
    """Pictures, captions of so many symbols with the end, and where attention should be at every other word."""
    places = GRID.rows * GRID.columns
    words = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    captions = torch.randint(EOS + 1, VOCABULARY, words.shape).masked_fill(~words, 0)
    captions[range(len(lengths)), torch.tensor(lengths) - 1] = EOS
    named = (captions > EOS) & (torch.arange(max(lengths)) % 2 == 0)
    regions = torch.rand(*words.shape, places, dtype=F64).softmax(-1) * named.unsqueeze(2)
    return Input(torch.randn(len(lengths), places, GRID.size, dtype=F64), captions, regions)


EXACT = {"atol": 1e-11, "rtol": 0}
variants = pytest.mark.parametrize("variant", VARIANTS)


def in_training(model, batch, seed=3):
    """Everything in training, from the same random numbers and the same moving average."""
    torch.manual_seed(seed)
    model.train()
    if model.reinforce is not None:
        model.reinforce.b.fill_(-2.0)
    return model(*batch)


@variants
def test_what_training_adds_is_not_in_evaluation_and_evaluation_draws_nothing(variant):
    model, batch = small(variant), given()
    before = torch.get_rng_state()
    assert model(*batch).auxiliary is None
    assert torch.equal(torch.get_rng_state(), before)
    assert (in_training(model, batch).auxiliary is None) == (variant == "mean")


@variants
def test_the_first_word_is_preceded_by_zeros_however_long_the_training(variant):
    model, batch = small(variant), given()
    read = batch.captions[:, :-1].unique().tolist()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    before = model.embedding.weight.detach().clone()
    for _ in range(3):
        out = in_training(model, batch)
        (out.nats.sum() + (0 if out.auxiliary is None else out.auxiliary.sum())).backward()
        optimizer.step()
        optimizer.zero_grad()
    moved = (model.embedding.weight != before).any(1).nonzero().flatten().tolist()
    assert moved == [word for word in read if word not in (PAD, EOS)]
    assert not model.embedding.weight[BOS].any()


@pytest.mark.parametrize(("init_std", "variant"), [(0.01, "soft"), (None, "soft"), (0.01, "hard")])
def test_initial_weights_are_those_of_the_authors_code(init_std, variant):
    sizes = {"m": 50, "n": 60, "a": 70, "init_std": init_std, "word_std": 0.3}
    model = build_model(ModelConfig.model_validate(SIZES | VARIANTS[variant] | sizes), 400, GRID)
    for name, weight in model.named_parameters():
        if weight.dim() == 1:
            assert not weight.any(), name
        elif name == "decoder.from_h":
            for gate in weight.chunk(4):
                torch.testing.assert_close(gate @ gate.t(), torch.eye(60), atol=1e-5, rtol=0)
        elif weight.size(0) == weight.size(1):
            torch.testing.assert_close(weight @ weight.t(), torch.eye(len(weight)), atol=1e-5, rtol=0)
        elif weight.numel() > 300:
            std = {"embedding.weight": 0.3}.get(name, weight.size(1) ** -0.5 if init_std is None else init_std)
            assert weight.std().item() == pytest.approx(std, rel=0.15), name
    assert not model.embedding.weight[BOS].any()


@pytest.mark.parametrize("variant", VARIANTS)
def test_dropout_is_on_the_initial_perceptrons_on_h_and_before_the_last_layer(variant):
    model, batch = small(variant), given()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 1.0
    torch.manual_seed(1)
    out = model.train()(*batch)
    logits = model.output.l_o.bias.log_softmax(0)
    words = batch.captions > 0
    torch.testing.assert_close(out.nats[words], -logits[batch.captions[words]], **EXACT)


def test_a_penalty_may_be_a_mean_over_places():
    """As in capgen.py."""
    alpha, mask = torch.randn(3, 4, 6, dtype=F64).softmax(-1), torch.arange(4) < torch.tensor([[4], [2], [1]])
    over_places = (1 - (alpha * mask.unsqueeze(2)).sum(1)).square().sum(0).mean()
    torch.testing.assert_close(doubly_stochastic_penalty(alpha, mask, "places").mean(), over_places, **EXACT)


@pytest.mark.parametrize("variant", ["hard", "hard, no gate"])
@pytest.mark.parametrize("words", [1, 2])
def test_the_whole_models_estimate_is_on_average_the_exact_gradient_of_all_its_weights(variant, words, monkeypatch):
    """Every sequence of places is drawn once, and counts as much as it is likely to be drawn."""
    model = small(variant, hard={"reinforce": 1.0, "entropy": 0.0, "sampling": 1.0}).train()
    weights = [p for name, p in model.named_parameters() if name != "decoder.glimpse.u.bias"]
    sequences = torch.tensor([*itertools.product(range(3), repeat=words)])
    features = given([1]).features[:, :3].expand(len(sequences), -1, -1)  # of three places
    captions = torch.tensor([[VOCABULARY - 1] * (words - 1) + [EOS]]).expand(len(sequences), -1)

    def drawn_in_turn():
        steps = iter(sequences.unsqueeze(2).unbind(1))
        monkeypatch.setattr(torch, "multinomial", lambda alpha, count: next(steps))
        model.reinforce.b.fill_(-3.0)
        out = model(features, captions)
        return out, out.attention.gather(2, sequences.unsqueeze(2)).squeeze(2).prod(1)  # p(s|a)

    out, likely = drawn_in_turn()
    torch.testing.assert_close(likely.sum(), torch.ones_like(likely.sum()), **EXACT)
    exact = torch.autograd.grad((likely * out.nats.sum(1)).sum(), weights)
    out, likely = drawn_in_turn()  # anew, for a graph can be gone through only once
    estimate = torch.autograd.grad((likely.detach() * (out.nats.sum(1) + out.auxiliary)).sum(), weights)
    torch.testing.assert_close(estimate, exact, atol=1e-9, rtol=1e-9)


def test_the_moving_average_is_of_the_captions_with_drawn_places():
    reinforce = Reinforce(reward=1.0, entropy=0.0, sampling=1.0, coin="image").to(F64)
    log_alpha, mask = torch.randn(3, 2, 3, dtype=F64).log_softmax(-1), torch.ones(3, 2, dtype=torch.bool)
    s, values = torch.zeros(3, 2, dtype=torch.long), [0.0]
    for log_likelihood, drawn in (([-10, -20, -60], [1, 1, 0]), ([-8, -4, -2], [1, 1, 1]), ([-9, -9, -9], [0, 0, 0])):
        given_values = torch.tensor(log_likelihood, dtype=F64)
        reinforce(given_values, log_alpha, s, torch.tensor(drawn).bool().unsqueeze(1), mask)
        values.append(reinforce.b.item())
    first = 0.1 * -15
    assert values == pytest.approx([0.0, first, 0.9 * first + 0.1 * -14 / 3, 0.9 * first + 0.1 * -14 / 3])
    assert [*reinforce.parameters()] == []
    assert "b" in reinforce.state_dict()  # a resumed training goes on with it
