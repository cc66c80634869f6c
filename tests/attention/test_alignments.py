"""Global and local alignments by hand: their windows at every edge, the Gaussian, and what they cost."""

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from shared.attention.alignments import DotScore, GlobalAlignment, LocalMonotonic, LocalPredictive, build_score
from tests.attention.registry import ATTENTIONS, ScoredAlignment
from tests.checklist import F64, spread

N = 4
LOCAL = {
    "local-m": lambda window: LocalMonotonic(window=window),
    "local-p": lambda window: LocalPredictive(window=window, size=N),
}
CONTENT = ("dot", "general", "concat")
SCORED = [name for name, entry in ATTENTIONS.items() if isinstance(entry.build(N, N), ScoredAlignment)]


class ConstantScore(DotScore):
    """All words score alike."""

    def scores(self, queries, keys):
        return 0 * super().scores(queries, keys)


def attending(alignment, score="dot"):
    """The pair with weights large enough to matter."""
    return spread(ScoredAlignment(build_score(score, size=N, positions=6), alignment), 1.0)


def inputs(lengths, queries, size=None):
    """Queries, annotations, and the mask of sources of these lengths."""
    size = size or max(lengths)
    mask = torch.arange(size) < torch.tensor(lengths).unsqueeze(1)
    batch = len(lengths)
    return torch.randn(batch, queries, N, dtype=F64), torch.randn(batch, size, N, dtype=F64), mask


def predicting(share, window, size, first_word=0):
    """Local-p's weights over ``size`` words that score alike, where a query predicts p = size · share."""
    logit = math.log(share / (1 - share)) if share < 1 else 99.0
    module = attending(LocalPredictive(window=window, size=N, first_word=first_word))
    module.alignment.w_p.data = torch.eye(N, dtype=F64)
    module.alignment.v_p.data = torch.tensor([logit, 0, 0, 0], dtype=F64)
    queries = torch.tensor([[[100.0, 0, 0, 0]]], dtype=F64)  # its tanh is one
    mask = torch.ones(1, size, dtype=torch.bool)
    return module(queries, torch.zeros(1, size, N, dtype=F64), mask)[1][0, 0]


def test_a_monotonic_window_follows_the_target_and_stays_at_the_last_word():
    module, (_, annotations, mask) = attending(LocalMonotonic(window=1)), inputs([5, 3, 1], 7, size=6)
    _, weights = module(torch.zeros(3, 7, N, dtype=F64), annotations, mask)  # all scores alike
    half, third = 1 / 2, pytest.approx(1 / 3)
    five, three, one = weights.tolist()
    assert five == [
        [half, half, 0, 0, 0, 0],
        [third, third, third, 0, 0, 0],
        [0, third, third, third, 0, 0],
        [0, 0, third, third, third, 0],
        *[[0, 0, 0, half, half, 0]] * 3,
    ]
    assert three == [[half, half, 0, 0, 0, 0], [third, third, third, 0, 0, 0], *[[0, half, half, 0, 0, 0]] * 5]
    assert one == [[1, 0, 0, 0, 0, 0]] * 7


def test_predicted_weights_by_hand():
    weights = predicting(0.5, window=2, size=8)  # p = 4, σ = 1
    near, far = math.exp(-1 / 2) / 5, math.exp(-2) / 5
    assert weights.tolist() == pytest.approx([0, 0, far, near, 1 / 5, near, far, 0], abs=1e-12)
    assert weights.argmax() == 4


@pytest.mark.parametrize(
    ("first_word", "share", "first", "last"),
    [
        (0, 1e-9, 1, 2),  # p nearly 0: at the first word
        (0, 0.17, 1, 3),  # p = 1.7: centred on the second word although the third is nearer
        (0, 0.99, 9, 10),  # p = 9.9: centred on the last word
        (1, 1e-9, 1, 2),
        (1, 0.17, 1, 2),  # p = 1.7: still on the first word
        (1, 0.21, 1, 3),
        (1, 0.99, 8, 10),  # p = 9.9: on the last word but one
    ],
)
def test_a_predicted_window_is_centred_on_the_word_before_p(first_word, share, first, last):
    weights = predicting(share, 1, 10, first_word)
    assert (weights.nonzero().flatten() + 1).tolist() == list(range(first, last + 1))


def test_predictions_are_shares_of_each_example_s_own_length():
    module, (queries, annotations, _) = attending(LocalPredictive(window=2, size=N)), inputs([12, 12], 1)
    module.alignment.v_p.data.zero_()  # p = S/2
    module.score = ConstantScore()
    mask = torch.arange(12) < torch.tensor([[12], [4]])
    assert (module(queries, annotations, mask)[1][:, 0].argmax(1) + 1).tolist() == [7, 3]


class Produced(TorchDispatchMode):
    """Counts the numbers that operations compute or copy: not views, and not the scatter of the weights."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if isinstance(out, torch.Tensor) and not func.is_view and name not in {"new_zeros", "scatter_add"}:
            self.numbers += out.numel()
        return out


def cost(module, size):
    """Floating-point operations, and numbers produced, from queries to contexts over sources of ``size`` words."""
    queries, annotations, mask = inputs([size] * 2, 5)
    keys = module.score.keys(annotations)  # once per source, for all queries
    arguments = (module.score, queries, keys, annotations, mask, torch.arange(5))
    with torch.no_grad(), FlopCounterMode(display=False) as flops:
        module.alignment(*arguments)
    with torch.no_grad(), Produced() as produced:
        module.alignment(*arguments)
    return flops.get_total_flops(), produced.numbers


@pytest.mark.parametrize("score", CONTENT)
@pytest.mark.parametrize("kind", sorted(LOCAL))
def test_the_cost_of_local_attention_does_not_depend_on_the_source(kind, score):
    module = attending(LOCAL[kind](10), score)
    short, long = cost(module, 50), cost(module, 500)
    assert short == long
    assert min(short) > 0
    everywhere = attending(GlobalAlignment(), score)
    assert cost(everywhere, 500)[0] > 5 * cost(everywhere, 50)[0]
    assert cost(everywhere, 500)[0] > 5 * long[0]


@pytest.mark.parametrize("name", SCORED)
def test_mixed_precision_keeps_weights_and_positions(name):
    module = ATTENTIONS[name].build(N, N)
    queries, annotations, mask = (x.float() if x.is_floating_point() else x for x in inputs([200, 100], 3))
    annotations.requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        contexts, weights = module(queries, annotations, mask)
    torch.testing.assert_close(weights.float(), module(queries, annotations, mask)[1], atol=0.05, rtol=0)
    leaves = annotations, *module.parameters()
    gradients = torch.autograd.grad(contexts.float().square().sum(), leaves)
    assert all(gradient.isfinite().all() for gradient in gradients)
