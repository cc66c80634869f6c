"""One run: a module trained for a number of updates, killed at any moment, continued to the same weights.

What makes a continued run bit-identical: batch i depends on (seed, i) alone, the random generator is seeded anew before
every batch from (seed, i), and a checkpoint holds everything else. A checkpoint carries the fingerprint of parameters,
data and code, and is continued with the same ones alone. Nothing is done at signals: each file is written whole or not
at all, and what was made after the last checkpoint is made again.
"""

from __future__ import annotations

import csv
import logging
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import torch
from lightning.fabric import Fabric
from torch import Tensor

from shared.errors import ReplicationError
from shared.training.checkpoints import TrainingRecord, load_checkpoint, save_checkpoint
from shared.training.config import TrainingConfig
from shared.training.module import TrainingModule
from shared.training.optimizers import learning_rate_factor
from shared.training.processes import Group
from shared.training.progress import CURVE, LISTENER, Progress, validated

CURVE_EVERY = 20
"""Updates between rows of training in the learning curve."""
REPORT_EVERY = 0.5
"""Seconds between reports of progress."""


def train_run(
    module: TrainingModule, config: TrainingConfig, *, batches: Callable[[int], Iterator[Any]],
    valid: Sequence[Any], folder: Path, seed: int, fingerprint: str, label: str,
) -> TrainingRecord:  # fmt: skip
    """Train to the end, continuing what lies in ``folder`` if it has the same fingerprint.

    Under torchrun, all its processes call this with the same arguments and share the run; any number of them continues
    what any other number began.

    Args:
        module: its weights are initialised by the caller.
        config: the run's hyper-parameters.
        batches: from a batch's number to that batch and all that follow it. A batch has ``to(device)``, and ``tokens``,
            how many throughput counts; padding is none.
        valid: the validation split.
        folder: gets ``checkpoints/``, with ``best.ckpt``, ``last.ckpt`` and, if asked, ``average.ckpt``; ``curve.csv``.
        seed: of dropout; that of the batches' order is the caller's.
        fingerprint: of parameters, data and code.
        label: names the run in what is printed; how far it is, is reported about twice a second.

    Raises:
        ReplicationError: a checkpoint is damaged, the processes cannot share an update equally, or a gradient is not
            finite and ``config.may_diverge`` is not set.
    """
    run, reported = _Run(module, config, folder, fingerprint, label), -math.inf
    state, group, device = run.state, run.group, run.fabric.device
    dealt, per_update = group.deal(
        batches(state.global_step * config.accumulate), config.accumulate, continues=module.continues
    )
    while state.ending(config) is None:
        examples = [batch.to(device) for batch in islice(dealt, per_update)]
        begin, processor_begin = time.perf_counter(), time.process_time()
        shares = [1.0]
        if config.accumulate * group.size > 1:  # the update is along the gradient of the mean over all its items
            counts = [module.items(batch) for batch in examples]
            shares = [count * group.size / max(1.0, *group.sums([sum(counts)])) for count in counts]
        for number, (batch, share) in enumerate(zip(examples, shares, strict=True)):
            read = state.global_step * per_update + number
            seed_generators(seed * 1_000_003 + read * group.size + group.rank, device)
            with run.fabric.no_backward_sync(run.parallel, enabled=number < per_update - 1):
                loss = run.parallel(partial(module.training_step, batch, read))
                run.fabric.backward(loss * share)
        run.make_update()
        state.tokens += sum(batch.tokens for batch in examples)
        state.seconds += time.perf_counter() - begin
        state.processor_seconds += time.process_time() - processor_begin
        run.after_update()
        if group.first and time.monotonic() - reported >= REPORT_EVERY:
            reported = time.monotonic()
            LISTENER.get()(run.progress())
        if state.global_step % config.validate_every == 0 or state.diverged:
            run.validate(valid)
    return run.finish()


def seed_generators(seed: int, device: torch.device) -> None:
    """Do what ``torch.manual_seed`` does, which takes 0.6 ms, as it also prepares for devices that are not there."""
    torch.default_generator.manual_seed(seed)
    if device.type != "cpu":
        getattr(torch, device.type).manual_seed(seed)


@dataclass
class _State:
    """How far a run is; checkpoints hold this beside weights and optimiser.

    Attributes:
        global_step: updates made, one whose gradient was not finite included.
        diverged: the number of that update; 0: there is none.
        valid: the means of the last validation.
        best_score, best_update, best_loss: of the best validation; its loss need not be what decides.
        waited: validations since then.
        tokens: trained on by this process.
        seconds: of training by the clock, validation excluded; on a busy machine that says little.
        processor_seconds: likewise user and system time of this process.
        sums: of each weight over the updates that are averaged, in float64.
    """

    global_step: int = 0
    diverged: int = 0
    valid: dict[str, float] = field(default_factory=dict)
    best_score: float = math.inf
    best_update: int = 0
    best_loss: float = math.nan
    waited: int = 0
    tokens: float = 0.0
    seconds: float = 0.0
    processor_seconds: float = 0.0
    sums: dict[str, Tensor] = field(default_factory=dict)

    @property
    def made(self) -> int:
        """Updates that have changed the weights."""
        return self.global_step - (self.diverged > 0)

    def ending(self, config: TrainingConfig) -> str | None:
        """Why the run is at its end; None if it goes on."""
        if self.diverged:
            return f"the gradient was not finite at update {self.diverged}, which was not made"
        if self.global_step == config.updates:
            return "all updates made"
        if config.patience is not None and self.waited >= config.patience:
            return f"no better for {config.patience} validations"
        return None


class _Run:
    """What a run consists of, and all that is done beside computing gradients; see :func:`train_run`."""

    def __init__(
        self, module: TrainingModule, config: TrainingConfig, folder: Path, fingerprint: str, label: str
    ) -> None:
        self.module, self.config, self.fingerprint, self.label = module, config, fingerprint, label
        self.folder, self.checkpoints, self.state = folder, folder / "checkpoints", _State()
        self.group = group = Group.here()
        logging.getLogger("lightning.pytorch.utilities.rank_zero").setLevel(logging.WARNING)
        self.fabric = Fabric(
            devices=group.local, num_nodes=group.size // group.local, strategy="auto" if group.size == 1 else "ddp",
            precision=resolve_precision(config.precision),
        )  # fmt: skip
        checkpoint = self._begin()
        group.meet()
        self.fabric.launch()
        self.parallel = self.fabric.setup_module(module)
        self.optimizer = module.configure_optimizers()
        if checkpoint:
            module.load_state_dict(checkpoint["state_dict"])
            module.on_load_checkpoint(checkpoint)
            self.optimizer.load_state_dict(checkpoint["optimizer"])
            self.state = state = _State(**{each.name: checkpoint[each.name] for each in fields(_State)})
            state.tokens, state.processor_seconds = (x / group.size for x in (state.tokens, state.processor_seconds))
        self._factor = learning_rate_factor(config.schedule, updates=config.updates)
        self._prepare_update()

    def make_update(self) -> None:
        """Make an update along the gradient, which is then forgotten.

        Raises:
            ReplicationError: it is not finite, and ``config.may_diverge`` is not set.
        """
        made, state = self.module.make_update(self.optimizer), self.state
        state.global_step += 1
        if not made:
            state.diverged = state.global_step
            if not self.config.may_diverge:
                raise ReplicationError(
                    f"the gradient is not finite at update {state.global_step}; lower the learning rate, or use "
                    "precision 32-true (the last checkpoint is from before it)."
                )
        self._prepare_update()

    def after_update(self) -> None:
        """Add the weights to their sums if they are averaged; extend the learning curve."""
        left, average = self.config.updates - self.state.global_step, self.config.average
        if average and left % average.every == 0 and left < average.last * average.every:
            for name, weight in self.module.state_dict().items():
                if weight.is_floating_point():
                    self.state.sums[name] = weight.double().cpu() + self.state.sums.get(name, 0.0)
        if self.state.global_step % CURVE_EVERY == 0:
            self._extend_curve(self._logged("train") | {"learning_rate": self.optimizer.param_groups[0]["lr"]}, "train")

    def progress(self) -> Progress:
        """How far the run is."""
        state = self.state
        speed = self.group.size * state.tokens / state.seconds if state.seconds else 0.0
        return Progress(
            updates=state.global_step, total=self.config.updates, loss=float(self.module.logged["train_loss"]),
            tokens_per_second=speed, validation=state.valid,
        )  # fmt: skip

    def validate(self, valid: Sequence[Any]) -> None:
        """Measure the weights, keep them if they are the best ones, and write a checkpoint to continue from."""
        self.module.eval()
        with torch.inference_mode(), self.fabric.autocast():
            for number, batch in enumerate(valid):
                self.module.validation_step(batch.to(self.fabric.device), number)
            self.module.on_validation_epoch_end()
        self.module.train()
        state, is_first, score = self.state, not self.state.valid, self.module.score()
        state.valid = self._logged("valid")
        self._extend_curve(state.valid, "valid")
        better = score < state.best_score
        state.waited = 0 if better else state.waited + 1
        if better or is_first:  # also where the first one is no number
            state.best_score, state.best_update, state.best_loss = score, state.made, state.valid["loss"]
            self._save("best")
        self._save_last()

    def finish(self) -> TrainingRecord:
        """Write the last checkpoint and, if it is wanted, the average; returns what was measured."""
        tokens, processor_seconds = self._save_last()
        state, weights, average = self.state, self.module.state_dict(), self.config.average
        if average:
            means = {name: (total / average.last).to(weights[name].dtype) for name, total in state.sums.items()}
            self._save("average", state_dict=weights | means)
        speed = tokens / state.seconds if state.seconds else 0.0
        if self.group.first:
            line = f"{self.label}: {state.global_step} updates in {state.seconds:.0f} s"
            print(line, f"{speed:,.0f} tokens/s", *validated(state.valid), sep=", ")
        self.group.meet()
        return TrainingRecord(
            updates=state.made, precision=resolve_precision(self.config.precision),
            stopped_because=state.ending(self.config) or "", wall_seconds=state.seconds,
            processor_seconds=processor_seconds, tokens_per_second=speed,
            best_valid_loss=state.best_loss, best_update=state.best_update,
        )  # fmt: skip

    def _begin(self) -> dict[str, Any] | None:
        """The last checkpoint, if it has the same fingerprint and the best one was not deleted; else a new folder."""
        last, checkpoint = self.checkpoints / "last.ckpt", None
        if self.group.first:
            if last.exists() and last.with_name("best.ckpt").exists():
                checkpoint = load_checkpoint(last)
                if checkpoint.get("fingerprint") != self.fingerprint:
                    changed = "parameters, data or code have changed since the last checkpoint"
                    print(f"{self.label}: {changed}: starting anew.")
                    checkpoint = None
            if checkpoint is None:
                shutil.rmtree(self.folder, ignore_errors=True)
                self.checkpoints.mkdir(parents=True)
            else:
                print(f"{self.label}: continuing from update {checkpoint['global_step']}.")
            self._begin_curve(checkpoint["global_step"] if checkpoint else 0)
        if self.group.agree(checkpoint is not None) and not self.group.first:
            checkpoint = load_checkpoint(last)
        return checkpoint

    def _prepare_update(self) -> None:
        self.module.updates = self.state.global_step
        self.optimizer.zero_grad()
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.optimizer.learning_rate * self._factor(self.state.global_step)

    def _save_last(self) -> list[float]:
        """Write what the run continues from; returns tokens and processor seconds of all processes, which all call."""
        done = self.group.sums([self.state.tokens, self.state.processor_seconds])
        more = vars(self.state) | {"optimizer": self.optimizer.state_dict()}
        more |= dict(zip(("tokens", "processor_seconds"), done, strict=True))
        self.module.on_save_checkpoint(more)
        self._save("last", **more)
        return done

    def _save(self, name: str, **more: Any) -> None:
        if self.group.first:
            common = {"fingerprint": self.fingerprint, "global_step": self.state.global_step, "valid": self.state.valid}
            weights = {"state_dict": self.module.state_dict()}
            save_checkpoint(common | weights | more, self.checkpoints / f"{name}.ckpt")

    def _logged(self, split: str) -> dict[str, float]:
        prefix = f"{split}_"
        logged = self.module.logged.items()
        return {name.removeprefix(prefix): float(value) for name, value in logged if name.startswith(prefix)}

    def _begin_curve(self, start: int) -> None:
        """Keep the rows of the learning curve up to update ``start``; those after it are written again."""
        kept: list[list[str]] = []
        if start and (self.folder / "curve.csv").exists():
            with (self.folder / "curve.csv").open(newline="") as file:
                kept = [row for row in list(csv.reader(file))[1:] if len(row) == 4 and int(row[0]) <= start]
        with (self.folder / "curve.partial").open("w", newline="") as file:
            csv.writer(file).writerows([("step", "split", "metric", "value"), *kept])
        (self.folder / "curve.partial").replace(self.folder / "curve.csv")

    def _extend_curve(self, metrics: Mapping[str, float], split: str) -> None:
        if self.group.first:
            CURVE.get()({f"{split}/{name}": value for name, value in metrics.items()}, self.state.global_step)
            with (self.folder / "curve.csv").open("a", newline="") as file:
                rows = [(self.state.global_step, split, name, f"{value:.6g}") for name, value in metrics.items()]
                csv.writer(file).writerows(rows)


def resolve_precision(wanted: str) -> Literal["32-true", "bf16-mixed"]:
    """``auto`` is ``bf16-mixed`` on a GPU that has it, and else ``32-true``.

    Processors that multiply bfloat16 themselves are no exception: torch's backward pass of attention takes eight times
    as long with it there, and one precision on all processors makes their runs comparable.
    """
    has_it = wanted == "auto" and torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    return "bf16-mixed" if has_it or wanted == "bf16-mixed" else "32-true"
