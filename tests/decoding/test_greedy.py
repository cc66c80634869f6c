"""Greedy search and sampling: what they choose, symbol by symbol, and how a text is written on."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from shared.data.tokenizers import BOS, EOS, PAD, UNK
from shared.decoding.constraints import Constraints, best_first, length_divisor
from shared.decoding.protocol import Reach
from shared.decoding.sampling import continue_text, draw, greedy_search, most_probable
from tests.decoding.hashed_decoder import END, HashedDecoder, limits, start
from tests.refused import assert_refused


def test_sources_that_ended_leave_the_batch() -> None:
    decoder = HashedDecoder()
    found = greedy_search(decoder, start(6, 6, seed=3, end_bias=1.0), limits([0] * 6, [9] * 6))
    lengths = found.lengths[:, 0]
    assert [rows for rows, _ in decoder.shapes] == [int((lengths > t).sum()) for t in range(int(lengths.max()))]
    assert len(set(lengths.tolist())) > 1


def test_best_drops_the_end_symbol_only() -> None:
    found = greedy_search(HashedDecoder(), start(3, 6, seed=5), limits([2, 2, 9], [8, 8, 3]))
    for row, length, finished in zip(found.best(), found.lengths[:, 0], found.finished[:, 0], strict=True):
        assert len(row) == length - int(finished)
        assert END not in row


def test_attention_asked_of_a_model_without_any() -> None:
    with pytest.raises(ValueError, match="attention"):
        greedy_search(HashedDecoder(with_attention=False), start(1, 5, 0), limits([0], [3]), attention=True)


def test_nan_is_refused() -> None:
    state = start(2, 5, seed=0)
    state.log_probs[1] = torch.nan
    assert_refused("NaN", greedy_search, HashedDecoder(), state, limits([0, 0], [3, 3]))


few_values = st.lists(st.sampled_from([0.0, -0.5, -1.0, -2.0]), min_size=12, max_size=12)


@given(rows=st.lists(few_values, min_size=1, max_size=4), count=st.integers(1, 15))
def test_best_first_ranks_like_a_stable_sort(rows: list[list[float]], count: int) -> None:
    values, indices = best_first(torch.tensor(rows), count)
    for row, row_values, row_indices in zip(rows, values.tolist(), indices.tolist(), strict=True):
        expected = sorted(range(len(row)), key=lambda i: (-row[i], i))[:count]
        assert row_indices == expected
        assert row_values == [row[i] for i in expected]


def test_best_first_puts_the_impossible_last() -> None:
    values, indices = best_first(torch.tensor([[-torch.inf, -3.0, -torch.inf, -1.0, -torch.inf]]), 3)
    assert values.tolist() == [[-1.0, -3.0, -torch.inf]]
    assert indices[0, :2].tolist() == [3, 1]


def test_restrict_rules_out_symbols_and_early_ends() -> None:
    constraints = Constraints(0, 2, 1, torch.tensor([5, 2, 0]), torch.tensor([9, 9, 9]), forbidden=(4,))
    restricted = constraints.restrict(torch.zeros(2, 3, 6), torch.tensor([0, 2]), length=3)
    impossible = restricted.isinf().all(dim=1).tolist()  # the same for all beams
    assert impossible == [[True, True, True, False, True, False], [True, True, False, False, True, False]]
    assert torch.equal(restricted.isinf().any(dim=1), restricted.isinf().all(dim=1))


def test_restrict_returns_float32_and_spares_an_end_symbol_that_is_also_padding() -> None:
    constraints = Constraints(0, 1, 1, torch.tensor([0]), torch.tensor([9]))
    restricted = constraints.restrict(torch.zeros(1, 1, 3, dtype=torch.bfloat16), torch.tensor([0]), length=0)
    assert restricted.dtype == torch.float32
    assert restricted.tolist() == [[[-torch.inf, 0.0, 0.0]]]


def test_length_divisors_by_hand() -> None:
    length = torch.tensor([1, 7, 13])
    assert length_divisor(length, "none", 0.6).tolist() == [1, 1, 1]
    assert length_divisor(length, "mean", 0.6).tolist() == [1, 7, 13]
    assert length_divisor(length, "gnmt", 1.0).tolist() == pytest.approx([1, 2, 3])
    assert length_divisor(length, "gnmt", 0.5).tolist() == pytest.approx([1, 2**0.5, 3**0.5])
    assert length_divisor(length, "gnmt", 0.0).tolist() == [1, 1, 1]


DRAWS = 3000
LOG_PROBS = torch.tensor([-math.inf, 1.0, 0.2, 0.9, -0.4, 0.5]).log_softmax(0)  # the first may not come
SELECTIONS = [
    {}, {"temperature": 0.5}, {"temperature": 2.0}, {"top_k": 2}, {"top_p": 0.7}, {"temperature": 2.0, "top_p": 0.5},
    {"temperature": 1.5, "top_k": 2, "top_p": 0.6},
]  # fmt: skip


def draws(seed: int, **selection) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return draw(LOG_PROBS.expand(DRAWS, -1), generator=generator, **selection)[:, 0].tolist()


def probabilities(temperature: float = 1.0, top_k: int = 99, top_p: float = 1.0) -> dict[int, float]:
    """Each symbol's probability, from the definitions."""
    weights = {s: math.exp(x / temperature) for s, x in enumerate(LOG_PROBS.tolist()) if x > -math.inf}
    ranked = sorted(weights, key=weights.__getitem__, reverse=True)[:top_k]
    total, chosen = sum(weights[s] for s in ranked), []
    while sum(weights[s] for s in chosen) < top_p * total * (1 - 1e-9):
        chosen.append(ranked.pop(0))
    return {s: weights[s] / sum(weights[s] for s in chosen) for s in chosen}


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_frequencies_are_the_probabilities(selection):
    """A right sampler fails one seed in 10,000 for each selection; the seeds are fixed."""
    expected, found = probabilities(**selection), draws(seed=1, **selection)
    assert set(found) <= set(expected)  # nothing from outside the selected symbols
    counts = [found.count(symbol) for symbol in expected]
    assert chisquare(counts, [DRAWS * p for p in expected.values()]).pvalue > 1e-4
    if selection:  # and the test is able to tell a selection from none
        plain = probabilities()
        others = [DRAWS * plain[symbol] / sum(plain[s] for s in expected) for symbol in expected]
        assert len(expected) < len(plain) or chisquare(counts, others).pvalue < 1e-6


@given(logits=st.lists(st.sampled_from([0.0, -1.0, -1.5, -2.0, -4.0]), min_size=5, max_size=5),
       k=st.integers(1, 7), p=st.sampled_from([0.1, 0.5, 0.9, 1.0]))  # fmt: skip
@settings(max_examples=60)
def test_the_most_probable_symbols_are_the_fewest(logits: list[float], k: int, p: float) -> None:
    selected = most_probable(torch.tensor([logits]), top_k=k, top_p=p)[0]
    ranked = sorted(range(5), key=lambda s: (-logits[s], s))[:k]
    weights = torch.tensor(logits)[ranked].double().softmax(0).tolist()
    enough = next(n for n in range(1, len(ranked) + 1) if sum(weights[:n]) >= p - 1e-9)
    assert selected.isfinite().nonzero()[:, 0].tolist() == sorted(ranked[:enough])
    assert selected[selected.isfinite()].tolist() == [logits[s] for s in sorted(ranked[:enough])]


@pytest.mark.parametrize("selection", [{"temperature": 1e-6}, {"top_k": 1}, {"top_p": 1e-6}], ids=str)
def test_in_the_limit_it_is_the_most_probable_symbol(selection):
    assert {*draws(seed=0, **selection)} == {1}


@pytest.mark.parametrize("selection", [{}, {"top_p": 0.5}, {"top_k": 2}], ids=str)
def test_nan_is_not_drawn(selection):
    assert_refused("NaN", draw, torch.full((2, 5), torch.nan), generator=torch.Generator(), **selection)


VOCABULARY, CELLS = 12, 1009


class HashMemory:
    """A hash of all that a column has read, (B,)."""

    def __init__(self, reach, columns):
        self.reach, self.state = reach, torch.zeros(columns, dtype=torch.long)


class HashedModel:
    """Predictions are looked up in a random table, at a hash of the whole context."""

    def __init__(self, seed=0):
        logits = 2 * torch.randn(CELLS, VOCABULARY, generator=torch.Generator().manual_seed(seed))
        self.table = logits.log_softmax(1)
        self.read = []  # shapes of all inputs

    def memory(self, columns, reach):
        return HashMemory(reach, columns)

    def next_log_probs(self, inputs, memory=None):
        self.read.append(tuple(inputs.shape))
        state = torch.zeros(len(inputs), dtype=torch.long) if memory is None else memory.state
        for symbols in inputs.T:
            state = (state * 31 + symbols + 1) % CELLS
        if memory is not None:
            memory.state = state
        return self.table[state]


def written(*arguments, **settings):
    return continue_text(*arguments, never=(PAD, UNK, BOS), **settings)


def prompts(columns=3, width=5, seed=1):
    return torch.randint(EOS + 1, VOCABULARY, (columns, width), generator=torch.Generator().manual_seed(seed))


def recomputed(model, prompts, length, choose: Callable[[torch.Tensor], torch.Tensor], window=None):
    """Everything, or the last ``window`` symbols, read anew for each symbol."""
    text = prompts
    for _ in range(length):
        log_probs = model.next_log_probs(text if window is None else text[:, -window:]).clone()
        log_probs[:, [PAD, UNK, BOS]] = -torch.inf
        text = torch.cat((text, choose(log_probs)), 1)
    return text[:, prompts.size(1) :]


def generator(seed=3):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
@pytest.mark.parametrize(("reach", "window"), [(Reach(4), None), (Reach(0), 5)])
def test_it_is_sampling_with_all_read_anew(selection, reach, window):
    found = written(HashedModel(), prompts(), reach, length=30, generator=generator(), **selection)
    noise = generator()
    expected = recomputed(
        HashedModel(), prompts(), 30, lambda log_probs: draw(log_probs, generator=noise, **selection), window
    )
    assert found.dtype == torch.long
    assert torch.equal(found, expected)


@pytest.mark.parametrize(("memory", "shape"), [(3, (2, 1)), (0, (2, 7))])
def test_with_a_memory_every_symbol_is_read_once_and_without_as_many_as_the_prompt_has(memory, shape):
    model = HashedModel()
    written(model, prompts(2, 7), Reach(memory), length=6, generator=generator())
    assert model.read == [(2, 7)] + [shape] * 5  # the last symbol is never read


def test_the_only_special_symbol_is_the_line_end():
    model = HashedModel()
    model.table[:, :] = torch.tensor([9.0, 9.0, 9.0, 1.0] + [0.0] * (VOCABULARY - 4)).log_softmax(0)
    found = written(model, prompts(40), Reach(1), length=50, generator=generator())
    assert set(found.flatten().tolist()) == set(range(EOS, VOCABULARY))
    found = written(model, prompts(40), Reach(1), length=50, generator=generator(), top_k=1)
    assert set(found.flatten().tolist()) == {EOS}


def test_a_text_depends_on_the_generator_and_its_own_prompt():
    first = written(HashedModel(), prompts(), Reach(1), length=20, generator=generator())
    assert torch.equal(first, written(HashedModel(), prompts(), Reach(1), length=20, generator=generator()))
    other = written(HashedModel(), prompts(), Reach(1), length=20, generator=generator(4))
    assert not torch.equal(first, other)
    changed = prompts()
    changed[0, 0] = EOS + 1 if changed[0, 0] > EOS + 1 else EOS + 2
    again = written(HashedModel(), changed, Reach(1), length=20, generator=generator())
    assert torch.equal(again[1:], first[1:])
    assert not torch.equal(again[0], first[0])
