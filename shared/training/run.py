"""One run: a Lightning module trained for a number of updates, killed at any moment, continued to the same weights.

What makes a resumed run bit-identical: batch i depends on (seed, i) alone, the random generator is seeded anew before
every batch from (seed, i), and a checkpoint holds everything else. What a checkpoint belongs to is in its fingerprint;
a checkpoint of other parameters, data or code is not continued.
"""

from __future__ import annotations

import logging
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import lightning
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch.utils.data import DataLoader, IterableDataset

from shared.training.averaging import Averaging
from shared.training.checkpoints import TrainingRecord, load_checkpoint
from shared.training.config import TrainingConfig
from shared.training.module import TrainingModule
from shared.training.monitor import CurveWriter, Reporter, Throughput
from shared.training.processes import Group, Share
from shared.training.progress import Report
from shared.training.protocol import TrainingBatch

FINGERPRINT, VALID_LOSS = "fingerprint", "valid_loss"


class _Stream(IterableDataset[TrainingBatch]):
    """Batches from a given number on; a data loader is needed only to pass them to Lightning."""

    def __init__(self, batches: Callable[[int], Iterator[TrainingBatch]], start: int, share: Share) -> None:
        self._batches, self._start, self._share = batches, start, share

    def __iter__(self) -> Iterator[TrainingBatch]:
        return self._share.taken(self._batches(self._start))


class _SeedEveryBatch(Callback):
    """Dropout masks that depend on (seed, batch number) alone."""

    def __init__(self, seed: int, read: int, share: Share) -> None:
        self._seed, self._read, self._share = seed, read, share

    def on_train_batch_start(self, *_: Any) -> None:
        torch.manual_seed(self._seed * 1_000_003 + self._share.number(self._read))
        self._read += 1


class _BatchCount(Callback):
    """Sets Lightning's count of batches, by which validation is due, to those that one process has read by now.

    A checkpoint has the count of whoever wrote it; where there were more or fewer processes, each read another number.
    """

    def __init__(self, read: int) -> None:
        self._read = read

    def on_load_checkpoint(self, trainer: Any, module: Any, checkpoint: dict[str, Any]) -> None:
        progress = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]
        if progress["total"]["completed"] != self._read:
            for counts in (progress["total"], progress["current"]):
                counts.update(dict.fromkeys(counts, self._read))


class _EarlyStopping(EarlyStopping):
    """Also stops a run that was killed after its patience had ended and its last checkpoint was written."""

    def on_train_start(self, trainer: Any, module: Any) -> None:
        trainer.should_stop |= self.wait_count >= self.patience


class _Divergence(Callback):
    """Ends a run whose gradient was not finite, also one that was killed after its last checkpoint was written.

    Lightning counts the update with this gradient, although it did not change the weights.
    """

    def __init__(self) -> None:
        self.update = 0

    def on_train_start(self, trainer: Any, module: Any) -> None:
        trainer.should_stop |= self.update > 0

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
        if module.diverged:
            self.update, trainer.should_stop = trainer.global_step, True

    def state_dict(self) -> dict[str, Any]:
        return {"update": self.update}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.update = state_dict["update"]


class _Labels(Callback):
    """Writes into every checkpoint what it belongs to, and the loss of the last validation if there was one."""

    def __init__(self, fingerprint: str) -> None:
        self._fingerprint = fingerprint
        self._loss: float | None = None

    def on_load_checkpoint(self, trainer: Any, module: Any, checkpoint: dict[str, Any]) -> None:
        self._loss = checkpoint.get(VALID_LOSS)

    def on_save_checkpoint(self, trainer: Any, module: Any, checkpoint: dict[str, Any]) -> None:
        checkpoint[FINGERPRINT] = self._fingerprint
        if (loss := trainer.callback_metrics.get(VALID_LOSS, self._loss)) is not None:
            checkpoint[VALID_LOSS] = float(loss)


def train_run(
    module: TrainingModule, config: TrainingConfig, *, batches: Callable[[int], Iterator[TrainingBatch]],
    valid: Sequence[TrainingBatch], folder: Path, seed: int, fingerprint: str, label: str,
    progress: Report | None = None,
) -> TrainingRecord:  # fmt: skip
    """Train to the end, continuing what lies in ``folder`` if it has the same fingerprint.

    Under torchrun, all its processes call this with the same arguments and share the run; any number of them continues
    what any other number began.

    Args:
        module: its weights are initialised by the caller.
        config: the run's hyper-parameters.
        batches: from a batch number to that batch and all that follow it.
        valid: the validation split.
        folder: gets ``checkpoints/``, with ``best.ckpt``, ``last.ckpt`` and, if asked, ``average.ckpt``; ``curve.csv``.
        seed: of dropout; that of the batches' order is the caller's.
        fingerprint: of parameters, data and code.
        label: names the run in what is printed.
        progress: takes how far the run is, about twice a second.

    Raises:
        ReplicationError: a checkpoint is damaged, the processes cannot share an update equally, or (from the module) a
            gradient is not finite and ``config.may_diverge`` is not set.
        SystemExit: 143 after SIGTERM; the next start continues.
        KeyboardInterrupt: likewise.
    """
    group = Group.here()
    share = Share(group, config.accumulate, module.continues)
    last = folder / "checkpoints" / "last.ckpt"
    averaging, throughput, divergence = Averaging(last.parent, config), Throughput(group), _Divergence()
    start = group.agree(_begin(last, fingerprint, label, averaging) if group.first else 0)
    read = start * share.batches
    keep_best = _checkpoint(last.parent, "best", monitor=module.monitor, mode=module.mode)
    stopping = _EarlyStopping(module.monitor, patience=config.patience or 10**9, mode=module.mode, check_finite=False)
    callbacks = [
        _BatchCount(read), _SeedEveryBatch(seed, read, share), throughput, CurveWriter(folder / "curve.csv", start),
        _Labels(fingerprint), Reporter(label, config.updates, throughput, progress), averaging,
        stopping, divergence, keep_best,
        _checkpoint(last.parent, "last"),  # after validation, so that its outcome is in it
    ]  # fmt: skip
    trainer = _trainer(config, callbacks, share)
    loader = DataLoader(_Stream(batches, start * config.accumulate, share), batch_size=None)
    try:
        trainer.fit(
            module, loader, DataLoader(valid, batch_size=None, collate_fn=_unchanged),  # type: ignore[arg-type]
            ckpt_path=last if start else None, weights_only=True,
        )  # fmt: skip
    except SIGTERMException:
        raise SystemExit(143) from None
    except SystemExit:  # what Lightning makes of Ctrl-C
        raise KeyboardInterrupt from None
    trainer.save_checkpoint(last, weights_only=False)
    if group.first:
        averaging.finish()
    group.meet()
    best = load_checkpoint(last.with_name("best.ckpt"))  # it is there: the configuration sees to a validation
    return _record(config, best, throughput, made=trainer.global_step, diverged=divergence.update)


def _record(
    config: TrainingConfig, best: dict[str, Any], throughput: Throughput, *, made: int, diverged: int
) -> TrainingRecord:
    """What a run measured; ``made`` counts the update whose gradient was not finite, if there is one."""
    done, made = throughput.state_dict(), made - (diverged > 0)
    return TrainingRecord(
        updates=made, precision=resolve_precision(config.precision), stopped_because=_reason(config, made, diverged),
        wall_seconds=done["seconds"], processor_seconds=done["processor_seconds"],
        tokens_per_second=done["tokens"] / done["seconds"] if done["seconds"] else 0.0,
        best_valid_loss=best[VALID_LOSS], best_update=min(int(best["global_step"]), made),
    )  # fmt: skip


def _reason(config: TrainingConfig, made: int, diverged: int) -> str:
    """Why a run has ended."""
    if diverged:
        return f"the gradient was not finite at update {diverged}, which was not made"
    return "all updates made" if made == config.updates else f"no better for {config.patience} validations"


def _begin(last: Path, fingerprint: str, label: str, averaging: Averaging) -> int:
    """The number of updates to continue from; before the first one, the run's folder is made anew."""
    start = _resume_point(last, fingerprint, label, averaging)
    if not start:
        shutil.rmtree(last.parents[1], ignore_errors=True)
        last.parent.mkdir(parents=True)
    return start


def _resume_point(last: Path, fingerprint: str, label: str, averaging: Averaging) -> int:
    """The number of updates to continue from; 0 to start anew, also where one of the checkpoints was deleted."""
    if not (last.exists() and last.with_name("best.ckpt").exists()):
        return 0
    checkpoint = load_checkpoint(last)
    if checkpoint.get(FINGERPRINT) != fingerprint:
        print(f"{label}: parameters, data or code have changed since the last checkpoint: starting anew.")
        return 0
    start = int(checkpoint["global_step"])
    if not averaging.can_continue(start):
        return 0
    print(f"{label}: continuing from update {start}.")
    return start


class _Checkpoint(ModelCheckpoint):
    """Keeps what is best also where the run continues in another folder; Lightning's own forgets it there."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        here, there = str(self.dirpath), str(state_dict["dirpath"])
        moved = {
            name: value.replace(there, here, 1)
            for name, value in state_dict.items()
            if name.endswith("_path") and isinstance(value, str)
        }
        best = {path.replace(there, here, 1): score for path, score in state_dict["best_k_models"].items()}
        super().load_state_dict({**state_dict, **moved, "dirpath": self.dirpath, "best_k_models": best})


def _checkpoint(folder: Path, name: str, **when: Any) -> ModelCheckpoint:
    return _Checkpoint(folder, filename=name, enable_version_counter=False, **when)


def _trainer(config: TrainingConfig, callbacks: list[Callback], share: Share) -> lightning.Trainer:
    for name in ("lightning.pytorch.utilities.rank_zero", "lightning.pytorch.accelerators.cuda"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in (".*does not have many workers.*", ".*is not resumable.*", ".*exists and is not empty.*",
                    ".*LeafSpec.*", ".*lr_scheduler.step.*", ".*val_dataloader.*", ".*sync_dist=True.*"):  # fmt: skip
        warnings.filterwarnings("ignore", message)
    group = share.group
    return lightning.Trainer(
        max_steps=config.updates, max_epochs=-1, accelerator="auto", devices=group.local,
        num_nodes=group.size // group.local, strategy="auto" if group.size == 1 else "ddp",
        precision=resolve_precision(config.precision),
        accumulate_grad_batches=share.batches, val_check_interval=config.validate_every * share.batches,
        check_val_every_n_epoch=None, num_sanity_val_steps=0, callbacks=callbacks, logger=False,
        enable_progress_bar=False, enable_model_summary=False, use_distributed_sampler=False,
    )  # fmt: skip


def _unchanged(batch: TrainingBatch) -> TrainingBatch:
    return batch


def resolve_precision(wanted: str) -> Literal["32-true", "bf16-mixed"]:
    """``auto`` is ``bf16-mixed`` on a GPU that has it, and else ``32-true``.

    Processors that multiply bfloat16 themselves are no exception: torch's backward pass of attention takes eight times
    as long with it there, and one precision on all processors makes their runs comparable.
    """
    if wanted != "auto":
        return "bf16-mixed" if wanted == "bf16-mixed" else "32-true"
    return "bf16-mixed" if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else "32-true"
