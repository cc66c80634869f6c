"""Writing on: what was drawn is read once, and predictions are from all that the model may see."""

from collections.abc import Callable

import pytest
import torch

from shared.data.tokenizers import BOS, EOS, PAD, UNK
from shared.decoding.protocol import Reach
from shared.decoding.sampling import continue_text, draw
from tests.decoding.test_sampling import SELECTIONS

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
