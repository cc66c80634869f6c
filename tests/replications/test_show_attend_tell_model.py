"""What the caption generator and its baselines must do whatever their sizes are, and how places are learned."""

import itertools

import pytest
import torch
from hypothesis import given as drawn_from
from hypothesis import settings
from hypothesis import strategies as st
from torch import nn

from replications.show_attend_tell.attention import HardAttention, Image
from replications.show_attend_tell.learning import Reinforce, attention_supervision, doubly_stochastic_penalty
from replications.show_attend_tell.replication import build_model
from replications.show_attend_tell.settings import ModelConfig
from shared.data.tokenizers import BOS, EOS, PAD
from tests.replications.small_show_attend_tell import F64, GRID, SIZES, VARIANTS, VOCABULARY, given, small

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


many = settings(deadline=None, max_examples=30)
sizes = {
    "lengths": st.lists(st.integers(1, 5), min_size=1, max_size=4), "places": st.integers(1, 6),
    "seed": st.integers(0, 2**31),
}  # fmt: skip


def case(lengths, places, seed):
    """log α (B, T, L) that wants its gradient, and the mask (B, T)."""
    torch.manual_seed(seed)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    e = torch.randn(*mask.shape, places, dtype=F64, requires_grad=True)
    return e, e.log_softmax(-1), mask


def rule(reward=0.0, entropy=0.0, sampling=1.0, coin="image", b=0.0):
    made = Reinforce(reward=reward, entropy=entropy, sampling=sampling, coin=coin).to(F64)
    made.b.fill_(b)
    return made


def everywhere(count, value=True):
    return torch.full((count, 1), value)


@many
@drawn_from(**sizes)
def test_the_penalty_is_the_sum_over_places_of_how_far_their_attention_is_from_one_words(lengths, places, seed):
    _, log_alpha, mask = case(lengths, places, seed)
    found = doubly_stochastic_penalty(log_alpha.exp(), mask)
    for caption, length in enumerate(lengths):
        alpha = log_alpha[caption].exp().tolist()
        received = [sum(alpha[t][i] for t in range(length)) for i in range(places)]
        assert found[caption].item() == pytest.approx(sum((1 - each) ** 2 for each in received))
    over_places = (1 - (log_alpha.exp() * mask.unsqueeze(2)).sum(1)).square().sum(0).mean()  # as in capgen.py
    torch.testing.assert_close(doubly_stochastic_penalty(log_alpha.exp(), mask, "places").mean(), over_places, **EXACT)


@many
@drawn_from(**sizes)
def test_supervision_is_the_cross_entropy_at_named_words_and_least_where_attention_is_as_told(lengths, places, seed):
    _, log_alpha, mask = case(lengths, places, seed)
    regions = torch.rand_like(log_alpha).softmax(-1) * (mask & (torch.rand(mask.shape) < 0.5)).unsqueeze(2)
    found = attention_supervision(log_alpha, regions)
    for caption in range(len(lengths)):
        terms = [-r * a for r, a in zip(regions[caption].flatten(), log_alpha[caption].flatten(), strict=True)]
        torch.testing.assert_close(found[caption], sum(terms), **EXACT)
    told = torch.where(regions.any(2, keepdim=True), regions, 1).log()
    assert (attention_supervision(told, regions) <= found + 1e-12).all()
    assert not attention_supervision(log_alpha, torch.zeros_like(regions)).any()


@many
@drawn_from(**sizes, b=st.floats(-50, 50))
def test_the_term_is_the_rule_with_its_sign_changed(lengths, places, seed, b):
    _, log_alpha, mask = case(lengths, places, seed)
    s, drawn = torch.randint(places, mask.shape), torch.rand(len(lengths), 1) < 0.5
    log_likelihood = -60 * torch.rand(len(lengths), dtype=F64)
    found = rule(reward=0.7, entropy=0.3, b=b)(log_likelihood, log_alpha, s, drawn, mask)
    for caption, length in enumerate(lengths):
        rows = log_alpha[caption, :length]
        entropy = -sum(a.exp() * a for a in rows.flatten())
        log_p_s = sum(rows[t, s[caption, t]] for t in range(length))
        score = 0.7 * (log_likelihood[caption] - b) * log_p_s if drawn[caption] else 0.0
        torch.testing.assert_close(found[caption], -score - 0.3 * entropy, atol=1e-10, rtol=1e-10)


def expectation(log_likelihood, e, b):
    """Exact gradient by e of what one drawn place of many gives, and what the rule gives on average.

    A caption of one word for every place, weighted with that place's probability; ``log_likelihood`` (L,) is of the
    caption given each place.
    """
    places, alpha = len(e), e.softmax(0).detach()
    (exact,) = torch.autograd.grad((e.softmax(0) * log_likelihood).sum(), e)
    captions = e.log_softmax(0).expand(places, 1, places)
    mask = torch.ones(places, 1, dtype=torch.bool)
    term = rule(reward=1.0, b=b)(log_likelihood, captions, torch.arange(places).unsqueeze(1), everywhere(places), mask)
    single = torch.stack([torch.autograd.grad(-each, e, retain_graph=True)[0] for each in term])
    average = (alpha.unsqueeze(1) * single).sum(0)
    return exact, average


@many
@drawn_from(places=st.integers(1, 6), b=st.floats(-50, 50), seed=st.integers(0, 2**31))
def test_on_average_the_score_function_is_the_gradient_of_the_expected_log_likelihood(places, b, seed):
    torch.manual_seed(seed)
    e = torch.randn(places, dtype=F64, requires_grad=True)
    exact, average = expectation(-10 * torch.rand(places, dtype=F64), e, b)
    torch.testing.assert_close(average, exact, atol=1e-10, rtol=1e-10)


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


def test_nothing_is_learned_through_the_reward_or_the_moving_average():
    e, log_alpha, mask = case([3, 2], 4, 1)
    reinforce = rule(reward=0.7, entropy=0.3, b=-2.0)
    log_likelihood = torch.tensor([-5.0, -3.0], dtype=F64, requires_grad=True)
    term = reinforce(log_likelihood, log_alpha, torch.zeros(2, 3, dtype=torch.long), everywhere(2), mask)
    found = torch.autograd.grad(term.sum(), [log_likelihood, e], allow_unused=True)
    assert found[0] is None
    assert found[1].any()
    assert [*reinforce.parameters()] == []
    assert not reinforce.b.requires_grad
    assert "b" in reinforce.state_dict()  # a resumed training goes on with it


def test_the_moving_average_is_of_the_captions_with_drawn_places():
    reinforce = rule(reward=1.0)
    _, log_alpha, mask = case([2, 2, 2], 3, 1)
    s, values = torch.zeros(3, 2, dtype=torch.long), [0.0]
    for log_likelihood, drawn in (([-10, -20, -60], [1, 1, 0]), ([-8, -4, -2], [1, 1, 1]), ([-9, -9, -9], [0, 0, 0])):
        given_values = torch.tensor(log_likelihood, dtype=F64)
        reinforce(given_values, log_alpha, s, torch.tensor(drawn).bool().unsqueeze(1), mask)
        values.append(reinforce.b.item())
    first = 0.1 * -15
    assert values == pytest.approx([0.0, first, 0.9 * first + 0.1 * -14 / 3, 0.9 * first + 0.1 * -14 / 3])


def test_the_coin_is_tossed_for_every_picture_or_for_the_batch():
    torch.manual_seed(0)
    device = torch.device("cpu")
    tosses = rule(sampling=0.3).toss(20_000, device)
    assert tosses.shape == (20_000, 1)
    assert tosses.double().mean().item() == pytest.approx(0.3, abs=0.02)
    together = rule(sampling=0.3, coin="batch")
    batches = torch.stack([together.toss(4, device) for _ in range(3000)])
    assert (batches == batches[:, :1]).all()
    assert batches[:, 0].double().mean().item() == pytest.approx(0.3, abs=0.04)
    assert rule(sampling=1.0).toss(100, device).all()


def test_places_are_drawn_as_often_as_they_weigh():
    torch.manual_seed(0)
    glimpse = HardAttention(pathwise=True, annotation_size=3, attention_size=2, layers=1).to(F64)
    for parameter in glimpse.parameters():
        nn.init.normal_(parameter)
    a = torch.randn(1, 4, 3, dtype=F64)
    image = Image(a.expand(40_000, -1, -1), glimpse.keys(a).expand(40_000, -1, -1))
    look = glimpse(torch.randn(1, 1, 2, dtype=F64).expand(40_000, -1, -1), image, everywhere(40_000))
    share = look.s.flatten().bincount(minlength=4) / 40_000
    torch.testing.assert_close(share.double(), look.log_alpha[0, 0].exp(), atol=0.012, rtol=0)
    assert torch.equal(look.z_hat[:, 0], a[0, look.s[:, 0]])
