"""The kinds of comparison that decide claims: what one seed's effect is, and when it agrees with the claim."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from shared.config import Strict
from shared.metrics.registry import measure, split_of


def _range(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] > bounds[1]:
        raise ValueError(f"{list(bounds)} is not a range: the lower bound stands first")
    return bounds


Range = Annotated[tuple[float, float], AfterValidator(_range)]
"""A lower and an upper bound; the range includes both."""
Condition = bool | int | str | Range


class Learned(Strict):
    """``exempt``: why both sides need not have settled, as for a claim about the speed of learning."""

    exempt: str


class Over(Strict):
    """The slope of a metric over a covariate of the examples: least squares through the bins.

    Attributes:
        covariate: field of the examples, such as the source length.
        per: what one unit of it is.
        bins: inclusive ranges ``[low, high]``, or a number of bins, equally filled.
    """

    covariate: str = "source_length"
    per: str = "source word"
    bins: int | tuple[Range, ...]

    @model_validator(mode="after")
    def _at_least_two_bins(self) -> Over:
        if (self.bins if isinstance(self.bins, int) else len(self.bins)) < 2:
            raise ValueError("a slope needs at least two bins")
        return self


class _Compared(Strict):
    """What all comparisons of runs share. Every seed has one effect, positive where it agrees with the claim.

    Attributes:
        name: what is compared, shown in the report.
        variants: whose runs are compared, in order.
        metric: a measure (`shared.metrics.registry.known`), or any number in the runs' metrics.json.
        called: what reports call a number that is no measure and so has no title; decides nothing, so no plan holds it.
        relevant: the smallest effect that matters, in the metric's unit; on the log scale a ratio above 1.
        because: why this size matters and why this task and measure decide.
        scale: ``log`` compares logarithms, and effects are ratios.
        where: which test examples count: field to a value, or to an inclusive range ``[low, high]``.
        over: compare the slope over a covariate in place of the value.
        paper: the same effect in the paper, in the same unit, where it gives one.
        doubled: the same variants with twice the updates.
        learned: ``{exempt: reason}`` where the sides need not have settled.
    """

    name: str = ""
    kind: str
    variants: tuple[str, ...]
    metric: str
    called: str | None = Field(default=None, exclude=True)
    relevant: float = Field(gt=0.0)
    because: str | None = None
    scale: Literal["plain", "log"] = "plain"
    where: dict[str, Condition] = Field(default={}, validate_default=True)
    over: Over | None = None
    paper: float | None = None
    doubled: tuple[str, ...] = ()
    learned: Learned | None = None

    @field_validator("where")
    @classmethod
    def _test_split_unless_said(cls, where: dict[str, Condition]) -> dict[str, Condition]:
        return {"split": "test"} | where

    @model_validator(mode="after")
    def _fits(self) -> _Compared:
        if self.scale == "log" and self.relevant <= 1.0:
            raise ValueError(f"on the log scale 'relevant' is a ratio above 1, not {self.relevant:g}")
        if self.scale == "log" and self.over is not None:
            raise ValueError("'over' and 'scale: log' do not go together")
        if len(set(self.variants)) < len(self.variants):
            raise ValueError("the variants that are compared must differ")
        if self.doubled and len(self.doubled) != len(self.variants):
            raise ValueError(f"'doubled' must name as many variants as 'variants': {len(self.variants)}")
        return self

    @property
    def sign(self) -> float:
        """1 where the claim says that the effect is positive as it is measured, else -1."""
        return -1.0 if self.kind in ("less", "falls") else 1.0

    @property
    def margin(self) -> float:
        """``relevant`` on the scale that effects are computed on."""
        return math.log(self.relevant) if self.scale == "log" else self.relevant

    def shown(self, effect: float) -> float:
        """An effect as reports show it: on the log scale the ratio."""
        return math.exp(effect) if self.scale == "log" else effect

    def metrics(self) -> tuple[str, ...]:
        """The metrics that are needed of every variant."""
        return (self.metric,)


class Sides(_Compared):
    """The first variant's metric against the second's, or against the number ``than`` that stands for no effect.

    ``equal``: they differ by less than ``relevant`` in either direction; or in one, where the first side ``may_be``
    greater, or less, by any amount.
    """

    kind: Literal["greater", "less", "equal"]
    variants: tuple[str, ...] = Field(min_length=1, max_length=2)
    than: float | None = None
    may_be: Literal["greater", "less"] | None = Field(default=None, exclude_if=lambda side: side is None)

    @model_validator(mode="after")
    def _two_sides(self) -> Sides:
        if self.may_be and self.kind != "equal":
            raise ValueError(f"'may_be' is of 'kind: equal', not of 'kind: {self.kind}'")
        if (len(self.variants) == 2) != (self.than is None):
            raise ValueError("give two 'variants', or one and the number to compare it with as 'than'")
        if self.scale == "log" and self.than is not None and self.than <= 0.0:
            raise ValueError("on the log scale 'than' must be positive")
        return self


class Trend(_Compared):
    """The metric rises (or falls) along ``variants``: the slope per step of the least-squares line."""

    kind: Literal["rises", "falls"]
    variants: tuple[str, ...] = Field(min_length=3)


class Correlation(_Compared):
    """Over ``variants``, Spearman's correlation between two metrics is greater than ``than``.

    Attributes:
        other: the second metric.
        direction: ``negative``, written as ``sign``, if one is to fall as the other rises.
        than: the correlation that stands for no effect.
    """

    kind: Literal["correlation"]
    variants: tuple[str, ...] = Field(min_length=6)
    other: str
    direction: Literal["positive", "negative"] = Field(default="positive", alias="sign")
    than: float = Field(default=0.0, gt=-1.0, lt=1.0)

    @model_validator(mode="after")
    def _reachable(self) -> Correlation:
        if self.scale == "log" or self.over is not None:
            raise ValueError("a correlation has neither 'scale: log' nor 'over'")
        if self.than + self.relevant >= 1.0:
            raise ValueError(f"no correlation is {self.than + self.relevant:g} or more; lower 'than' or 'relevant'")
        return self

    def bound(self, repeats: float) -> float:
        """The bound that the effect is tested to be below; chance in the runs attenuates a correlation by `repeats`."""
        return (self.than + self.margin) * repeats - self.than

    def shown(self, effect: float) -> float:
        """The effect, clipped to the range that correlations from -1 to 1 allow, which an interval may exceed."""
        return min(max(effect, -1.0 - self.than), 1.0 - self.than)

    def metrics(self) -> tuple[str, ...]:
        """Both metrics."""
        return self.metric, self.other


Comparison = Annotated[Sides | Trend | Correlation, Field(discriminator="kind")]
"""A comparison of trained or measured runs."""


class Exact(Strict):
    """An identity: a number in metrics.json equals ``value`` within ``tolerance``, or is ``at_most``, in every seed."""

    kind: Literal["exact"] = "exact"
    name: str
    variant: str
    metric: str
    value: float | None = None
    tolerance: float = Field(default=0.0, ge=0.0)
    at_most: float | None = None

    @model_validator(mode="after")
    def _one_bound(self) -> Exact:
        if (self.value is None) == (self.at_most is None):
            raise ValueError("give either 'value' or 'at_most'")
        return self

    @property
    def variants(self) -> tuple[str, ...]:
        """The one variant whose runs are needed."""
        return (self.variant,)

    def metrics(self) -> tuple[str, ...]:
        """The one metric."""
        return (self.metric,)

    def holds(self, number: float) -> bool:
        """Whether a seed's number agrees."""
        if self.value is None:
            return self.at_most is not None and number <= self.at_most
        return abs(number - self.value) <= self.tolerance


Row = Annotated[Sides | Trend | Correlation | Exact, Field(discriminator="kind")]


class Floor(Strict):
    """The value that the models of a task must reach before a comparison of them decides a claim.

    Attributes:
        at_most, at_least: the bound, one of the two.
        because: where the bound comes from.
        published: what small published systems reach on these data; the side of the paper has to, before a claim is
            contradicted.
        exempt: variant that need not reach it to the reason.
    """

    metric: str
    at_most: float | None = None
    at_least: float | None = None
    because: str
    published: float | None = None
    exempt: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_bound(self) -> Floor:
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError("give either 'at_most' or 'at_least'")
        highest = max(self.at_least or 0, self.published or 0)
        if self.at_most is None and highest > measure(split_of(self.metric)[1]).most:
            raise ValueError(f"at_least: {self.metric} is never {highest:g}")
        if self.published is not None and not self.reached(self.published):
            raise ValueError(f"published: {self.published:g} does not reach the floor")
        return self

    @property
    def bound(self) -> tuple[str, float]:
        """The bound, after what it is in words."""
        return ("at most", self.at_most or 0.0) if self.at_least is None else ("at least", self.at_least)

    def reached(self, number: float) -> bool:
        """Whether a seed's number reaches the floor."""
        word, bound = self.bound
        return number <= bound if word == "at most" else number >= bound
