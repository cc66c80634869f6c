"""What all papers whose models read running text and say what comes next have in common.

It is what :class:`shared.tasks.replication.Replication` calls a task. A model is a
:class:`shared.decoding.protocol.LanguageModel`; it is built of its settings, the size of the vocabulary and None.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from shared.data.tokenizers import EOS
from shared.tasks.language.characters import CharactersConfig
from shared.tasks.language.corpus import PreparedLanguage, prepare
from shared.tasks.language.evaluation import describe, evaluate
from shared.tasks.language.settings import LanguageRun
from shared.tasks.language.streams import LanguageBatch

__all__ = ["describe", "evaluate", "module", "open_data", "prepare", "random_batch"]


def open_data(config: LanguageRun, prepared: Path) -> PreparedLanguage:
    """What the prepare stage left in a folder."""
    return PreparedLanguage.load(prepared)


def random_batch(config: LanguageRun) -> tuple[LanguageBatch, tuple[int, None]]:
    """A batch of random symbols as large as in training, and the size of the vocabulary.

    It is without ``reset``, so that the second batch finds the first one in the memory.
    """
    tokenizer, batch = config.corpus.tokenizer, config.training.batch
    # The number of characters is known from the data only.
    symbols = EOS + 1 + 256 if isinstance(tokenizer, CharactersConfig) else tokenizer.size
    read = torch.randint(EOS + 1, symbols, (batch.sentences, batch.length + 1))
    places = torch.arange(batch.length).expand(batch.sentences, -1)
    return LanguageBatch(read[:, :-1], read[:, 1:], places, reset=False), (symbols, None)


def module(model: nn.Module, config: LanguageRun, text: object) -> nn.Module:
    """The Lightning module."""
    from shared.tasks.language.module import LanguageModule

    return LanguageModule(model, config.training)
