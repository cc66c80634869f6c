"""What the caption generator and its baselines must do whatever their sizes are."""

import pytest
import torch

from replications.show_attend_tell.replication import build_model
from replications.show_attend_tell.settings import ModelConfig
from shared.data.tokenizers import BOS, EOS, PAD
from tests.replications.small_show_attend_tell import ATTEND, GRID, SIZES, VARIANTS, given, small

EXACT = {"atol": 1e-10, "rtol": 0}
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


@pytest.mark.parametrize("variant", ATTEND)
def test_attention_is_said_of_every_symbol_and_adds_up_to_one(variant):
    model, batch = small(variant), given()
    out = model(*batch)
    assert out.attention.shape == batch.regions.shape
    torch.testing.assert_close(out.attention.sum(-1), torch.ones_like(out.nats), **EXACT)
    assert (out.gates is None) == ("no gate" in variant)
    if out.gates is not None:
        assert ((out.gates > 0) & (out.gates < 1)).all()


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
def test_the_loss_reaches_every_parameter(variant):
    model, batch = small(variant), given((6, 6, 5, 4))
    out = in_training(model, batch)
    total(out).backward()
    unmoved = {name for name, p in model.named_parameters() if p.numel() and (p.grad is None or not p.grad.any())}
    assert unmoved == ({"decoder.glimpse.u.bias"} if variant in ATTEND else set())  # which no softmax sees


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
