"""The measures of models of sets."""

from functools import partial

from shared.metrics.quantities import Measure, entries, mean, per_cent, ratio, where_carried
from shared.metrics.registry import register

_nats = partial(Measure, unit="nats", corpus=ratio, better="lower")
register({
    "absolute_error": Measure("Absolute error", "", 4, mean("error"), ratio, better="lower"),
    "counted_right": per_cent("Sets counted rightly", mean("counted")),
    "count_nats": _nats("NLL per count, nats", statistics=mean("count_nats")),
    "point_nats": _nats("NLL per point, nats", statistics=entries("mixture", "nats", "points")),
    "nats_lost": _nats(
        "NLL per point above that of the true mixture, nats",
        statistics=where_carried(lambda e: (e["mixture"]["nats"] - e["mixture"]["true"], e["mixture"]["points"])),
    ),
})  # fmt: skip
