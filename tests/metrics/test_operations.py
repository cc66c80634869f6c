"""Counts of multiply-adds against closed forms, first of operators and then of the papers' own models at full size."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from replications.bahdanau.model import RNNencdec, RNNsearch
from replications.luong.replication import build_model
from replications.luong.settings import ModelConfig
from shared.attention.scaled_dot_product import attend
from shared.attention.twins import plain_equations
from shared.metrics.operations import count_operations, longest_chain, shapes_only

B, S, T = 2, 5, 3


def forward(build, source=30, target=30, batch=1):
    """Multiply-adds of a forward pass over symbols, none of them carried out."""
    with shapes_only():
        read, written = (torch.ones(batch, length, dtype=torch.long) for length in (source, target))
        return count_operations(build(), read, read > 0, written)


def test_products_of_matrices_and_vectors():
    a, b, v = torch.randn(4, 3), torch.randn(3, 5), torch.randn(3)
    assert count_operations(lambda: a @ b) == 4 * 3 * 5
    assert count_operations(lambda: a @ v) == count_operations(torch.addmv, torch.zeros(4), a, v) == 4 * 3
    assert count_operations(lambda: v @ v) == 3
    assert count_operations(lambda: a.expand(2, 4, 3) @ b.expand(2, 3, 5)) == 2 * 4 * 3 * 5
    assert count_operations(torch.einsum, "ij,jk->ik", a, b) == 4 * 3 * 5
    assert count_operations(lambda: torch.zeros(4, 5).addmm_(a, b)) == 4 * 3 * 5
    assert count_operations(lambda: torch.addmm(torch.zeros(4, 5), a, b, out=torch.empty(4, 5))) == 4 * 3 * 5
    stacked = a.expand(2, 4, 3), b.expand(2, 3, 5)
    assert count_operations(lambda: torch.zeros(2, 4, 5).baddbmm_(*stacked)) == 2 * 4 * 3 * 5


def test_what_goes_element_by_element_is_not_counted():
    x = torch.randn(4, 6)
    assert count_operations(lambda: nn.LayerNorm(6)(x * x + torch.lerp(x, x, x)).softmax(-1).sum()) == 0
    assert count_operations(lambda: torch.cat((x, x)).index_put((torch.tensor([0]),), x[0])) == 0


def test_convolutions():
    x = torch.randn(B, 7, 10)
    assert count_operations(nn.Conv1d(7, 4, 3, padding=1), x) == B * 10 * 3 * 7 * 4


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize(("layer", "gates"), [(nn.RNN, 1), (nn.GRU, 3), (nn.LSTM, 4)])
def test_recurrent_layers_fused_or_not(layer, gates, device, gradients):
    with torch.device(device), torch.set_grad_enabled(gradients):
        found = count_operations(layer(6, 8, num_layers=2), torch.zeros(T, B, 6))
    assert found == T * B * gates * (6 * 8 + 8 * 8 + 2 * 8 * 8)


@pytest.mark.parametrize("path", [attend, plain_equations()(attend)])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_attention_fused_or_not(path, device):
    with torch.device(device):
        q, k = torch.zeros(B, 4, T, 8), torch.zeros(B, 4, S, 8)
        mask = torch.ones(B, 1, 1, S, dtype=torch.bool)
        assert count_operations(lambda: path(q, k, k, mask=mask)) == B * 4 * 2 * T * S * 8
        # A causal mask throws half of the products away, but they are made.
        assert count_operations(lambda: path(q, q, q, causal=True)) == B * 4 * 2 * T * T * 8


def test_an_operator_that_hides_products_is_refused():
    x = torch.randn(4, 3)
    with pytest.raises(NotImplementedError, match=r"aten\._cdist_forward.* may hold products"):
        count_operations(torch.cdist, x, x)
    for hidden in (torch.fft.rfft, torch.linalg.eigvalsh, torch.linalg.svd):
        with pytest.raises(NotImplementedError, match="may hold products"):
            count_operations(hidden, x[:3])
    with pytest.raises(NotImplementedError, match="may hold products"):
        longest_chain(nn.LSTM(3, 3), x)


def test_the_longest_chain_is_of_products_that_need_one_another():
    with torch.device("meta"):
        x, w = torch.zeros(4, 4), torch.zeros(4, 4)
        assert longest_chain(lambda: (x @ w) + (x @ w)) == 1
        assert longest_chain(lambda: functional.linear(torch.tanh(x @ w)[1:], w)) == 2
        assert longest_chain(nn.RNN(4, 4), torch.zeros(9, B, 4)) == 9
        assert longest_chain(torch.mul, x, x) == 0


def test_a_chain_through_memory_that_is_written_in_place():
    def steps():
        states = torch.zeros(6, 4, 4, device="meta")
        for t in range(5):
            torch.mm(states[t], states[t], out=states[t + 1])

    assert longest_chain(steps) == 5


PAPER = {
    "source_vocabulary": 30_000, "target_vocabulary": 30_000, "embedding_size": 620, "hidden_size": 1000,
    "maxout_size": 500,
}  # fmt: skip


def test_rnnencdec_at_the_papers_size():
    n, m, vocabulary, length = 1000, 620, 30_000, 30
    encoder = length * 3 * n * (m + n)
    context = n * n + 3 * n * n + 2 * 500 * n  # s_0, and through C and C_o, once for all words
    decoder = length * 3 * n * (m + n)
    output = length * (2 * 500 * (n + m) + 500 * vocabulary)
    assert encoder + context + decoder + output == 795_200_000
    assert forward(lambda: RNNencdec(**PAPER)) == 795_200_000


def test_rnnsearch_at_the_papers_size():
    n, m, vocabulary, length = 1000, 620, 30_000, 30
    encoder = 2 * length * 3 * n * (m + n)
    contexts = length * 3 * n * 2 * n
    alignment = length * n * n + length * 2 * n * n + length**2 * n  # W_a s, U_a h once per source, v_a
    weighing = length**2 * 2 * n
    decoder = n * n + length * 3 * n * (m + n)
    output = length * (2 * 500 * (n + m + 2 * n) + 500 * vocabulary)
    equations = encoder + contexts + alignment + weighing + decoder + output
    assert equations == 1_269_700_000
    # By the equations every c_i = Σ α_ij h_j is multiplied by C. Ours multiplies every h_j by C once and weighs
    # the products, 3n wide; the c_i themselves, 2n wide, are made besides, for the read-out.
    assert forward(lambda: RNNsearch(alignment_size=1000, **PAPER)) == equations + length**2 * 3 * n


def luong(attention, **others):
    sizes = {"embedding_size": 1000, "hidden_size": 1000, "layers": 4, "reverse": True}
    config = ModelConfig.model_validate(sizes | {"attention": attention} | others)
    return lambda: build_model(config, 50_000, 50_000)


def test_luongs_local_p_with_input_feeding_at_the_papers_size():
    n, vocabulary, length, window = 1000, 50_000, 30, 21
    encoder = length * 4 * 8 * n * n
    decoder = length * (4 * 8 * n * n + 4 * n * n)  # the first layer reads h̃ besides
    output = length * (2 * n * n + n * vocabulary)
    predicted = length * (n * n + n)  # p_t
    attention = predicted + length * n * n + length * 2 * window * n  # with W_a h̄, and scores and context
    assert attention == 61_290_000
    assert encoder + decoder + output + attention == 3_661_290_000
    local_p = luong({"score": "general", "alignment": "local-p", "window": 10}, input_feeding=True)
    # That is of 30 source words; our encoder reads the end symbol, too, and annotates the words alone.
    assert forward(local_p, source=31) == 3_661_290_000 + 4 * 8 * n * n
