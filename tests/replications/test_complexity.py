"""Table 1 by counting and by following paths: the closed forms exactly, and the layers are what they are called."""

import math

import pytest
import torch

from replications.transformer import complexity
from shared.attention.scaled_dot_product import attend

WINDOW = 2 * complexity.RADIUS + 1
CLOSED = {
    "self_attention": lambda n, d: 2 * n**2 * d,
    "recurrent": lambda n, d: 2 * n * d**2,
    "convolutional": lambda n, d: complexity.KERNEL * n * d**2,
    "restricted": lambda n, d: 2 * WINDOW * n * d,
}
layers = pytest.mark.parametrize("layer", complexity.LAYERS)


@layers
@pytest.mark.parametrize(("n", "d"), [(16, 8), (32, 8), (16, 24), (7, 4)])
def test_operations_are_the_closed_form(layer, n, d):
    assert complexity.operations(layer, length=n, width=d) == CLOSED[layer](n, d)


@layers
def test_only_a_recurrence_makes_products_wait(layer):
    constant = {"self_attention": 2, "restricted": 2, "convolutional": 1}
    assert [complexity.sequential(layer, length=n) for n in (1, 6, 13)] == [constant.get(layer, n) for n in (1, 6, 13)]


@pytest.mark.parametrize("n", [2, 9, 10, *complexity.PATH_LENGTHS[:2]])
def test_path_lengths_are_the_closed_form(n):
    assert complexity.longest_path("self_attention", length=n) == 1
    assert complexity.longest_path("recurrent", length=n) == n
    assert complexity.longest_path("convolutional", length=n) == math.ceil(math.log(n, complexity.KERNEL) - 1e-9)
    assert complexity.longest_path("restricted", length=n) == math.ceil((n - 1) / complexity.RADIUS)


@layers
def test_a_path_of_that_length_is_enough_and_a_shorter_one_is_not(layer):
    """By gradients through the real hops one after another: the first position reaches the last at the last hop."""
    n, of = 14, complexity.LAYERS[layer](4).double()
    x = torch.randn(1, n, 4, dtype=torch.float64, requires_grad=True)
    h, reached = (torch.zeros_like(x) if layer == "recurrent" else x), []
    for number in range(complexity.longest_path(layer, length=n)):
        h = of.hop(number, x, h)
        (gradient,) = torch.autograd.grad(h[:, -1].square().sum(), x, retain_graph=True)
        reached.append(bool(gradient[0, 0].any()))
    assert reached == [False] * (len(reached) - 1) + [True]


def test_dependence_is_that_of_the_function():
    x = torch.randn(1, 5, 2, dtype=torch.float64)
    assert complexity.dependence(lambda x: x.cumsum(1), x).equal(torch.ones(5, 5, dtype=torch.bool).tril())


def test_restricted_attention_is_attention_under_a_window():
    x = torch.randn(2, 14, 6, dtype=torch.float64)
    heads = x.unsqueeze(1)
    near = torch.ones(14, 14, dtype=torch.bool).tril(complexity.RADIUS).triu(-complexity.RADIUS)
    expected = attend(heads, heads, heads, mask=near)
    torch.testing.assert_close(complexity.LAYERS["restricted"](6)(x), expected.squeeze(1), atol=1e-12, rtol=0)


def test_the_hops_of_a_recurrence_are_its_steps():
    of, x = complexity.LAYERS["recurrent"](4).double(), torch.randn(2, 6, 4, dtype=torch.float64)
    h = torch.randn_like(x)
    for number in range(6):
        h = of.hop(number, x, h)
        torch.testing.assert_close(h[:, : number + 1], of(x)[:, : number + 1], atol=1e-12, rtol=0)


def test_the_convolution_sees_nothing_that_comes_later():
    of, x = complexity.LAYERS["convolutional"](4), torch.randn(1, 12, 4)
    assert of(x).shape == x.shape
    torch.testing.assert_close(of(x[:, :7]), of(x)[:, :7])


def test_the_training_cost_of_table_2():
    assert complexity.cost_rule("base") == pytest.approx(3.2832e18)
    assert complexity.cost_rule("big") == pytest.approx(2.29824e19)
    # 1000 pairs of n = 25 symbols a batch, forward once and backward twice, two operations a multiply-add. Each of six
    # layers has three attentions, 4 n d² + 2 n² d, and two feed-forward networks, 8 n d²; there are 37,000 words.
    n = 25
    for model, d, updates in (("base", 512, 100_000), ("big", 1024, 300_000)):
        forward = 6 * (28 * n * d**2 + 6 * n**2 * d) + 37_000 * n * d
        assert complexity.training_operations(model) == 6 * forward * 1000 * updates
