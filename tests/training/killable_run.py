"""A small training run that can be killed at a chosen point, in a process of its own.

The program is a server: it imports torch and Lightning once, then forks a child for each line of JSON on its standard
input, ``{"folder": …, "kill": "train:17", …}``, and answers with ``{"status": …, "output": …}`` when the child has
ended. A status is an exit code, or minus the number of the signal that ended the child.
"""

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
from torch.optim import Optimizer

from replications.bahdanau.model import RNNsearch
from shared.data.batching import endless_batches, epoch_batches
from shared.data.ragged import RaggedArray
from shared.errors import ReplicationError
from shared.tasks.captioning.module import CaptioningModule
from shared.tasks.captioning.settings import CaptioningTraining
from shared.tasks.classification.module import ClassificationModule
from shared.tasks.classification.settings import ClassificationTraining
from shared.tasks.language.corpus import Stream
from shared.tasks.language.module import LanguageModule
from shared.tasks.language.settings import LanguageTraining
from shared.tasks.sequences.batches import Sequences
from shared.tasks.sequences.module import SequenceModule
from shared.tasks.sequences.settings import VOCABULARY as LETTERS
from shared.tasks.sequences.settings import SequenceTraining
from shared.tasks.translation.corpus import ParallelText
from shared.tasks.translation.module import TranslationModule
from shared.tasks.translation.settings import TranslationTraining
from shared.training.checkpoints import TrainingRecord
from shared.training.module import TrainingModule
from shared.training.run import train_run
from tests.tasks.captioning.toy_captioner import LONGEST, ToyCaptioner, image_batches, random_pictures, texts
from tests.tasks.classification import toy_classifiers
from tests.tasks.classification.toy_classifiers import CLASSES, VOCABULARY
from tests.tasks.language import toy_language_models
from tests.tasks.sequences import toy_sequence_models

VALIDATE_EVERY = 6
EXAMPLES = 80
"""Ten batches, which are an epoch."""


class Killer:
    """Sends a signal when a point is reached for the given time: to its own process, or to all of its parent's group,
    and then waits for what the parent does about it. It does so once, if it can leave a ``mark``."""

    def __init__(self, kill: str, number: int, victim: str = "self", mark: str | None = None) -> None:
        self._mark = Path(mark) if mark else None
        self._point, _, count = kill.partition(":")
        self._count, self._signal, self._victim, self._reached = int(count or 1), number, victim, Counter[str]()

    def reach(self, point: str) -> None:
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
        time.sleep(60)  # the parent ends this process


class Killable(TrainingModule):
    """Makes a module have points to be killed at; the loss of update ``poison`` is not a number."""

    killer: Killer
    poison: int

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        self.killer.reach("train")
        loss = super().training_step(batch, batch_idx)
        return loss * float("nan") if self.updates + 1 == self.poison else loss

    def make_update(self, optimizer: Optimizer) -> bool:
        made = super().make_update(optimizer)
        self.killer.reach("trained")
        return made

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.killer.reach("valid")
        super().validation_step(batch, batch_idx)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.killer.reach("save")  # the best one was saved before
        super().on_save_checkpoint(checkpoint)


def random_pairs(count: int, seed: int) -> ParallelText:
    """Pairs of a random sequence and its reverse."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(2, 7, count)
    lines = [generator.integers(4, VOCABULARY, length).tolist() for length in lengths]
    return ParallelText(RaggedArray.pack(lines), RaggedArray.pack([line[::-1] for line in lines]), lengths)


def translator() -> RNNsearch:
    """A small recurrent model."""
    return RNNsearch(
        source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY, embedding_size=6, hidden_size=8,
        alignment_size=8, maxout_size=5, dropout=0.3, init_std=0.3,
    )  # fmt: skip


def of_pictures(model: Any, config: Any) -> CaptioningModule:
    """The captioner's module, which also writes captions."""
    return CaptioningModule(model, config, texts, LONGEST)


# Kind: settings, module, model, what is trained on and validated with.
KINDS: dict[str, tuple[Any, ...]] = {
    "translation": (TranslationTraining, TranslationModule, translator, random_pairs, EXAMPLES),
    "classification": (
        ClassificationTraining, ClassificationModule,
        partial(toy_classifiers.Toy, toy_classifiers.ToyConfig(size=6, dropout=0.3), VOCABULARY, CLASSES),
        toy_classifiers.random_texts, EXAMPLES,
    ),
    "captioning": (CaptioningTraining, of_pictures, partial(ToyCaptioner, dropout=0.3), random_pictures, EXAMPLES // 2),
    "language": (
        LanguageTraining, LanguageModule,
        partial(toy_language_models.Toy, toy_language_models.ToyConfig(size=16, dropout=0.3), VOCABULARY),
        toy_language_models.random_stream, 207,
    ),
    "sequences": (
        SequenceTraining, partial(SequenceModule, counts_hits=True),
        partial(toy_sequence_models.Toy, toy_sequence_models.ToyConfig(size=8, noise=0.3, dropout=0.3), LETTERS, False),
        toy_sequence_models.random_proteins, EXAMPLES,
    ),
}  # fmt: skip


def for_validation(split: Any) -> list[Any]:
    """All batches of a split; those of pictures also to be described."""
    if isinstance(split, Stream):
        return list(split.evaluation_batches(columns=2, length=8, warm_up=3))
    order = epoch_batches(split.lengths[:1], pool=9, seed=0, epoch=0, sentences=10)
    return [*map(split.batch, order), *(image_batches(split, 8) if hasattr(split, "image_features") else ())]


def ordered(train: Any, config: Any) -> Callable[[int], Iterator[Any]]:
    """From a batch's number to that batch and all that follow it."""
    if isinstance(train, Stream):
        columns, length = config.batch.sentences, config.batch.length
        return lambda start: train.training_batches(columns=columns, length=length, seed=5, start=start)
    order = partial(endless_batches, train.lengths, seed=5, **config.batch.model_dump() | {"pool": 3})
    if isinstance(train, Sequences):
        return lambda start: (train.batch(chosen, (5, i)) for i, chosen in enumerate(order(start=start), start))
    return lambda start: map(train.batch, order(start=start))


def run(
    folder: str, *, kind: str = "translation", kill: str = "", number: int = signal.SIGKILL, poison: int = 0,
    fingerprint: str = "same", seed: int = 7, victim: str = "self", mark: str | None = None,
    **changed: Any,
) -> TrainingRecord:  # fmt: skip
    """Train in ``folder``; ``changed`` are settings of the kind's training."""
    settings = {
        "updates": 18, "batch": {"sentences": 8}, "optimizer": {"name": "adam", "learning_rate": 0.02},
        "schedule": {"name": "cosine", "warmup": 5}, "validate_every": VALIDATE_EVERY,
    }  # fmt: skip
    config_type, build_module, build_model, examples, count = KINDS[kind]
    config = config_type.model_validate(settings | changed)
    torch.manual_seed(3)
    module = build_module(build_model(), config)
    module.__class__ = type("Killable", (Killable, type(module)), {})
    module.killer, module.poison = Killer(kill, number, victim, mark), poison
    return train_run(
        module, config, batches=ordered(examples(count, seed=1), config), label="run", folder=Path(folder), seed=seed,
        valid=for_validation(examples(50 if kind == "language" else 20, seed=2)), fingerprint=fingerprint,
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
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def main() -> None:
    """Serve until the standard input ends."""
    torch.set_num_threads(1)
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as output:
            process = os.fork()
            if process == 0:
                child(json.loads(line), output.fileno())
            status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            output.seek(0)
            print(json.dumps({"status": status, "output": output.read()}), flush=True)
