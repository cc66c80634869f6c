"""What the caption generator and its baselines must do whatever their sizes are."""

import pytest
import torch
from hypothesis import given as drawn_from
from hypothesis import settings
from hypothesis import strategies as st
from torch import nn

from replications.show_attend_tell.replication import build_model
from replications.show_attend_tell.settings import ModelConfig
from shared.config import build
from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.beam import beam_search
from shared.decoding.constraints import Constraints
from shared.decoding.naive import naive_beam_search
from shared.errors import ReplicationError
from tests.replications.small_show_attend_tell import ATTEND, GRID, SIZES, VARIANTS, VOCABULARY, given, small

EXACT = {"atol": 1e-10, "rtol": 0}
DETERMINISTIC = [name for name in VARIANTS if "hard" not in name]
variants = pytest.mark.parametrize("variant", VARIANTS)
many = settings(deadline=None, max_examples=15)
some_lengths = st.lists(st.integers(1, 6), min_size=1, max_size=4)
seeds = st.integers(0, 2**31)


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


def assert_same(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(ours, theirs, **EXACT)


@variants
@many
@drawn_from(lengths=some_lengths, seed=seeds)
def test_step_by_step_a_caption_is_as_likely_and_attention_is_where_teacher_forcing_has_it(variant, lengths, seed):
    torch.manual_seed(seed)
    model, (features, captions, _) = small(variant), given(lengths)
    out = model(features, captions)
    state, previous = model.start(features), torch.full((len(lengths), 1), BOS)
    for t in range(captions.size(1)):
        log_p, alpha, state = model.step(previous, state)
        torch.testing.assert_close(log_p.exp().sum(-1), torch.ones_like(log_p[..., 0]), **EXACT)
        previous = captions[:, t : t + 1]
        nats = -log_p[:, 0].gather(1, previous).masked_fill(previous == PAD, 0)
        torch.testing.assert_close(nats[:, 0], out.nats[:, t], **EXACT)
        assert_same([alpha], [None if out.attention is None else out.attention[:, t : t + 1]])


@variants
@many
@drawn_from(lengths=some_lengths, more=st.integers(1, 3), seed=seeds)
def test_padding_changes_nothing(variant, lengths, more, seed):
    torch.manual_seed(seed)
    model, batch = small(variant), given(lengths)
    padded = batch._replace(
        captions=nn.functional.pad(batch.captions, (0, more), value=PAD),
        regions=nn.functional.pad(batch.regions, (0, 0, 0, more)),
    )
    length = batch.captions.size(1)
    for run in (lambda given: model.eval()(*given), lambda given: in_training(model, given)):
        out, again = run(batch), run(padded)
        assert not again.nats[:, length:].any()
        shorter = [None if part is None else part[:, :length] for part in again[:3]]
        assert_same([*shorter, again.auxiliary], out)


@variants
@many
@drawn_from(lengths=some_lengths, seed=seeds)
def test_a_batch_is_its_captions(variant, lengths, seed):
    torch.manual_seed(seed)
    model, batch = small(variant), given(lengths)
    model.train(variant in DETERMINISTIC)
    out = model(*batch)
    for i, length in enumerate(lengths):
        alone = model(*(part[i : i + 1] for part in batch))
        rows = [None if part is None else part[i : i + 1] for part in out]
        assert_same(alone, rows)
        assert (out.nats[i] > 0).sum() == length


@pytest.mark.parametrize("variant", ATTEND)
def test_attention_is_said_of_every_symbol_and_adds_up_to_one(variant):
    model, batch = small(variant), given()
    out = model(*batch)
    assert out.attention.shape == batch.regions.shape
    torch.testing.assert_close(out.attention.sum(-1), torch.ones_like(out.nats), **EXACT)
    assert (out.gates is None) == ("no gate" in variant)
    if out.gates is not None:
        assert ((out.gates > 0) & (out.gates < 1)).all()


@pytest.mark.parametrize("variant", ["mean", "initial"])
def test_baselines_attend_to_nothing(variant):
    out = small(variant)(*given())
    assert out.attention is None
    assert (out.gates is None) == (variant == "initial")


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


@pytest.mark.parametrize("variant", DETERMINISTIC)
def test_gradients_are_those_of_finite_differences(variant):
    model, batch = small(variant).train(), given((4, 2))
    weights = [p for name, p in model.named_parameters() if p.numel() and name != "decoder.glimpse.u.bias"]
    for weight, gradient in zip(weights, torch.autograd.grad(total(model(*batch)), weights), strict=True):
        direction, costs = torch.randn_like(weight), []
        if weight is model.embedding.weight:
            direction[BOS] = 0
        for step in (1e-5, -1e-5):
            with torch.no_grad():
                weight += step * direction
                costs.append(total(model(*batch)))
                weight -= step * direction
        expected = (costs[0] - costs[1]) / 2e-5
        torch.testing.assert_close((gradient * direction).sum(), expected, atol=1e-7, rtol=1e-5)


@variants
@many
@drawn_from(beams=st.lists(st.integers(1, 3), min_size=1, max_size=3), seed=seeds)
def test_beams_of_a_picture_are_as_that_picture_repeated(variant, beams, seed):
    torch.manual_seed(seed)
    model, k = small(variant), 3
    features = given([1] * len(beams)).features
    words = torch.randint(4, VOCABULARY, (len(beams), k))
    start = torch.full((len(beams), 1), BOS)
    _, _, state = model.step(start, model.start(features))
    state = model.reorder(state, None, torch.zeros(len(beams), k, dtype=torch.long))
    log_p, alpha, state = model.step(words, state)

    repeated = model.start(features.repeat_interleave(k, dim=0))
    _, _, repeated = model.step(start.repeat_interleave(k, dim=0), repeated)
    expected, where, repeated = model.step(words.view(-1, 1), repeated)
    assert_same([log_p.flatten(0, 1)], [expected[:, 0]])
    assert_same([None if alpha is None else alpha.flatten(0, 1)], [None if where is None else where[:, 0]])

    kept = torch.arange(len(beams))[:: max(1, len(beams) - 1)]  # some pictures are done, beams change places
    order = torch.stack([torch.randperm(k) for _ in kept])
    again, _, _ = model.step(words[kept], model.reorder(state, kept, order))
    rows = (kept.unsqueeze(1) * k + order).flatten()
    alone = model.reorder(repeated, rows, torch.zeros(len(rows), 1, dtype=torch.long))
    expected, _, _ = model.step(words[kept].view(-1, 1), alone)
    assert_same([again.flatten(0, 1)], [expected[:, 0]])


@variants
def test_beam_search_finds_what_a_search_of_one_picture_finds(variant):
    model, features = small(variant), given([1] * 4).features

    def limits(count):
        least = torch.zeros(count, dtype=torch.long)
        return Constraints(begin=BOS, end=EOS, padding=PAD, minimum=least, maximum=least + 6)

    with torch.no_grad():
        found = beam_search(model, model.start(features), limits(4), beam=3)
        for i in range(4):
            best = naive_beam_search(model, model.start(features[i : i + 1]), limits(1), beam=3)[0]
            assert found.tokens[i, 0, : found.lengths[i, 0]].tolist() == list(best.tokens)


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


@variants
def test_the_seed_decides_everything(variant):
    config = ModelConfig.model_validate(SIZES | VARIANTS[variant] | {"dropout": 0.5})
    batch, made = given((6, 6, 6)), []
    features, captions, regions = batch.features.float(), batch.captions, batch.regions.float()
    for seed in (7, 7, 8):
        torch.manual_seed(seed)
        model = build_model(config, VOCABULARY, GRID).train()
        for parameter in model.parameters():
            nn.init.normal_(parameter)
        outs = [model(features, captions, regions).nats for _ in range(2)]
        made.append((list(model.parameters()), *outs))
    torch.testing.assert_close(made[0], made[1], atol=0, rtol=0)
    assert not torch.equal(made[0][1], made[2][1])
    assert not torch.equal(made[0][1], made[0][2])  # dropout and places are drawn anew


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attention": "hard", "hard": None}, "hard attention needs the settings 'hard'"),
        ({"attention": "hrad"}, "'attention'"),
        ({"hard": {"reinforce": -1.0, "entropy": 0.0}}, "'hard.reinforce'"),
        ({"hard": {"reinforce": 1.0, "entropy": 0.0, "sampling": 0.0}}, "'hard.sampling'"),
        ({"penalty": -1.0}, "'penalty'"),
        ({"supervision": -1.0}, "'supervision'"),
        ({"dropout": 1.0}, "'dropout'"),
        ({"attention_layers": 0}, "'attention_layers'"),
        ({"init_std": 0.0}, "'init_std'"),
        ({"pelanty": 1.0}, "did you mean 'penalty'"),
    ],
)
def test_a_configuration_that_fits_no_model_is_refused(change, message):
    with pytest.raises(ReplicationError, match=message) as error:
        build(ModelConfig, SIZES | change, where="smoke.yaml")
    assert "\n" not in str(error.value)
