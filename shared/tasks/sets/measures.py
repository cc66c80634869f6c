"""The measures of models of sets."""

from __future__ import annotations

from shared.metrics.quantities import Measure, entries, mean, per_cent, ratio, where_carried
from shared.metrics.registry import register

register({
    "absolute_error": Measure("Absolute error", "", 4, mean("error"), ratio, better="lower"),
    "counted_right": per_cent("Sets counted rightly", mean("counted")),
    "count_nats": Measure("NLL per count, nats", "nats", 3, mean("count_nats"), ratio, better="lower"),
    "point_nats": Measure(
        "NLL per point, nats", "nats", 3, entries("mixture", "nats", "points"), ratio, better="lower"
    ),
    "nats_lost": Measure(
        "NLL per point above that of the true mixture, nats", "nats", 3,
        where_carried(lambda e: (e["mixture"]["nats"] - e["mixture"]["true"], e["mixture"]["points"])), ratio,
        better="lower",
    ),
})  # fmt: skip
