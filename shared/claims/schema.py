"""Claims as data: what a paper says, where it says it, and the comparisons of runs that decide it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from shared.config import Strict, build, load_yaml, merge
from shared.errors import ReplicationError

Provenance = Literal["C:paper", "C:code", "C:note", "D", "M"]
"""Where a number comes from: the paper, its authors' code, a note on it; derived by us; from memory."""

Condition = bool | int | str | tuple[float, float]


class PaperEffect(Strict):
    """The effect as the paper reports it: in words, and as a number where it gives one."""

    text: str = Field(min_length=1)
    number: float | None = None
    unit: str | None = None
    provenance: Provenance = "C:paper"


class _Comparison(Strict):
    """What all comparisons share.

    Attributes:
        name: what is compared, shown in the report.
        metric: a measure (`shared.metrics.registry.known`), or any number in the runs' metrics.json.
        where: which test examples count: field to a value, or to an inclusive range ``[low, high]``.
        paper: the same effect in the paper, in the same unit, where it gives one.
    """

    name: str = Field(min_length=1)
    metric: str
    where: dict[str, Condition] = Field(default={}, validate_default=True)
    paper: float | None = None

    @field_validator("where")
    @classmethod
    def _test_split_unless_said(cls, where: dict[str, Condition]) -> dict[str, Condition]:
        return {"split": "test"} | where

    def claimed(self) -> tuple[float, float]:
        """The open interval of effects that agree with the claim."""
        raise NotImplementedError

    def compared(self) -> tuple[str, ...]:
        """The variants whose runs are needed."""
        raise NotImplementedError

    def metrics(self) -> tuple[str, ...]:
        """The metrics that are needed of every variant."""
        return (self.metric,)


class Difference(_Comparison):
    """The first variant's metric is greater (or less) than the second's by more than ``margin``."""

    kind: Literal["greater", "less"]
    variants: tuple[str, str]
    margin: float = Field(default=0.0, ge=0.0)

    def claimed(self) -> tuple[float, float]:
        """(margin, ∞) for greater, (-∞, -margin) for less."""
        return (self.margin, math.inf) if self.kind == "greater" else (-math.inf, -self.margin)

    def compared(self) -> tuple[str, ...]:
        """Both variants."""
        return self.variants


class Equal(_Comparison):
    """Two variants' metrics differ by less than ``margin`` (two one-sided tests)."""

    kind: Literal["equal"]
    variants: tuple[str, str]
    margin: float = Field(gt=0.0)

    def claimed(self) -> tuple[float, float]:
        """(-margin, margin)."""
        return -self.margin, self.margin

    def compared(self) -> tuple[str, ...]:
        """Both variants."""
        return self.variants


class Ratio(_Comparison):
    """The first variant's metric is at least ``bound`` times the second's."""

    kind: Literal["ratio_at_least"]
    variants: tuple[str, str]
    bound: float = Field(gt=0.0)

    def claimed(self) -> tuple[float, float]:
        """(bound, ∞)."""
        return self.bound, math.inf

    def compared(self) -> tuple[str, ...]:
        """Both variants."""
        return self.variants


class Threshold(_Comparison):
    """One variant's metric lies above (or below) ``bound``."""

    kind: Literal["above", "below"]
    variant: str
    bound: float

    def claimed(self) -> tuple[float, float]:
        """(bound, ∞) for above, (-∞, bound) for below."""
        return (self.bound, math.inf) if self.kind == "above" else (-math.inf, self.bound)

    def compared(self) -> tuple[str, ...]:
        """The one variant."""
        return (self.variant,)


class Ladder(_Comparison):
    """The metric rises by more than ``margin`` at every step along ``variants``."""

    kind: Literal["ladder"]
    variants: tuple[str, ...] = Field(min_length=2)
    margin: float = Field(default=0.0, ge=0.0)

    def claimed(self) -> tuple[float, float]:
        """(margin, ∞), for every step."""
        return self.margin, math.inf

    def compared(self) -> tuple[str, ...]:
        """All variants, lowest first."""
        return self.variants


class RankCorrelation(_Comparison):
    """Over ``variants``, Spearman's correlation between two metrics is greater than ``bound``.

    Attributes:
        other: the second metric.
        sign: ``negative`` if one is to fall as the other rises; then the correlation is taken with -other.
    """

    kind: Literal["rank_correlation"]
    variants: tuple[str, ...] = Field(min_length=4)
    other: str
    sign: Literal["positive", "negative"] = "positive"
    bound: float = Field(gt=-1.0, lt=1.0)

    @model_validator(mode="after")
    def _each_once(self) -> RankCorrelation:
        if len(set(self.variants)) < len(self.variants):
            raise ValueError("the variants of a rank correlation must differ")
        return self

    def claimed(self) -> tuple[float, float]:
        """(bound, ∞)."""
        return self.bound, math.inf

    def compared(self) -> tuple[str, ...]:
        """All variants."""
        return self.variants

    def metrics(self) -> tuple[str, ...]:
        """Both metrics."""
        return self.metric, self.other


class Slope(_Comparison):
    """How the metric changes over a covariate of the examples, such as the source length.

    ``declines``: the variant's slope is below ``-margin``. ``no_decline``: it is above ``-margin``; with
    ``against``, above ``share`` times the slope of that falling variant. The slope is that of the
    least-squares line through the bins (the bin's metric over its mean covariate), in metric units per unit.

    Attributes:
        covariate: field of the examples.
        per: what one unit of the covariate is.
        bins: inclusive ranges ``[low, high]`` of the covariate, or a number of bins, equally filled.
    """

    kind: Literal["declines", "no_decline"]
    variant: str
    against: str | None = None
    share: float = Field(default=0.0, ge=0.0, lt=1.0)
    margin: float = Field(default=0.0, ge=0.0)
    covariate: str = "source_length"
    per: str = "source word"
    bins: int | tuple[tuple[float, float], ...]

    @model_validator(mode="after")
    def _at_least_two_bins(self) -> Slope:
        if (self.bins if isinstance(self.bins, int) else len(self.bins)) < 2:
            raise ValueError("a slope needs at least two bins")
        if (self.against is not None) != (self.share > 0.0):
            raise ValueError("'against' and 'share' go together: at most this share of that variant's decline")
        return self

    def claimed(self) -> tuple[float, float]:
        """(-∞, -margin) for declines, (-margin, ∞) for no_decline (after taking off the allowed share)."""
        return (-math.inf, -self.margin) if self.kind == "declines" else (-self.margin, math.inf)

    def compared(self) -> tuple[str, ...]:
        """The variant and the one it is held against, if any."""
        return (self.variant,) if self.against is None else (self.variant, self.against)


class Exponent(_Comparison):
    """A quantity grows as a power of another: slope of the least-squares line in log-log, within bounds.

    Attributes:
        points: x (such as a sequence length) to the name of the number measured there (in metrics.json).
    """

    kind: Literal["exponent"]
    variant: str
    points: dict[float, str] = Field(min_length=3)
    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _bounded(self) -> Exponent:
        if self.at_least is None and self.at_most is None:
            raise ValueError("give 'at_least', 'at_most' or both")
        if min(self.points) <= 0:
            raise ValueError("the x of 'points' must be positive")
        return self

    def claimed(self) -> tuple[float, float]:
        """(at_least, at_most), open where not given."""
        low = -math.inf if self.at_least is None else self.at_least
        return low, math.inf if self.at_most is None else self.at_most

    def compared(self) -> tuple[str, ...]:
        """The one variant."""
        return (self.variant,)


class Exact(_Comparison):
    """A number in metrics.json equals ``value`` within ``tolerance``, for every seed."""

    kind: Literal["exact"]
    variant: str
    value: float
    tolerance: float = Field(default=0.0, ge=0.0)

    def claimed(self) -> tuple[float, float]:
        """(-tolerance, tolerance) around the value; both ends count."""
        return -self.tolerance, self.tolerance

    def compared(self) -> tuple[str, ...]:
        """The one variant."""
        return (self.variant,)


Comparison = Annotated[
    Difference | Equal | Ratio | Threshold | Ladder | RankCorrelation | Slope | Exponent | Exact,
    Field(discriminator="kind"),
]


class Claim(Strict):
    """One claim of a paper.

    The verdict is ``reproduced`` if all ``deciding`` comparisons are, ``contradicted`` if any is, else
    ``inconclusive``; comparisons whose runs were not made at a scale are left out and named. ``also``
    comparisons are shown but decide nothing.

    Attributes:
        where: section, table or figure of the paper.
        not_tested: why no comparison can decide it here; in place of ``deciding``.
        note: shown under the verdict: what a reader must know to judge it.
        if_contradicted: shown when the claim comes out contradicted: the likely reason.
    """

    id: str = Field(pattern=r"^[A-Z][A-Za-z0-9]*-C\d+$")
    statement: str = Field(min_length=1)
    where: str = Field(min_length=1)
    effect_in_paper: PaperEffect
    deciding: tuple[Comparison, ...] = ()
    also: tuple[Comparison, ...] = ()
    not_tested: str | None = None
    note: str | None = None
    if_contradicted: str | None = None

    @model_validator(mode="after")
    def _decidable(self) -> Claim:
        if bool(self.deciding) == (self.not_tested is not None):
            raise ValueError("give either 'deciding' comparisons or the reason in 'not_tested'")
        names = [comparison.name for comparison in (*self.deciding, *self.also)]
        if len(set(names)) < len(names):
            raise ValueError("the names of a claim's comparisons must differ")
        return self


class _Claims(Strict):
    claims: tuple[Claim, ...] = Field(min_length=1)


def load_claims(path: Path, scale: str) -> tuple[Claim, ...]:
    """Read a claims.yaml, with the changes that each comparison makes at ``scale``.

    A comparison may carry ``at: {<scale>: {…}}``; that mapping is laid over it at this scale.

    Raises:
        ReplicationError: the file is missing or wrong, or two claims share an id; says where.
    """
    document = load_yaml(path)
    claims = document.get("claims") if isinstance(document, Mapping) else None
    for claim in claims if isinstance(claims, list) else ():
        for group in ("deciding", "also"):
            if isinstance(claim, dict) and isinstance(claim.get(group), list):
                claim[group] = [_at_scale(comparison, scale) for comparison in claim[group]]
    built = build(_Claims, document, where=str(path)).claims
    ids = [claim.id for claim in built]
    if len(set(ids)) < len(ids):
        raise ReplicationError(f"{path}: every claim needs an id of its own, got {', '.join(ids)}.")
    return built


def _at_scale(comparison: Any, scale: str) -> Any:
    if not (isinstance(comparison, dict) and isinstance(comparison.get("at"), dict)):
        return comparison
    plain = {key: value for key, value in comparison.items() if key != "at"}
    return merge(plain, comparison["at"].get(scale, {}))
