"""Binds a language model to the pipeline: prepare, train, evaluate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import nn

from shared.data.tokenizers import EOS
from shared.tasks.language.characters import CharactersConfig
from shared.tasks.language.corpus import PreparedLanguage, prepare_language
from shared.tasks.language.evaluation import evaluate_language
from shared.tasks.language.settings import LanguageCorpusConfig, LanguageRun
from shared.tasks.language.streams import LanguageBatch
from shared.tasks.networks import ModelConfigT, Networks, ready

if TYPE_CHECKING:
    from shared.tasks.language.module import LanguageModule
    from shared.tasks.language.settings import LanguageTraining


@dataclass(frozen=True)
class LanguageModelling(Networks[ModelConfigT, LanguageRun, PreparedLanguage]):
    """A replication whose model reads running text and says what comes next.

    Attributes:
        model_config: checks a variant's ``model`` section.
        build_model: from that section, the size of the vocabulary and None to a model that is a
            :class:`shared.decoding.language_model.LanguageModel`.
    """

    kind: ClassVar[str] = "language"

    def prepare(self, corpus: LanguageCorpusConfig, dataset: Path, out: Path) -> Mapping[str, object]:
        """Tokenise and encode."""
        return prepare_language(corpus, dataset, out)

    def evaluate(
        self, config: LanguageRun, *, prepared: Path, trained: Sequence[Path], out: Path
    ) -> Mapping[str, float]:
        """Score every symbol of the test splits with one trained seed; there are no ensembles."""
        text = self._open(config, prepared)
        (model,) = self._trained(config, text, trained)
        return evaluate_language(ready(model), text, config, out)

    def descriptions(self, config: LanguageRun, prepared: Path) -> Mapping[str, Any]:
        """What losses are reported per."""
        return {"token": self._open(config, prepared).unit}

    def _open(self, config: LanguageRun, prepared: Path) -> PreparedLanguage:
        return PreparedLanguage.load(prepared)

    def _sizes(self, config: LanguageRun, text: PreparedLanguage) -> tuple[int, None]:
        return len(text.tokenizer), None

    def _batches(
        self, config: LanguageRun, text: PreparedLanguage, seed: int
    ) -> Callable[[int], Iterator[LanguageBatch]]:
        stream, sizes = text.split("train"), _sizes(config.training)
        stream.epoch_batches(**sizes)  # refuses a text that is too short
        return lambda start: stream.training_batches(seed=seed, start=start, **sizes)

    def _validation(self, config: LanguageRun, text: PreparedLanguage) -> list[LanguageBatch]:
        # As large as in training: the settings of evaluation must not decide anything that is trained.
        return list(text.split("valid").evaluation_batches(**_sizes(config.training)))

    def _module(self, model: nn.Module, config: LanguageRun, text: object) -> LanguageModule:
        from shared.tasks.language.module import LanguageModule

        return LanguageModule(model, config.training)

    def _full_batch(self, config: LanguageRun) -> tuple[LanguageBatch, tuple[int, None]]:
        """Without ``reset``, so that the second batch finds the first one in the memory."""
        tokenizer, sizes = config.corpus.tokenizer, _sizes(config.training)
        # The number of characters is known from the data only.
        symbols = EOS + 1 + 256 if isinstance(tokenizer, CharactersConfig) else tokenizer.size
        read = torch.randint(EOS + 1, symbols, (sizes["columns"], sizes["length"] + 1))
        places = torch.arange(sizes["length"]).expand(sizes["columns"], -1)
        return LanguageBatch(read[:, :-1], read[:, 1:], places, reset=False), (symbols, None)


def _sizes(training: LanguageTraining) -> dict[str, int]:
    """Columns and symbols of a batch."""
    return {"columns": training.batch.sentences, "length": training.batch.length}
