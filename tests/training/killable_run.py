"""A small training run that can be killed at a chosen point, in a process of its own.

The program is a server: it imports torch and Lightning once, then forks a child for each line of JSON on its standard
input, ``{"folder": …, "kill": "train:17", …}``, and answers with ``{"status": …, "output": …}`` when the child has
ended. A status is an exit code, or minus the number of the signal that ended the child.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from replications.bahdanau.model import RNNsearch
from shared.data.batching import endless_batches, epoch_batches
from shared.data.ragged import RaggedArray
from shared.errors import ReplicationError
from shared.tasks.captioning.corpus import CaptionedSplit
from shared.tasks.captioning.module import CaptioningModule
from shared.tasks.captioning.settings import CaptioningTraining
from shared.tasks.classification.corpus import ClassifiedText
from shared.tasks.classification.module import ClassificationModule
from shared.tasks.classification.settings import ClassificationTraining
from shared.tasks.language.module import LanguageModule
from shared.tasks.language.settings import LanguageTraining
from shared.tasks.language.streams import Stream
from shared.tasks.sequences.module import CountingSequenceModule
from shared.tasks.sequences.proteins import Proteins
from shared.tasks.sequences.settings import SequenceTraining
from shared.tasks.translation.corpus import ParallelText
from shared.tasks.translation.module import TranslationModule
from shared.tasks.translation.settings import TranslationTraining
from shared.training.checkpoints import TrainingRecord
from shared.training.module import TrainingModule
from shared.training.progress import Report
from shared.training.protocol import TrainingBatch
from shared.training.run import train_run
from tests.tasks.captioning.toy_captioner import LONGEST, ToyCaptioner, image_batches, random_pictures, texts
from tests.tasks.classification.toy_classifier import VOCABULARY, ToyClassifier, random_texts
from tests.tasks.language.toy_language_model import ToyLanguageModel, random_stream
from tests.tasks.sequences.toy_sequence_model import ToySequenceModel, random_proteins

BATCHES_IN_AN_EPOCH = 10
VALIDATE_EVERY = 6


def random_text(pairs: int, seed: int) -> ParallelText:
    """Pairs of a random sequence and its reverse."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(2, 7, pairs)
    lines = [generator.integers(4, VOCABULARY, length).tolist() for length in lengths]
    return ParallelText(RaggedArray.pack(lines), RaggedArray.pack([line[::-1] for line in lines]), lengths)


Split = ParallelText | ClassifiedText | CaptionedSplit | Proteins


def lengths(text: Split) -> tuple[np.ndarray, ...]:
    """What batches are sorted by."""
    return (text.target.lengths, text.source.lengths) if isinstance(text, ParallelText) else text.lengths


class Killer:
    """Sends a signal when a point is reached for the given time: to its own process, or to all of its parent's group,
    and then waits for what the parent does about it. It does so once, if it can leave a ``mark``."""

    def __init__(self, kill: str, number: int, victim: str = "self", mark: str | None = None) -> None:
        self._mark = Path(mark) if mark else None
        self._point, _, count = kill.partition(":")
        self._count, self._signal, self._victim, self._reached = int(count or 1), number, victim, Counter[str]()

    def reach(self, point: str, trainer: Any) -> None:
        self._reached[point] += 1
        if (point, self._reached[point]) != (self._point, self._count):
            return
        if self._mark is not None:
            if self._mark.exists():
                return
            self._mark.touch()
        if self._victim == "self":
            os.kill(os.getpid(), self._signal)
            return
        parent = multiprocessing.parent_process()
        assert parent is not None
        (os.killpg if self._victim == "group" else os.kill)(parent.pid, self._signal)
        end = time.monotonic() + 60
        while not trainer.received_sigterm and time.monotonic() < end:
            time.sleep(0.02)


class Killable(TrainingModule):
    """Makes a module have points to be killed at; the loss of update ``poison`` is not a number."""

    def __init__(self, *arguments: Any, killer: Killer, poison: int) -> None:
        super().__init__(*arguments)
        self._killer, self._poison = killer, poison

    def training_step(self, batch: TrainingBatch, batch_idx: int) -> torch.Tensor:
        self._killer.reach("train", self.trainer)
        loss = super().training_step(batch, batch_idx)
        return loss * float("nan") if self.global_step + 1 == self._poison else loss

    def on_train_batch_end(self, *_: Any) -> None:
        self._killer.reach("trained", self.trainer)

    def validation_step(self, batch: TrainingBatch, batch_idx: int) -> None:
        self._killer.reach("valid", self.trainer)
        super().validation_step(batch, batch_idx)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self._killer.reach("save", self.trainer)
        super().on_save_checkpoint(checkpoint)

    def on_train_end(self) -> None:
        self._killer.reach("end", self.trainer)


class KillableTranslation(Killable, TranslationModule):
    """Of a model that translates."""


class KillableClassification(Killable, ClassificationModule):
    """Of a classifier."""


class KillableCaptioning(Killable, CaptioningModule):
    """Of a model that describes pictures."""

    def __init__(self, *arguments: Any, **points: Any) -> None:
        super().__init__(*arguments, texts, LONGEST, **points)


class KillableLanguage(Killable, LanguageModule):
    """Of a model that reads running text."""


class KillableSequences(Killable, CountingSequenceModule):
    """Of a model of separate sequences."""


def in_batches(split: Split) -> list[TrainingBatch]:
    """A split of validation, sorted by length."""
    order = epoch_batches(lengths(split)[:1], pool=9, seed=0, epoch=0, sentences=10)
    return [split.batch(indices) for indices in order]


def ordered(train: Split | Stream, config: Any) -> Callable[[int], Iterator[TrainingBatch]]:
    """From a batch's number to that batch and all that follow it."""
    if isinstance(train, Stream):
        columns, length = config.batch.sentences, config.batch.length
        return lambda start: train.training_batches(columns=columns, length=length, seed=5, start=start)
    batch = config.batch.model_dump() | {"pool": 3}
    order = partial(endless_batches, lengths(train), seed=5, **batch)
    if isinstance(train, Proteins):
        return lambda start: (train.batch(chosen, (5, i)) for i, chosen in enumerate(order(start=start), start))
    return lambda start: map(train.batch, order(start=start))


def translation() -> tuple[type[Killable], nn.Module, Split, list[TrainingBatch]]:
    """A small recurrent model, the pairs that it is trained on, and batches for validation."""
    model = RNNsearch(
        source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY, embedding_size=6, hidden_size=8,
        alignment_size=8, maxout_size=5, dropout=0.3, init_std=0.3,
    )  # fmt: skip
    train, valid = random_text(8 * BATCHES_IN_AN_EPOCH, seed=1), random_text(20, seed=2)
    return KillableTranslation, model, train, in_batches(valid)


def classification() -> tuple[type[Killable], nn.Module, Split, list[TrainingBatch]]:
    """Likewise a small classifier and its texts."""
    train, valid = random_texts(8 * BATCHES_IN_AN_EPOCH, seed=1), random_texts(20, seed=2)
    return KillableClassification, ToyClassifier(dropout=0.3), train, in_batches(valid)


def captioning() -> tuple[type[Killable], nn.Module, Split, list[TrainingBatch]]:
    """Likewise a small captioner and its pictures, with two captions each."""
    train, valid = random_pictures(4 * BATCHES_IN_AN_EPOCH, seed=1), random_pictures(20, seed=2)
    return KillableCaptioning, ToyCaptioner(dropout=0.3), train, [*in_batches(valid), *image_batches(valid, 8)]


def language() -> tuple[type[Killable], nn.Module, Stream, list[TrainingBatch]]:
    """Likewise a small language model and its text, of which a pass over segments of 4 x 5 symbols has ten."""
    train, valid = random_stream(20 * BATCHES_IN_AN_EPOCH + 7, seed=1), random_stream(50, seed=2)
    batches = list(valid.evaluation_batches(columns=2, length=8, warm_up=3))
    return KillableLanguage, ToyLanguageModel(dropout=0.3), train, batches


def sequences() -> tuple[type[Killable], nn.Module, Split, list[TrainingBatch]]:
    """Likewise a small model of sequences, and some of which letters are masked."""
    train, valid = random_proteins(8 * BATCHES_IN_AN_EPOCH, seed=1), random_proteins(20, seed=2)
    return KillableSequences, ToySequenceModel(dropout=0.3), train, in_batches(valid)


KINDS = {
    "translation": translation, "classification": classification, "captioning": captioning, "language": language,
    "sequences": sequences,
}  # fmt: skip


SETTINGS: dict[str, Any] = {
    "translation": TranslationTraining, "classification": ClassificationTraining, "captioning": CaptioningTraining,
    "language": LanguageTraining, "sequences": SequenceTraining,
}  # fmt: skip


def run(
    folder: str, *, kind: str = "translation", kill: str = "", number: int = signal.SIGKILL, poison: int = 0,
    fingerprint: str = "same", seed: int = 7, victim: str = "self", mark: str | None = None,
    progress: Report | None = None, **changed: Any,
) -> TrainingRecord:  # fmt: skip
    """Train in ``folder``; ``changed`` are settings of the kind's training."""
    settings = {
        "updates": 30, "batch": {"sentences": 8}, "optimizer": {"name": "adam", "learning_rate": 0.02},
        "schedule": {"name": "cosine", "warmup": 5}, "validate_every": VALIDATE_EVERY,
    }  # fmt: skip
    config = SETTINGS[kind].model_validate(settings | changed)
    torch.manual_seed(3)
    module, model, train, valid = KINDS[kind]()
    return train_run(
        module(model, config, killer=Killer(kill, number, victim, mark), poison=poison), config,
        batches=ordered(train, config), valid=valid, folder=Path(folder), seed=seed, fingerprint=fingerprint,
        label="run", progress=progress,
    )  # fmt: skip


def child(request: dict[str, Any], output: int) -> None:
    """Run and end this process, all that is printed going to the file descriptor ``output``."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    status = 1
    try:
        print(json.dumps(vars(run(**request))))
        status = 0
    except ReplicationError as error:
        print(f"error: {error}")
        status = 2
    except KeyboardInterrupt:
        status = 130
    except SystemExit as exit_:
        status = int(str(exit_.code))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def main() -> None:
    """Serve until the standard input ends."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    torch.set_num_threads(1)
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as output:
            process = os.fork()
            if process == 0:
                child(json.loads(line), output.fileno())
            status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            output.seek(0)
            print(json.dumps({"status": status, "output": output.read()}), flush=True)


if __name__ == "__main__":
    main()
