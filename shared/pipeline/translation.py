"""Binds a translation model to the pipeline: prepare, train, evaluate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import nn

from shared.claims.results import RunResults
from shared.config import Strict
from shared.data.batching import Indices, endless_batches, epoch_batches
from shared.data.parallel import Batch, CorpusConfig, ParallelText, PreparedText, Sequences, prepare_parallel
from shared.data.tokenizers import EOS
from shared.decoding.ensemble import Ensemble
from shared.pipeline.replication import large_imports
from shared.pipeline.run_config import RunConfig
from shared.pipeline.training_operations import training_operations
from shared.pipeline.translation_evaluation import evaluate_translation, signatures
from shared.reports.document import Figure
from shared.training.checkpoints import TrainingRecord, load_checkpoint, load_weights
from shared.training.loss import smoothed_loss

ModelConfigT = TypeVar("ModelConfigT", bound=Strict)


@dataclass(frozen=True)
class Translation(Generic[ModelConfigT]):
    """A replication whose model translates.

    Attributes:
        model_config: checks a variant's ``model`` section.
        build_model: from that section and the two vocabulary sizes to a model that can be called as
            ``model(source, source_mask, target) -> (logits, attention)``, has ``start(source, source_mask)`` and is
            an :class:`shared.decoding.protocol.IncrementalDecoder`.
        heatmaps: variants whose attention the report draws, with the captions.
        comparisons: captions, with the variants whose attention on one test sentence is drawn side by side.
        heads: variants whose attention is drawn by layer and head, with the captions.
        panels: titles, with the variants of one task, at most seven, that share a figure of lines; a task that
            none is of is shown whole.
        per_operation: titles, with the variants whose loss is drawn against the operations of training.
        schedules: titles, with the variants whose learning rates are drawn.
    """

    model_config: type[ModelConfigT]
    build_model: Callable[[ModelConfigT, int, int], nn.Module]
    heatmaps: Mapping[str, str]
    comparisons: Mapping[str, Sequence[str]] = field(default_factory=dict)
    heads: Mapping[str, str] = field(default_factory=dict)
    panels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    per_operation: Mapping[str, Sequence[str]] = field(default_factory=dict)
    schedules: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def prepare(self, corpus: CorpusConfig, dataset: Path, out: Path) -> Mapping[str, object]:
        """Tokenise and encode."""
        return prepare_parallel(corpus, dataset, out)

    def check(self, config: RunConfig) -> None:
        """Refuse a model section that does not fit ``model_config``."""
        self._sizes(config)

    def cannot_run(self, config: RunConfig) -> str | None:
        """Networks run everywhere."""
        return None

    def rehearse(self, config: RunConfig) -> tuple[int, float]:
        """Two real updates on random symbols, as many as a full batch has; the second is timed."""
        from shared.training.translation import TranslationModule

        symbols, batch = config.corpus.tokenizer.size, config.training.batch
        model = self.build_model(self._sizes(config), symbols, symbols)
        module = TranslationModule(model, config.training)
        optimizer = module.configure_optimizers()["optimizer"]
        length = min(config.training.max_words or config.corpus.max_words, 50)
        pairs = batch.sentences or max(1, (batch.tokens or length) // length)
        lines = Sequences.pack(torch.randint(EOS + 1, symbols, (pairs, length)).tolist())
        full = ParallelText(lines, lines, lines.lengths).batch(np.arange(pairs))
        seconds = 0.0
        for _ in range(2):
            begin = time.perf_counter()
            optimizer.zero_grad()
            logits, _ = model(full.source, full.source_mask, full.target)
            smoothed_loss(
                logits, full.labels, config.training.label_smoothing, config.training.smoothing_over
            ).backward()
            module.configure_gradient_clipping(optimizer)
            optimizer.step()
            seconds = time.perf_counter() - begin
        return sum(parameter.numel() for parameter in model.parameters()), seconds

    def model(self, config: RunConfig, text: PreparedText) -> nn.Module:
        """The untrained model of a run."""
        return self.build_model(self._sizes(config), len(text.source), len(text.target))

    def _sizes(self, config: RunConfig) -> ModelConfigT:
        return config.checked_model(self.model_config)

    def train(
        self, config: RunConfig, *, prepared: Path, folder: Path, seed: int, fingerprint: str, label: str
    ) -> tuple[TrainingRecord, int]:
        """Train one seed: it decides the initial weights, the order of the batches and the dropout masks."""
        with large_imports():  # Lightning takes seconds to import; only training needs it
            from shared.training.run import train_run
            from shared.training.translation import TranslationModule

        text = PreparedText.load(prepared)
        torch.manual_seed(seed)
        model = self.model(config, text)
        train, order = _training_order(config, text, seed)
        record = train_run(
            TranslationModule(model, config.training), config.training,
            batches=lambda start: train.batches(order(start=start)),
            valid=_every_batch(text.split("valid")), folder=folder, seed=seed, fingerprint=fingerprint, label=label,
        )  # fmt: skip
        return record, sum(parameter.numel() for parameter in model.parameters())

    def evaluate(
        self, config: RunConfig, *, prepared: Path, trained: Sequence[Path], out: Path
    ) -> Mapping[str, float]:
        """Translate and score the test splits with one trained seed, or with the ensemble of several."""
        text = PreparedText.load(prepared)
        models = [self.model(config, text) for _ in trained]
        for model, folder in zip(models, trained, strict=True):
            load_weights(model, folder / "checkpoints" / f"{config.evaluation.checkpoint}.ckpt")
        cost = _cost(models[0], config, text, trained) if config.evaluation.operations else {}
        judged = models[0] if len(models) == 1 else Ensemble(models)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return evaluate_translation(judged.to(device).eval(), text, config, out) | cost

    def figures(self, results: Mapping[str, RunResults], folder: Path) -> Sequence[Figure]:
        """BLEU by source length, attention offsets, learning curves, and what the fields above ask for."""
        from shared.reports.translation import translation_figures  # matplotlib, which only reports need

        return translation_figures(
            results, folder, heatmaps=self.heatmaps, comparisons=self.comparisons, heads=self.heads,
            chosen=self.panels, per_operation=self.per_operation, schedules=self.schedules,
        )  # fmt: skip

    def descriptions(self, config: RunConfig, prepared: Path) -> Mapping[str, Any]:
        """Signatures and the token's name."""
        return {
            "signatures": signatures(config.evaluation),
            "token": PreparedText.load(prepared).target.unit,
        }


def _training_order(
    config: RunConfig, text: PreparedText, seed: int
) -> tuple[ParallelText, Callable[..., Iterator[Indices]]]:
    """The pairs trained on, and from ``start``, the number of a batch, to the indices of it and of all that follow."""
    train = text.split("train").up_to(config.training.max_words or config.corpus.max_words)
    return train, partial(endless_batches, _lengths(train), seed=seed, **config.training.batch.model_dump())


def _cost(
    model: nn.Module, config: RunConfig, text: PreparedText, trained: Sequence[Path]
) -> dict[str, float]:
    """What training has cost, of an ensemble all its members."""
    train, order = _training_order(config, text, config.seeds[0])
    updates = [load_checkpoint(folder / "checkpoints" / "last.ckpt")["global_step"] for folder in trained]
    return training_operations(
        model.eval(), train, order(start=0), updates=updates, accumulate=config.training.accumulate
    )


def _lengths(text: ParallelText) -> tuple[Any, Any]:
    return text.target.lengths + 1, text.source.lengths + 1  # each with its end symbol


def _every_batch(text: ParallelText) -> list[Batch]:
    """A split in batches of similar length, each pair once, in an order that never changes."""
    return [text.batch(i) for i in epoch_batches(_lengths(text), pool=10**6, seed=0, epoch=0, tokens=4000)]
