"""How far FAVOR+ is from softmax attention: its kernel (lemmas 1 and 2, theorem 2) and its output (figure 4).

Random features are drawn again and again; nothing is trained and no data are read. Errors are relative: those of the
kernel to exp(xᵀy), those of attention to its exact output.

Shape letters: N draws, A angles, L positions, K width of queries and keys, P projections (m in the paper).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import get_args

import numpy as np
import torch
from torch import Tensor

from replications.performer.draws import LEVEL, Values, mean_interval, ratio_interval
from replications.performer.kernel_error import kernel_mse, orthogonal_mse_bound
from replications.performer.settings import KernelsConfig
from shared.attention.favor import Directions, Estimator, SoftmaxFeatures
from shared.attention.linear import read, summarize
from shared.attention.scaled_dot_product import attend
from shared.tasks.replication import Study
from shared.tasks.settings import RunConfig

AT_ONCE = 2000
"""Draws that are held in memory together."""
COMPARED: tuple[Estimator, ...] = ("positive", "trigonometric")
FIGURE_DIRECTIONS: tuple[Directions, ...] = ("orthogonal", "iid")
"""The directions of projections in figure 4."""

Kind = tuple[Estimator, Directions]
Draws = Mapping[Kind, Values]
"""(N, …) of every kind of features."""
OUTPUT_RATIOS: dict[str, tuple[Kind, Kind]] = {
    "trigonometric_over_positive": (("trigonometric", "orthogonal"), ("positive", "orthogonal")),
    "orthogonal_over_iid": (("positive", "orthogonal"), ("positive", "iid")),
    "trigonometric_orthogonal_over_iid": (("trigonometric", "orthogonal"), ("trigonometric", "iid")),
}
"""Name of each ratio of errors to its numerator and denominator."""


class Kernels(Study):
    """The variant ``kernels``."""

    @torch.inference_mode()
    def measure(self, config: RunConfig, seed: int) -> Mapping[str, float]:
        """The metrics of :func:`kernel_metrics` and :func:`output_metrics` for draws that the run's seed determines."""
        settings = config.checked_model(KernelsConfig)
        torch.manual_seed(seed)
        x, y = pairs(settings)
        metrics = kernel_metrics(settings, x, y, kernel_estimates(settings, x, y))
        for name, deviation in settings.inputs.items():
            metrics |= output_metrics(settings, name, *output_errors(settings, deviation))
        return metrics


def pairs(settings: KernelsConfig) -> tuple[Values, Values]:
    """x and y, (A, K) each, at every angle; their sums lie along (1, …, 1).

    Errors of uniform directions depend on norms and angles alone. The orthogonal matrix that LAPACK gives is not
    uniform: its diagonal has one sign, and the bias of all rows adds up along this direction.
    """
    half = np.radians(settings.angles)[:, None] / 2  # (A, 1)
    size = settings.key_size
    along = np.full(size, 1 / math.sqrt(size))
    across = np.eye(size)[0] - along / math.sqrt(size)
    across /= np.linalg.norm(across)
    middle, apart = np.cos(half) * along, np.sin(half) * across
    return settings.norm * (middle + apart), settings.norm * (middle - apart)


def kernel_estimates(settings: KernelsConfig, x: Values, y: Values) -> Draws:
    """Estimates of exp(xᵀy) by that value, (N, A), by features of all kinds.

    Estimators share their projections, so that errors can be compared draw by draw.
    """
    points, count = (torch.from_numpy(x), torch.from_numpy(y)), settings.kernel_projections
    found: dict[Kind, list[Tensor]] = {}
    for first, directions in itertools.product(range(0, settings.draws, AT_ONCE), get_args(Directions)):
        draws = min(AT_ONCE, settings.draws - first)
        # The projections of all draws, side by side. Each has whole blocks of K, and so none in common with another.
        features = SoftmaxFeatures(
            key_size=settings.key_size, projections=draws * count, directions=directions, scale=1.0
        )
        for features.estimator in get_args(Estimator):
            (a, log_a), (b, log_b) = (features(point) for point in points)  # (A, C) and (A,)
            terms = (a * b).unflatten(-1, (-1, draws, count)).sum((1, 3))  # (A, draws)
            # Features are divided by √(draws · P), and scaled.
            estimates = terms * draws * (log_a + log_b).exp().unsqueeze(-1)
            found.setdefault((features.estimator, directions), []).append(estimates)
    exact = np.exp((x * y).sum(-1))
    return {kind: torch.cat(parts, 1).mT.numpy() / exact for kind, parts in found.items()}


def kernel_metrics(settings: KernelsConfig, x: Values, y: Values, estimates: Draws) -> dict[str, float]:
    """Bias and squared errors, relative to exp(xᵀy), with 95 % intervals.

    Each ``<estimator>_<directions>`` has ``relative_bias``, ``mse`` and its closed form ``closed_mse``, by angle. Three
    metrics use intervals that hold at all angles together (Bonferroni): ``bias_at_most`` and ``bias_at_least`` bound
    the largest absolute bias from above and below; ``closed_mse_off_at_most`` bounds the relative error of the closed
    form from above. The ``mse_ratio`` of two estimators, by angle: ``trigonometric_over_positive`` is the r of figure 2
    with orthogonal projections, ``trigonometric_over_positive_iid`` with independent ones. For positive features,
    ``orthogonal_over_iid`` compares projections, and ``orthogonal_over_bound`` compares the error to theorem 2.
    """
    sizes = [f"_a{angle}" for angle in settings.angles]
    together = 1 - (1 - LEVEL) / len(sizes)
    exact = np.exp((x * y).sum(-1))
    squared = {kind: (found - 1) ** 2 for kind, found in estimates.items()}
    metrics: dict[str, float] = {}
    for (estimator, directions), errors in squared.items():
        subject, bias = f"{estimator}_{directions}", estimates[estimator, directions] - 1
        metrics |= mean_interval(bias).named(f"{subject}.relative_bias", sizes)
        _, low, high = mean_interval(bias, together)
        metrics[f"{subject}.bias_at_most"] = float(np.maximum(-low, high).max())
        metrics[f"{subject}.bias_at_least"] = float(np.maximum(low, -high).clip(0).max())
        metrics |= ratio_interval(errors, np.ones((1, 1))).named(f"{subject}.mse", sizes)
        if directions != "uncorrected":
            closed = kernel_mse(
                x, y, projections=settings.kernel_projections, estimator=estimator,
                orthogonal=directions == "orthogonal",
            ) / exact**2  # fmt: skip
            metrics |= {f"{subject}.closed_mse{size}": float(x) for size, x in zip(sizes, closed, strict=True)}
            _, low, high = ratio_interval(errors, closed[None], together)
            metrics[f"{subject}.closed_mse_off_at_most"] = float(np.maximum(1 - low, high - 1).max())
    bound = orthogonal_mse_bound(x, y, projections=settings.kernel_projections) / exact**2
    orthogonal, iid = squared["positive", "orthogonal"], squared["positive", "iid"]
    ratios = {
        "trigonometric_over_positive": (squared["trigonometric", "orthogonal"], orthogonal),
        "trigonometric_over_positive_iid": (squared["trigonometric", "iid"], iid),
        "orthogonal_over_iid": (orthogonal, iid),
        "orthogonal_over_bound": (orthogonal, bound[None]),
    }
    for subject, (over, under) in ratios.items():
        metrics |= ratio_interval(over, under).named(f"{subject}.mse_ratio", sizes)
    return metrics


def output_errors(settings: KernelsConfig, deviation: float) -> tuple[Draws, Draws]:
    """Errors of non-causal attention whose queries and keys have standard deviation ``deviation``, by kind of features.

    Returns:
        mean squared errors divided by the mean square of the exact output, (N, number of ``settings.projections``);
        and, in the same shape, the share of queries whose normaliser is not positive, which only trigonometric features
        can cause.
    """
    kinds = list(itertools.product(COMPARED, FIGURE_DIRECTIONS))
    errors, negative = (
        {kind: np.empty((settings.samples, len(settings.projections))) for kind in kinds} for _ in range(2)
    )
    for sample in range(settings.samples):
        q, k, v = torch.randn(3, 1, 1, settings.length, settings.key_size)
        q, k = deviation * q, deviation * k
        exact = attend(q, k, v)
        for place, directions in itertools.product(range(len(settings.projections)), FIGURE_DIRECTIONS):
            features = SoftmaxFeatures(
                key_size=settings.key_size, projections=settings.projections[place], directions=directions
            )
            for features.estimator in COMPARED:
                queries, (keys, scale) = features.queries(q), features.keys(k)
                state, kind = summarize(keys, v, log_scale=scale), (features.estimator, directions)
                error = (read(queries, state) - exact).square().mean() / exact.square().mean()
                errors[kind][sample, place] = error
                negative[kind][sample, place] = (queries @ state.sums[..., -1:] <= 0).float().mean()
    return errors, negative


def output_metrics(settings: KernelsConfig, name: str, errors: Draws, negative: Draws) -> dict[str, float]:
    """Errors are geometric means over samples, with 95 % t intervals of logarithms, for they are far from normal.

    Of every ``<estimator>_<directions>`` by P: ``output_mse_<name>`` and ``negative_normalisers_<name>``. Of
    :data:`OUTPUT_RATIOS`, on the same inputs, by P and over all P together: ``output_ratio_<name>``.

    Args:
        settings: of the study.
        name: of the inputs.
        errors: see :func:`output_errors`.
        negative: likewise.
    """
    sizes = [f"_m{count}" for count in settings.projections]
    logs = {kind: np.log(found) for kind, found in errors.items()}
    metrics: dict[str, float] = {}
    for (estimator, directions), log in logs.items():
        metrics |= mean_interval(log).exp().named(f"{estimator}_{directions}.output_mse_{name}", sizes)
    for subject, (over, under) in OUTPUT_RATIOS.items():
        ratio, quantity = logs[over] - logs[under], f"{subject}.output_ratio_{name}"
        metrics |= mean_interval(ratio).exp().named(quantity, sizes)
        metrics |= mean_interval(ratio.mean(1)).exp().named(quantity)
    for (estimator, directions), shares in negative.items():
        quantity = f"{estimator}_{directions}.negative_normalisers_{name}"
        metrics |= {f"{quantity}{size}": float(x) for size, x in zip(sizes, shares.mean(0), strict=True)}
    return metrics
