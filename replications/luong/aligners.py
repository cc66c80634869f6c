"""Statistical word aligners as variants: the yardstick for alignments made of attention (table 6)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from replications.luong import fast_align
from replications.luong.settings import AlignerConfig
from shared.data.tokenizers import Tokenizer
from shared.errors import ReplicationError
from shared.metrics.alignment import alignment_statistics, parse_pharaoh
from shared.metrics.word_aligner import WordAligner, Words
from shared.tasks.examples import Example, records, write_records
from shared.tasks.replication import Study
from shared.tasks.translation.corpus import ParallelText, PreparedText
from shared.tasks.translation.evaluation import pair_columns
from shared.tasks.translation.settings import TranslationRun
from shared.training.checkpoints import TrainingRecord, load_checkpoint

ALIGNERS: dict[str, type[WordAligner] | type[fast_align.FastAlign]] = {
    "ibm1": WordAligner, "fast_align": fast_align.FastAlign,
}  # fmt: skip


class Aligning(Study):
    """Variants ``model: {aligner: <name>}``.

    An aligner learns from the same encoded training text as the task's networks, so where they read UNK it does too.
    """

    def cannot_run(self, config: TranslationRun) -> str | None:
        """Where systran-align does not exist, fast_align cannot run."""
        if config.checked_model(AlignerConfig).aligner == "ibm1" or fast_align.is_available():
            return None
        return "fast_align needs the package systran-align, which exists for Python 3.11 on Linux x86-64 only"

    def train(
        self, config: TranslationRun, *, prepared: Path, folder: Path, label: str, **run: Any
    ) -> tuple[TrainingRecord, int]:
        """Train; all seeds are the same, and so are the checkpoints: the last iteration fits best."""
        settings, text = config.checked_model(AlignerConfig), PreparedText(prepared)
        pairs = list(word_pairs(text, text.training_split(config.training)))
        valid = list(word_pairs(text, text.split("valid")))
        begin, processor_begin = time.perf_counter(), time.process_time()
        aligner = ALIGNERS[settings.aligner].train(pairs, iterations=settings.iterations)
        seconds, processor_seconds = time.perf_counter() - begin, time.process_time() - processor_begin
        checkpoints = folder / "checkpoints"
        checkpoints.mkdir(parents=True, exist_ok=True)
        state = aligner.state()
        arrays = {name: torch.from_numpy(value) for name, value in state.items() if isinstance(value, np.ndarray)}
        torch.save({**state, **arrays}, checkpoints / "best.ckpt")
        shutil.copyfile(checkpoints / "best.ckpt", checkpoints / "last.ckpt")
        loss = sum(aligner.nll(*pair) for pair in valid) / _target_words(valid)
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
        state = load_checkpoint(trained[0] / "checkpoints" / "last.ckpt")
        arrays = {name: value.numpy() for name, value in state.items() if isinstance(value, torch.Tensor)}
        aligner = ALIGNERS[config.checked_model(AlignerConfig).aligner].from_state({**state, **arrays})
        text = PreparedText(prepared)
        examples = {split: _examples(aligner, text, split) for split in config.corpus.test}
        metrics = write_records(out, examples)
        if not metrics:
            raise ReplicationError(
                f"{config.corpus.dataset} has no gold alignments to judge an aligner by; leave this variant out."
            )
        return metrics

    def descriptions(self, config: TranslationRun) -> Mapping[str, Any]:
        """The token's name; an aligner has neither BLEU nor pieces."""
        return {"signatures": {}, "token": "word"}


def word_pairs(text: PreparedText, split: ParallelText) -> Iterator[tuple[Words, Words]]:
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


def _examples(aligner: WordAligner | fast_align.FastAlign, text: PreparedText, split: str) -> list[Example]:
    columns, gold = pair_columns(*text.lines(split)), text.alignments(split)
    if gold is not None:
        columns["alignment"] = []
        for links, (source, target) in zip(gold, word_pairs(text, text.split(split)), strict=True):
            linked, found = np.zeros((len(target), len(source))), aligner.links(source, target)
            linked[found[:, 1], found[:, 0]] = 1
            columns["alignment"].append(alignment_statistics(linked, parse_pharaoh(links), method="threshold"))
    return records(split, columns)
