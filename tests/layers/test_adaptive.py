"""Adaptive embeddings and softmax: probabilities, counts and limits; equations are in the tests of parity."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from replications.transformer_xl.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from tests.checklist import spread
from tests.refused import assert_refused

F64 = torch.float64
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
