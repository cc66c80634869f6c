"""What the caption generator and its baselines must do whatever their sizes are."""

import pytest
import torch
from torch import nn

from replications.show_attend_tell.replication import build_model
from replications.show_attend_tell.settings import ModelConfig
from shared.data.tokenizers import BOS, EOS, PAD
from tests.replications.small_show_attend_tell import GRID, SIZES, VARIANTS, given, small

EXACT = {"atol": 1e-11, "rtol": 0}
variants = pytest.mark.parametrize("variant", VARIANTS)


def in_training(model, batch, seed=3):
    """Everything in training, from the same random numbers and the same moving average."""
    torch.manual_seed(seed)
    model.train()
    if model.reinforce is not None:
        model.reinforce.b.fill_(-2.0)
    return model(*batch)


def total(out):
    """What training minimises."""
    return out.nats.sum() + (0 if out.auxiliary is None else out.auxiliary.sum())


@variants
def test_what_training_adds_is_not_in_evaluation_and_evaluation_draws_nothing(variant):
    model, batch = small(variant), given()
    before = torch.get_rng_state()
    assert model(*batch).auxiliary is None
    assert torch.equal(torch.get_rng_state(), before)
    assert (in_training(model, batch).auxiliary is None) == (variant in ("mean", "initial"))


@variants
def test_the_first_word_is_preceded_by_zeros_however_long_the_training(variant):
    model, batch = small(variant), given()
    read = batch.captions[:, :-1].unique().tolist()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    before = model.embedding.weight.detach().clone()
    for _ in range(3):
        out = in_training(model, batch)
        total(out).backward()
        optimizer.step()
        optimizer.zero_grad()
    moved = (model.embedding.weight != before).any(1).nonzero().flatten().tolist()
    assert moved == [word for word in read if word not in (PAD, EOS)]
    assert not model.embedding.weight[BOS].any()


@variants
def test_mixed_precision_changes_little_and_stays_finite(variant):
    model, batch = small(variant).float(), given()
    features, captions, regions = batch.features.float(), batch.captions, batch.regions.float()
    plain = model(features, captions)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = model(features, captions)
        trained = in_training(model, (features, captions, regions))
    assert mixed.nats.dtype == torch.float32
    assert (mixed.nats - plain.nats).norm() < 0.05 * plain.nats.norm()
    total(trained).backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert all(g.dtype == torch.float32 and g.isfinite().all() for g in gradients.values())


@pytest.mark.parametrize(("init_std", "variant"), [(0.01, "soft"), (None, "soft"), (None, "initial"), (0.01, "hard")])
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


HARD = [name for name in VARIANTS if "hard" in name]
CERTAIN = 1e3
"""A logit of something that is certain."""


def alike(first, second):
    """Two models of these kinds with the same weights, as far as both have them."""
    ours, theirs = small(first), small(second)
    known = ours.state_dict()
    with torch.no_grad():
        for name, weight in theirs.named_parameters():
            if weight.numel():
                weight.copy_(known[name])
    return ours, theirs


def costs(model, batch):
    return model(*batch).nats


def of_attention(model):
    """Names of what decides where it looks."""
    return [name for name, _ in model.named_parameters() if "w_c" in name or name.endswith(("u.weight", "w_d"))]


@pytest.mark.parametrize("variant", ["soft", "hard", "mean"])
def test_behind_a_shut_gate_neither_the_lstm_nor_the_output_sees_more_than_the_initial_state_did(variant):
    """The captioner without a view has the same weights; its LSTM and output have none for ẑ."""
    gated, blind = alike(variant, "initial")
    with torch.no_grad():
        gated.decoder.f_beta.bias.fill_(-CERTAIN)
        gated.output.l_z.bias.zero_()
    batch = given()
    torch.testing.assert_close(costs(gated, batch), costs(blind, batch), **EXACT)


def test_even_attention_sees_the_mean_vector():
    soft, mean = alike("soft", "mean")
    with torch.no_grad():
        soft.decoder.glimpse.u.weight.zero_()
    batch = given()
    torch.testing.assert_close(costs(soft, batch), costs(mean, batch), **EXACT)


@pytest.mark.parametrize("variant", HARD)
def test_hard_attention_looks_at_the_likeliest_place_which_soft_attention_does_if_it_is_certain(variant):
    hard, soft = alike(variant, "no gate" if "no gate" in variant else "soft")
    batch = given()
    found = hard(*batch)
    with torch.no_grad():
        soft.decoder.glimpse.u.weight.mul_(1e9)
    out = soft(*batch)
    assert torch.equal(out.attention.argmax(-1), found.attention.argmax(-1))
    torch.testing.assert_close(out.attention.amax(-1), torch.ones_like(out.nats), **EXACT)
    torch.testing.assert_close(out.nats, found.nats, **EXACT)


@pytest.mark.parametrize("variant", ["hard", "hard, score function"])
def test_hard_attention_that_never_draws_is_soft_attention_without_the_penalty(variant):
    hard, soft = alike(variant, "no penalty")
    hard.reinforce.sampling, hard.reinforce.entropy = 0.0, 0.0
    batch = given()
    out, expected = hard.train()(*batch), soft.train()(*batch)
    assert not out.auxiliary.any()
    assert not expected.auxiliary.any()
    for ours, theirs in zip(out[:3], expected[:3], strict=True):
        torch.testing.assert_close(ours, theirs, **EXACT)
    (out.nats.sum() + out.auxiliary.sum()).backward()
    expected.nats.sum().backward()
    learned = {
        name: (hard.get_parameter(name).grad, p.grad) for name, p in soft.named_parameters() if p.grad is not None
    }
    if variant == "hard":
        for ours, theirs in learned.values():
            torch.testing.assert_close(ours, theirs, **EXACT)
        return
    for name in of_attention(soft):  # the code's rule: nothing goes through α
        ours, theirs = learned[name]
        assert not ours.any(), name
        assert theirs.any(), name


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
