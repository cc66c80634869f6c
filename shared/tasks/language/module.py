"""How models that read running text and say what comes next are trained: their loss, and what they remember.

A model is a :class:`shared.decoding.protocol.LanguageModel`; it is built of its settings, the size of the vocabulary
and None.
"""

from __future__ import annotations

from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from shared.data.tokenizers import EOS, CharactersConfig
from shared.decoding.protocol import LanguageModel, Memory, Reach
from shared.tasks.language.corpus import LanguageBatch
from shared.tasks.language.settings import LanguageRun, LanguageTraining
from shared.training.module import TrainingModule
from shared.training.processes import Group

State = dict[str, Tensor]

MEMORY = "memory"  # in a checkpoint
COLUMNS = 1  # their axis in what a memory holds


class LanguageModule(TrainingModule):
    """Training of a :class:`shared.decoding.protocol.LanguageModel` on a text, one segment after the other.

    A batch continues the one before it unless it has ``reset``, so that what the model remembers is part of the state
    of training: checkpoints hold it. Validation, with a memory of its own that reaches as far back, reads its batches
    as one text likewise.

    Logs ``train_loss`` (nats per symbol of those trained on) and ``valid_loss`` (nats per symbol).
    """

    config: LanguageTraining
    continues: ClassVar[bool] = True

    def __init__(self, model: nn.Module, config: LanguageTraining) -> None:
        super().__init__(model, config)
        self._memory: Memory | None = None
        self._valid_memory: Memory | None = None
        self._restored: State | None = None  # for the first batch after a checkpoint
        self._group = Group.here()

    def items(self, batch: LanguageBatch) -> int:
        """Targets that the loss counts."""
        return int(self._counted(batch).sum())

    def training_step(self, batch: LanguageBatch, batch_idx: int) -> Tensor:
        """Mean loss of one segment of every column, over all its symbols or its last half, as configured."""
        self._memory = self._remembering(self._memory, batch, self._restored)
        mask = self._counted(batch)
        loss = self._nats(batch, mask, self._memory).sum() / mask.sum()
        self.log("train_loss", loss.detach(), batch_size=len(batch.inputs))
        return loss

    def validation_step(self, batch: LanguageBatch, batch_idx: int) -> None:
        """Collect the segment's summed loss."""
        self._valid_memory = self._remembering(self._valid_memory, batch)
        nats = self._nats(batch, batch.mask, self._valid_memory)
        self.collect({"loss": nats.double().sum()}, batch.tokens)

    def on_validation_epoch_end(self) -> None:
        """Log the mean loss of the split, and forget the text."""
        super().on_validation_epoch_end()
        self._valid_memory = None

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Save the memory of the training text, or the restored memory if no batch was read since the restart.

        It has the columns of all processes that share the run; each of them has to call this.
        """
        held = self._restored if self._memory is None else self._memory.state_dict()
        checkpoint[MEMORY] = held and {name: self._group.join(part, COLUMNS) for name, part in held.items()}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep this process's columns of the saved memory for the first batch, which determines their number."""
        held = checkpoint[MEMORY]
        self._restored = held and {name: self._group.part(whole, COLUMNS) for name, whole in held.items()}

    def _remembering(self, memory: Memory | None, batch: LanguageBatch, state: State | None = None) -> Memory:
        """The memory for reading ``batch``; a new memory starts from ``state`` if given."""
        if memory is None:
            memory = cast(LanguageModel, self.model).memory(len(batch.inputs), Reach(self.config.memory))
            if state is not None:
                memory.load_state_dict({name: part.to(batch.inputs.device) for name, part in state.items()})
        if batch.reset:
            memory.clear()
        return memory

    def _counted(self, batch: LanguageBatch) -> Tensor:
        """(B, T) true at the targets that are trained on."""
        mask = batch.mask
        if self.config.loss_on == "last_half":
            mask[:, : mask.size(1) // 2] = False
        return mask

    def _nats(self, batch: LanguageBatch, mask: Tensor, memory: Memory) -> Tensor:
        """(B, T) float32 nats of the targets, zero outside of the mask."""
        nats: Tensor = self.model(batch.inputs, batch.targets, memory)
        return nats.float().masked_fill(~mask, 0.0)


def module(model: nn.Module, config: LanguageRun, text: object) -> nn.Module:
    """The module that is trained."""
    return LanguageModule(model, config.training)


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
