"""Statistical word aligners as variants of a translation paper: the yardstick for alignments made of attention."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

import shared.tasks.translation.measures  # noqa: F401  registers what evaluation computes
from shared.data.tokenizers import Tokenizer
from shared.errors import ReplicationError
from shared.metrics import fast_align
from shared.metrics.alignment import Links, alignment_statistics, parse_pharaoh
from shared.metrics.registry import corpus_values
from shared.metrics.word_aligner import WordAligner, Words
from shared.tasks.examples import Example, write_examples
from shared.tasks.replication import Study
from shared.tasks.translation.corpus import ParallelText, PreparedText
from shared.tasks.translation.settings import AlignerConfig, TranslationRun
from shared.training.checkpoints import TrainingRecord, load_checkpoint
from shared.training.progress import Report


class Aligner(Protocol):
    """The interface of an aligner, before and after training."""

    @classmethod
    def train(cls, pairs: Sequence[tuple[Words, Words]], *, iterations: int = 5) -> Aligner:
        """Learn from the words of sentence pairs."""
        ...

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Aligner:
        """The aligner whose :meth:`state` this is."""
        ...

    def state(self) -> dict[str, Any]:
        """Arrays and lists to be kept."""
        ...

    @property
    def parameters(self) -> int:
        """How many numbers it has learned."""
        ...

    def links(self, source: Words, target: Words) -> Links:
        """(N, 2) source and target positions that belong together."""
        ...

    def nll(self, source: Words, target: Words) -> float:
        """Negative log-likelihood of the target given the source, nats."""
        ...


KINDS: dict[str, type[Aligner]] = {"ibm1": WordAligner, "fast_align": fast_align.FastAlign}


class AlignerRunner(Study):
    """Trains and judges an aligner: variants ``model: {aligner: <kind>}``.

    It learns from the same encoded training text as the task's networks, so where they read UNK it does too.
    """

    def cannot_run(self, config: TranslationRun) -> str | None:
        """Where systran-align does not exist, fast_align cannot run."""
        if config.checked_model(AlignerConfig).aligner == "ibm1" or fast_align.is_available():
            return None
        return "fast_align needs the package systran-align, which exists for Python 3.11 on Linux x86-64 only"

    def train(
        self, config: TranslationRun, *, prepared: Path, folder: Path, seed: int, fingerprint: str, label: str,
        progress: Report | None = None,
    ) -> tuple[TrainingRecord, int]:  # fmt: skip
        """Train; all seeds are the same."""
        settings, text = config.checked_model(AlignerConfig), PreparedText.load(prepared)
        pairs = list(_word_pairs(text, text.training_split(config.training)))
        begin, processor_begin = time.perf_counter(), time.process_time()
        aligner = KINDS[settings.aligner].train(pairs, iterations=settings.iterations)
        seconds, processor_seconds = time.perf_counter() - begin, time.process_time() - processor_begin
        _save(aligner.state(), folder / "checkpoints")
        loss = _nll_per_word(aligner, list(_word_pairs(text, text.split("valid"))))
        print(f"{label}: {settings.iterations} iterations, {seconds:.0f} s, valid loss {loss:.3f} per word")
        record = TrainingRecord(
            updates=settings.iterations, precision="double", stopped_because="all iterations were made",
            wall_seconds=seconds, processor_seconds=processor_seconds,
            tokens_per_second=settings.iterations * _target_words(pairs) / seconds,
            best_valid_loss=loss, best_update=settings.iterations,
        )  # fmt: skip
        return record, aligner.parameters

    def evaluate(
        self, config: TranslationRun, *, prepared: Path, trained: Sequence[Path], out: Path
    ) -> Mapping[str, float]:
        """Judge the links on test splits that have gold alignments.

        Raises:
            ReplicationError: no test split has.
        """
        state = _load(trained[0] / "checkpoints" / "last.ckpt")
        aligner = KINDS[config.checked_model(AlignerConfig).aligner].from_state(state)
        text, examples = PreparedText.load(prepared), []
        metrics: dict[str, float] = {}
        for number, split in enumerate(config.corpus.test):
            records = _judge_split(aligner, text, split)
            prefix = "" if number == 0 else f"{split}."
            metrics |= {prefix + name: value for name, value in corpus_values(records).items()}
            examples += records
        if not metrics:
            raise ReplicationError(
                f"{config.corpus.dataset} has no gold alignments to judge an aligner by; leave this variant out."
            )
        out.mkdir(parents=True, exist_ok=True)
        write_examples(out, examples)
        return metrics

    def descriptions(self, config: TranslationRun) -> Mapping[str, Any]:
        """The token's name; an aligner has neither BLEU nor pieces."""
        return {"signatures": {}, "token": "word"}


def _judge_split(aligner: Aligner, text: PreparedText, split: str) -> list[Example]:
    (sources, references), gold = text.lines(split), text.alignments(split)
    records = []
    for i, (source, target) in enumerate(_word_pairs(text, text.split(split))):
        record: Example = {
            "id": f"{split}-{i}", "split": split, "source": sources[i], "reference": references[i],
            "source_length": len(sources[i].split()), "reference_length": len(references[i].split()),
        }  # fmt: skip
        if gold is not None:
            linked = np.zeros((len(target), len(source)))
            links = aligner.links(source, target)
            linked[links[:, 1], links[:, 0]] = 1
            record["alignment"] = alignment_statistics(linked, parse_pharaoh(gold[i]), method="threshold")
        records.append(record)
    return records


def _word_pairs(text: PreparedText, split: ParallelText) -> Iterator[tuple[Words, Words]]:
    """Both sides of each pair as words, in the numbering of gold alignments."""
    for i in range(len(split)):
        yield _words(text.source, split.source[i].tolist()), _words(text.target, split.target[i].tolist())


def _words(tokenizer: Tokenizer, symbols: Sequence[int]) -> Words:
    words: list[str] = []
    for piece, word in zip(tokenizer.pieces(symbols), tokenizer.words(symbols), strict=True):
        if word == len(words):
            words.append("")
        words[word] += piece
    return words


def _target_words(pairs: Sequence[tuple[Words, Words]]) -> int:
    return sum(len(target) for _, target in pairs)


def _nll_per_word(aligner: Aligner, pairs: Sequence[tuple[Words, Words]]) -> float:
    return sum(aligner.nll(*pair) for pair in pairs) / _target_words(pairs)


def _save(state: Mapping[str, Any], folder: Path) -> None:
    """Write the checkpoints ``best`` and ``last``, which are the same: the last iteration fits best."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {name: torch.from_numpy(value) for name, value in state.items() if isinstance(value, np.ndarray)}
    torch.save({**state, **arrays}, folder / "best.ckpt")
    shutil.copyfile(folder / "best.ckpt", folder / "last.ckpt")


def _load(path: Path) -> dict[str, Any]:
    state = load_checkpoint(path)
    return {name: value.numpy() if isinstance(value, torch.Tensor) else value for name, value in state.items()}
