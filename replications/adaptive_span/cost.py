"""What spans cost: of a trained model from its spans, and counted of a layer whose spans are given.

A head that looks back at s symbols multiplies a query with s keys and s vectors of distances, and s weights with s
values: 3 K s multiply-adds a symbol. Each layer has to keep as many states of D numbers as its widest head looks back
at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from replications.adaptive_span.model import AdaptiveSpanTransformer, SpanAttention
from replications.adaptive_span.settings import CostConfig
from shared.metrics.operations import count_operations
from shared.tasks.kinds import open_data
from shared.tasks.replication import Replication, Study

LONG = 0.5
"""A head looks far back if its span is more than this share of the limit."""


def numbers(model: AdaptiveSpanTransformer) -> dict[str, float]:
    """What the spans of a model are, ramps included, and what they cost for one symbol.

    Returns:
        ``span@<layer>-<head>``; ``span_mean``, ``span_longest``; ``heads_long``, the share of heads with a span of more
        than :data:`LONG` of the limit; ``operations`` of attention; ``cached``, numbers that all layers keep.
    """
    spans = torch.stack([layer.attention.spans() for layer in model.layers]).double().cpu()  # (layers, H)
    limit, head = model.p.shape
    named = {
        f"span@{layer}-{number}": float(span)
        for layer, of_layer in enumerate(spans, start=1)
        for number, span in enumerate(of_layer, start=1)
    }
    return named | {
        "span_mean": float(spans.mean()),
        "span_longest": float(spans.max()),
        "heads_long": float((spans > LONG * limit).double().mean()),
        "operations": 3 * head * float(spans.sum()),
        "cached": model.width * float(spans.amax(1).sum()),
    }


class WithSpans(Replication):
    """Judges a model by its losses and by its spans."""

    def evaluate(self, config: Any, *, prepared: Path, trained: Sequence[Path], out: Path) -> Mapping[str, float]:
        """As of every language model, with :func:`numbers`."""
        metrics = super().evaluate(config, prepared=prepared, trained=trained, out=out)
        (model,) = self.trained_models(config, open_data(config, prepared), trained)
        assert isinstance(model, AdaptiveSpanTransformer)
        return {**metrics, **numbers(model)}


class Cost(Study):
    """Counts the multiply-adds of attention to a full cache for one more symbol, all heads with one span."""

    def measure(self, config: Any, seed: int) -> Mapping[str, float]:
        """``operations@<span>``: counted, for one symbol, divided by 3 D s, what heads with this span need.

        A little more is counted: the form that runs meets the symbol itself, too, and gives it no weight.
        """
        study = config.checked_model(CostConfig)
        attention = SpanAttention(width=study.width, heads=study.heads, limit=study.limit, ramp=1, dropout=0.0).eval()
        assert attention.share is not None
        found = {}
        p = torch.randn(study.limit, study.width // study.heads)
        context = attention.project(torch.randn(1, study.limit + 1, study.width))
        h = torch.randn(1, 1, study.width)
        projections = 2 * study.width**2  # of the query and of the result
        for span in study.spans:
            attention.share.data.fill_(span / study.limit)
            counted = count_operations(attention, h, context, p) - projections
            found[f"operations@{span}"] = counted / (3 * study.width * span)
        return found
