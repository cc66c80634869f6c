"""How far FAVOR+'s estimates are from the softmax kernel exp(xᵀy): exact means and mean squared errors.

Of independent projections these are lemma 2 of Choromanski et al. (2021); of orthogonal ones the paper has a bound
(theorem 2), and here is the exact error too. An estimate is a factor times the mean over projections ω of a function of
ωᵀt, where t is x + y, or x - y for trigonometric features. All it takes is then

- E exp(ωᵀt) for a single ω, a function of ‖t‖²: exp(‖t‖²/2) for norms χ_K, ₀F₁(K/2; K‖t‖²/4) for norms √K;
- E exp((ω + ω')ᵀt) for two orthogonal ones. Their sum is a uniform direction with the norm √(‖ω‖² + ‖ω'‖²). For norms
  √K that is √(2K), for norms χ_K its square is χ² with 2K degrees of freedom, whose moments make the series of
  ₁F₁(K; K/2; ‖t‖²/2);

and cosines are exponentials of an imaginary t, whose ‖t‖² is negative. Everything is float64.

Shape letters: K width of queries and keys, P projections.
"""

from __future__ import annotations

import numpy as np
from scipy.special import hyp0f1, hyp1f1

from replications.performer.draws import Values
from shared.attention.favor import Estimator, Norms


def expected_kernel(x: Values, y: Values, *, estimator: Estimator = "positive", norms: Norms = "chi") -> Values:
    """The mean of the estimates; exp(xᵀy) itself where norms are χ_K (lemma 1).

    Args:
        x: (…, K).
        y: (…, K).
        estimator: the features.
        norms: of the projections.

    Returns:
        (…).
    """
    factor, square = _parts(x, y, estimator)
    return factor * _single(square, x.shape[-1], norms)


def kernel_mse(
    x: Values, y: Values, *, projections: int, estimator: Estimator = "positive", orthogonal: bool = True,
    norms: Norms = "chi",
) -> Values:  # fmt: skip
    """The mean squared error of the estimates of exp(xᵀy), exactly.

    Args:
        x: (…, K).
        y: (…, K).
        projections: P; orthogonal ones are in blocks of K, the last cut short.
        estimator: the features.
        orthogonal: whether projections are, or independent.
        norms: of the projections; √K adds the square of a bias.

    Returns:
        (…).
    """
    (factor, square), size = _parts(x, y, estimator), x.shape[-1]
    mean = _single(square, size, norms)
    second = _single(4 * square, size, norms)  # E exp(2ωᵀt)
    if estimator != "positive":
        second = (1 + second) / 2  # cosh² a = (1 + cosh 2a) / 2, and of cosines likewise
    variance = (second - mean**2) / projections
    if orthogonal:
        variance += _pairs(projections, size) * (_orthogonal_pair(square, size, norms) - mean**2)
    bias = factor * mean - np.exp((x * y).sum(-1))
    return factor**2 * variance + bias**2


def orthogonal_mse_bound(x: Values, y: Values, *, projections: int) -> Values:
    """What the error of positive features with orthogonal projections is at most (theorem 2), norms being χ_K.

    The paper has it for P ≤ K. Each pair of orthogonal projections takes the same from the error, so with more blocks
    than one it is the pairs within the blocks that count.

    Args:
        x: (…, K).
        y: (…, K).
        projections: P.

    Returns:
        (…).
    """
    size = x.shape[-1]
    least = np.exp(-((x**2).sum(-1) + (y**2).sum(-1)) / 2)
    gain: Values = 2 / (size + 2) * _pairs(projections, size) * (np.exp((x * y).sum(-1)) - least) ** 2
    return kernel_mse(x, y, projections=projections, orthogonal=False) - gain


def _parts(x: Values, y: Values, estimator: Estimator) -> tuple[Values, Values]:
    """The factor before the mean over projections, and ‖t‖², negative where t is imaginary."""
    half = ((x**2).sum(-1) + (y**2).sum(-1)) / 2
    if estimator == "trigonometric":
        return np.exp(half), -((x - y) ** 2).sum(-1)
    return np.exp(-half), ((x + y) ** 2).sum(-1)


def _single(square: Values, size: int, norms: Norms) -> Values:
    """E exp(ωᵀt) from ‖t‖²."""
    mean = np.exp(square / 2) if norms == "chi" else hyp0f1(size / 2, size * square / 4)
    return np.asarray(mean, np.float64)


def _orthogonal_pair(square: Values, size: int, norms: Norms) -> Values:
    """E exp((ω + ω')ᵀt) from ‖t‖²."""
    chi = norms == "chi"
    mean = hyp1f1(size, size / 2, square / 2) if chi else hyp0f1(size / 2, size * square / 2)
    return np.asarray(mean, np.float64)


def _pairs(projections: int, size: int) -> float:
    """Of all P² ordered pairs of projections, the share that are two of one block."""
    blocks, rest = divmod(projections, size)
    return (blocks * size * (size - 1) + rest * (rest - 1)) / projections**2
