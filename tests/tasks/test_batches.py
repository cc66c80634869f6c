"""Batches of every kind of task: moved whole, each example once, the same after a restart; and what is not prepared."""

import pytest
import torch

from shared.tasks.captioning.corpus import CaptionBatch, ImageBatch
from shared.tasks.classification.corpus import ClassifiedBatch
from shared.tasks.language.streams import LanguageBatch
from shared.tasks.sequences.batches import SequenceBatch
from shared.tasks.sets.corpus import SetBatch
from shared.tasks.translation.corpus import TranslationBatch

SYMBOLS = torch.tensor([[1, 2, 3], [4, 5, 0]])
READ = SYMBOLS != 0
FEATURES = torch.zeros(2, 4, 5)
BATCHES = [
    (TranslationBatch(SYMBOLS, SYMBOLS, SYMBOLS), 5),
    (ClassifiedBatch((SYMBOLS, SYMBOLS), torch.tensor([1, 0])), 10),
    (CaptionBatch(FEATURES, SYMBOLS, torch.zeros(2, 3, 4)), 5),
    (CaptionBatch(FEATURES, SYMBOLS), 5),
    (ImageBatch(FEATURES, (("a cat", "the cat"), ("a dog",))), 2),
    (LanguageBatch(SYMBOLS, SYMBOLS, torch.where(READ, SYMBOLS, -1), reset=True), 5),
    (SequenceBatch(SYMBOLS, SYMBOLS + 1, READ, READ), 5),
    (SequenceBatch(SYMBOLS, SYMBOLS + 1, READ), 5),
    (SetBatch(FEATURES[:, :3], READ, torch.ones(2, 1)), 5),
]


@pytest.mark.parametrize(("batch", "tokens"), BATCHES)
def test_a_batch_moves_as_a_whole_and_stays_what_it_is(batch, tokens):
    def parts(of):
        values = [part for value in vars(of).values() for part in (value if isinstance(value, tuple) else (value,))]
        return [part for part in values if isinstance(part, torch.Tensor)], [
            part for part in values if not isinstance(part, torch.Tensor)
        ]

    assert batch.tokens == tokens
    moved, rest = parts(batch.to("meta"))
    assert {part.device.type for part in moved} == {"meta"}
    assert [part.shape for part in moved] == [part.shape for part in parts(batch)[0]]
    assert rest == parts(batch)[1]
    assert all(map(torch.equal, *(parts(each)[0] for each in (batch, batch.to("cpu")))))
