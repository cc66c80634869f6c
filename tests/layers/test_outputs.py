"""Output layers and positions: distributions by their definitions, samples that have them, places everywhere."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from replications.transformer_xl.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from shared.layers.outputs import CategoricalOutput, MixtureOfLogistics
from shared.layers.positions import LearnedPositions, SinusoidalPositions, sinusoids
from tests.checklist import F64, spread
from tests.refused import assert_refused


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def transparent(symbols, components=0, dtype=torch.float64):
    """A layer whose states are the parameters themselves: logits, or those of a mixture, means and log scales."""
    if components:
        layer = MixtureOfLogistics(width=3 * components, levels=symbols, components=components).to(dtype)
    else:
        layer = CategoricalOutput(width=symbols, symbols=symbols).to(dtype)
    nn.init.eye_(layer.projection.weight)
    nn.init.zeros_(layer.projection.bias)
    return layer


# A softmax


def test_large_logits_give_finite_nats_and_gradients():
    h = torch.tensor([1e4, -1e4, 0.0]).expand(3, -1).clone().requires_grad_()
    nats = transparent(3, dtype=torch.float32)(h, torch.arange(3))
    assert nats.tolist() == [0, 2e4, 1e4]
    nats.sum().backward()
    assert h.grad.isfinite().all()


def test_what_has_next_to_no_probability_is_not_drawn():
    layer = transparent(5, dtype=torch.float32)
    state = torch.tensor([0.0, -1e30, 0.0, -1e9, -200.0])
    assert set(layer.sample(state.expand(5000, -1), seeded(1)).tolist()) == {0, 2}


# A mixture of logistics


def parameters(*shape, components, seed, log_scale=-2.0):
    logits, means, log_scales = torch.randn(3, *shape, components, generator=seeded(seed), dtype=torch.float64)
    return torch.cat((logits, 0.6 * means, log_scales + log_scale), dim=-1)


def differences(state, levels):
    """The categorical distribution (N, V) of states (N, 3C) in SciPy's words, as differences of probabilities."""
    logits, means, log_scales = (part.numpy()[..., None] for part in state.chunk(3, dim=-1))
    log_scales = log_scales.clip(-7, 7)  # as the layer holds them
    bounds = torch.linspace(-1, 1, levels, dtype=torch.float64)[:-1].numpy() + 1 / (levels - 1)
    below = stats.logistic.cdf(bounds, loc=means, scale=math.e**log_scales)  # (N, C, V - 1)
    n, components, _ = below.shape
    ends = torch.tensor([0.0, 1.0], dtype=torch.float64).expand(n, components, 2)
    cumulative = torch.cat((ends[..., :1], torch.from_numpy(below), ends[..., 1:]), dim=-1)
    weights = torch.from_numpy(logits).softmax(dim=1)
    return (weights * cumulative.diff()).sum(1)


@given(st.integers(2, 256), st.integers(1, 10), st.floats(-4, 2), st.integers(0, 9999))
@settings(max_examples=60)
def test_it_is_the_categorical_distribution_of_differences(levels, components, log_scale, seed):
    layer = transparent(levels, components)
    state = parameters(5, components=components, seed=seed, log_scale=log_scale)
    expected = differences(state, levels)
    found = layer.log_probs(state)
    assert torch.allclose(found.exp(), expected, rtol=1e-7, atol=1e-12)
    assert torch.allclose(found.logsumexp(-1), torch.zeros(5, dtype=torch.float64), atol=1e-12)
    targets = torch.arange(levels).expand(5, -1)
    assert torch.allclose(layer(state.unsqueeze(1).expand(-1, levels, -1), targets), -found, atol=1e-12)


@pytest.mark.parametrize("log_scale", [-1e4, -7, -5, 0, 7, 1e4])
@pytest.mark.parametrize("mean", [-1e6, -1.0, 0.003, 1.0, 40.0])
@pytest.mark.parametrize("levels", [2, 7, 256])
def test_extreme_parameters_give_a_distribution_and_finite_gradients(levels, mean, log_scale):
    layer = transparent(levels, 2, torch.float32)
    state = torch.tensor([0.3, -0.2, mean, mean + 0.01, log_scale, log_scale + 0.1], requires_grad=True)
    log_probs = layer.log_probs(state)
    assert log_probs.isfinite().all()
    assert torch.allclose(log_probs.exp().sum(), torch.tensor(1.0), atol=1e-4)
    layer(state.expand(levels, -1), torch.arange(levels)).sum().backward()
    assert state.grad.isfinite().all()


@pytest.mark.parametrize(("level", "mean", "log_scale"), [(200, -0.9, -5.0), (3, 0.9, -4.0), (255, -1, -5)])
def test_what_a_difference_loses_in_single_precision_is_kept(level, mean, log_scale):
    bounds = torch.tensor([2 * level - 256, math.inf if level == 255 else 2 * level - 254]) / 255
    assert ((bounds - mean) * math.exp(-log_scale)).sigmoid().diff() == 0
    # Of the two, the one that is near zero, and so precise.
    tail = stats.logistic.sf if level > 127 else stats.logistic.cdf
    exact = math.log(abs(float(tail(bounds.double().numpy(), loc=mean, scale=math.exp(log_scale)) @ [1, -1])))
    for dtype in (torch.float32, torch.float64):
        state = torch.tensor([0.0, mean, log_scale], dtype=dtype)
        found = -transparent(256, 1, dtype)(state, torch.tensor(level))
        assert found.item() == pytest.approx(exact, rel=1e-5)


# Both


@pytest.mark.parametrize(
    ("symbols", "log_scale"), [(2, None), (12, None), (257, None), (2, -1.0), (16, -2.0), (256, -4.0)]
)
def test_samples_have_the_probabilities(symbols, log_scale):
    """A chi-squared test at a level of 1e-6, on symbols that are expected ten times or more and on all others."""
    layer, count = transparent(symbols, 0 if log_scale is None else 3), 40_000
    state = 2 * torch.randn(symbols, dtype=torch.float64, generator=seeded(symbols))
    if log_scale is not None:
        state = parameters(components=3, seed=symbols, log_scale=log_scale)
    drawn = layer.sample(state.expand(count, -1), seeded(5))
    assert drawn.dtype == torch.int64
    expected = count * layer.log_probs(state).exp()
    found = torch.bincount(drawn, minlength=symbols).double()
    often = expected >= 10
    pairs = [torch.cat((x[often], x[~often].sum().view(1))) for x in (found, expected)]
    found, expected = (x[pairs[1] >= 10] for x in pairs)
    assert stats.chi2.sf(((found - expected) ** 2 / expected).sum().item(), len(expected) - 1) > 1e-6


@pytest.mark.parametrize("components", [0, 4])
def test_a_seed_decides_the_samples_of_any_shape_and_extreme_ones_stay_symbols(components):
    layer = transparent(256, components, torch.float32)
    h = 30 * torch.randn(2, 50, layer.projection.in_features)
    first, second = (layer.sample(h, seeded(1)) for _ in range(2))
    assert torch.equal(first, second)
    assert first.shape == (2, 50)
    assert 0 <= first.min() <= first.max() <= 255
    assert not torch.equal(layer.sample(h / 30, seeded(2)), layer.sample(h / 30, seeded(1)))


@pytest.mark.parametrize("layer", [CategoricalOutput(width=16, symbols=9), MixtureOfLogistics(width=16, levels=9)])
def test_half_precision_states_are_judged_in_single_precision(layer):
    layer = layer.bfloat16()
    h, targets = torch.randn(5, 16).bfloat16(), torch.randint(9, (5,))
    nats, log_probs = layer(h, targets), layer.log_probs(h)
    assert nats.dtype == log_probs.dtype == torch.float32
    assert torch.allclose(log_probs.exp().sum(-1), torch.ones(5), atol=1e-6)
    assert torch.allclose(nats, layer.float()(h.float(), targets), rtol=0.05, atol=0.02)


V, D = 23, 12
SIZES = [
    {"cutoffs": ()},
    {"cutoffs": (5,)},
    {"cutoffs": (1, 2, 22)},
    {"cutoffs": (4, 9, 17)},
    {"cutoffs": (4, 9), "div_val": 2},
    {"cutoffs": (4, 9, 17), "div_val": 2, "tied": (False, True, True, True)},
    {"cutoffs": (4, 9), "div_val": 3, "tied": (True, True, True)},
    {"cutoffs": (3,), "div_val": 5, "tied": (True, False)},
]
sizes = pytest.mark.parametrize("size", SIZES, ids=str)


def softmax_of(*, cutoffs=(), div_val=1, tied=(), vocabulary=V, width=D, dtype=F64):
    """With weights large enough that no two words are alike, biases included."""
    embedding = AdaptiveEmbedding(vocabulary=vocabulary, width=width, cutoffs=cutoffs, div_val=div_val)
    return spread(AdaptiveSoftmax(embedding, tied_projections=tied), 0.7).to(dtype)


@settings(max_examples=40)
@given(
    data=st.data(), vocabulary=st.integers(2, 40), width=st.integers(8, 20), div_val=st.integers(1, 2),
    shape=st.lists(st.integers(0, 3), max_size=3), seed=st.integers(0, 2**31),
)  # fmt: skip
def test_probabilities_sum_to_one_and_are_those_of_the_loss(data, vocabulary, width, div_val, shape, seed):
    torch.manual_seed(seed)
    cutoffs = sorted(data.draw(st.sets(st.integers(1, vocabulary - 1), max_size=3)))
    tied = data.draw(st.lists(st.booleans(), min_size=len(cutoffs) + 1, max_size=len(cutoffs) + 1))
    softmax = softmax_of(
        cutoffs=cutoffs, div_val=div_val if cutoffs else 1, tied=tied, vocabulary=vocabulary, width=width
    )
    h = 3 * torch.randn(*shape, width, dtype=F64)
    targets = torch.randint(vocabulary, shape)
    log_probs = softmax.log_probs(h)
    assert log_probs.shape == (*shape, vocabulary)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(shape, dtype=F64), atol=1e-12, rtol=0)
    chosen = log_probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(softmax(h, targets), -chosen, atol=1e-11, rtol=1e-11)
    assert softmax.embedding(targets).shape == (*shape, width)


@pytest.mark.parametrize("counts", [(7, 0, 0), (0, 3, 0), (4, 0, 9), (2, 5, 3)])
def test_only_the_tokens_of_a_cluster_go_through_its_products(counts):
    """So a cluster that is absent costs nothing: exact counts of multiply-adds, d_i being 12, 6 and 3."""
    softmax = softmax_of(cutoffs=(4, 9), div_val=2)
    (n, a, b), ranges = counts, [(0, 4), (4, 9), (9, V)]
    targets = torch.cat([torch.randint(*bounds, (k,)) for bounds, k in zip(ranges, counts, strict=True)])
    targets = targets[torch.randperm(len(targets))]
    h = torch.randn(len(targets), D, dtype=F64)
    with FlopCounterMode(display=False) as counter:
        softmax(h, targets)
    head = len(targets) * (D * 12 + 12 * (4 + 2))
    assert counter.get_total_flops() == 2 * (head + a * (D * 6 + 6 * 5) + b * (D * 3 + 3 * 14))
    with FlopCounterMode(display=False) as counter:
        softmax.embedding(targets)
    assert counter.get_total_flops() == 2 * D * (12 * n + 6 * a + 3 * b)


def test_a_cluster_that_is_absent_has_gradients_of_zero():
    softmax = softmax_of(cutoffs=(4, 9), div_val=2)
    tokens, targets = torch.tensor([[0, 5, 3], [8, 1, 4]])
    softmax(softmax.embedding(tokens), targets).sum().backward()
    absent = {"embedding.tables.2", "embedding.projections.2", "projections.2", "biases.2"}
    assert {name for name, p in softmax.named_parameters() if not p.grad.any()} == absent


def test_weights_are_drawn_as_in_the_released_code():
    embedding = AdaptiveEmbedding(vocabulary=3000, width=64, cutoffs=(1000, 2000), div_val=2)
    softmax = AdaptiveSoftmax(embedding, tied_projections=(False, True, True))
    assert [table.std().item() for table in embedding.tables] == pytest.approx([0.02] * 3, rel=0.05)
    projections = [*embedding.projections, softmax.projections["0"]]
    assert [p.std().item() for p in projections] == pytest.approx([0.01] * 4, rel=0.1)
    assert softmax.cluster_weight.std().item() == pytest.approx(0.02, rel=0.4)
    assert not any(bias.any() for bias in softmax.biases)


@sizes
def test_autocast_leaves_embeddings_and_losses_in_float32(size):
    softmax = softmax_of(**size, dtype=torch.float32)
    tokens, h = torch.randint(V, (2, 30)), torch.randn(2, 30, D)
    exact = softmax.embedding(tokens), softmax(h, tokens), softmax.log_probs(h)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = softmax.embedding(tokens), softmax(h, tokens), softmax.log_probs(h)
    assert [output.dtype for output in mixed] == [torch.float32] * 3
    torch.testing.assert_close(mixed, exact, atol=0.3, rtol=0.05)


@sizes
@pytest.mark.parametrize("word", [-1, V])
def test_a_number_that_is_no_word_is_refused(size, word):
    softmax = softmax_of(**size)
    with pytest.raises(IndexError, match="out of"):
        softmax.embedding(torch.tensor([0, word]))
    with pytest.raises(IndexError, match="out of"):
        softmax(torch.randn(2, D, dtype=F64), torch.tensor([0, word]))


@pytest.mark.parametrize("cutoffs", [(0, 5), (5, 5), (9, 5), (5, V), (5, V + 1), (-2,)])
def test_cutoffs_that_part_nothing_are_refused(cutoffs):
    assert_refused("do not part 23 words into clusters; let", AdaptiveEmbedding, vocabulary=V, width=D, cutoffs=cutoffs)


@pytest.mark.parametrize(("cutoffs", "div_val"), [((), 4), ((5,), 0), ((5,), -1), ((5, 9), 4)])
def test_a_div_val_that_fits_no_clusters_is_refused(cutoffs, div_val):
    assert_refused(f"div_val {div_val}", AdaptiveEmbedding, vocabulary=V, width=D, cutoffs=cutoffs, div_val=div_val)


@pytest.mark.parametrize("width", [2, 6, 512])
def test_the_equation_by_hand(width):
    positions = [0, 1, 2, 17, 63, 64, 4095]
    found = sinusoids(torch.tensor(positions), width)
    assert found.shape == (len(positions), width)
    for row, position in zip(found.tolist(), positions, strict=True):
        for i in range(width // 2):
            angle = position / 10_000 ** (2 * i / width)
            assert row[2 * i : 2 * i + 2] == pytest.approx([math.sin(angle), math.cos(angle)], abs=1e-6)


@pytest.mark.parametrize("position", [123_456, 10**7 + 3])
def test_far_positions_are_as_accurate_as_near_ones(position):
    """Rounding the angle to float32 would be wrong by more than a tenth of a turn here."""
    width = 64
    angles = [position / 10_000 ** (2 * i / width) for i in range(width // 2)]
    expected = [f(angle) for angle in angles for f in (math.sin, math.cos)]
    assert sinusoids(torch.tensor([position]), width)[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_the_table_grows_and_keeps_its_values():
    positions = SinusoidalPositions(width=8)
    expected = sinusoids(torch.arange(500), 8)
    near = positions(3, 9).clone()
    assert torch.equal(positions(60, 131), expected[60:131])
    assert torch.equal(positions(3, 9), near)
    assert torch.equal(near, expected[3:9])
    assert torch.equal(positions(499, 500), expected[499:])
    assert positions(7, 7).shape == (0, 8)


def test_a_grown_table_is_of_the_model_s_type_and_no_part_of_its_state():
    positions = SinusoidalPositions(width=8).to(F64)
    assert positions(0, 300).dtype == F64
    assert not positions.state_dict()
    assert not list(positions.parameters())
    torch.testing.assert_close(positions(250, 300), sinusoids(torch.arange(250, 300), 8).to(F64))


def test_a_long_sequence_leaves_the_buffers_as_they_were():
    """Processes that share a run broadcast their buffers, so these must not depend on what a process has read."""
    positions = SinusoidalPositions(width=8)
    before = [buffer.shape for buffer in positions.buffers()]
    positions(0, 1_000)
    assert before
    assert [buffer.shape for buffer in positions.buffers()] == before


def test_learned_positions_are_rows_of_a_parameter():
    positions = LearnedPositions(count=6, width=4)
    assert torch.equal(positions(2, 6), positions.table[2:6])
    positions(2, 4).sum().backward()
    assert positions.table.grad.any(1).tolist() == [False, False, True, True, False, False]


def test_learned_positions_begin_as_large_as_embeddings_before_their_scaling():
    assert LearnedPositions(count=2000, width=64).table.std().item() == pytest.approx(1 / 8, rel=0.02)


def test_there_are_only_so_many_learned_positions():
    positions = LearnedPositions(count=6, width=4)
    assert_refused("there are 6 learned positions, and a sequence has 7 symbols", positions, 6, 7)
