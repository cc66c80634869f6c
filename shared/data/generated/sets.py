"""The generated tasks `maxima` and `mixtures`: sets of vectors, with a number or a mixture of Gaussians to be found.

Every split is a file ``<split>.npz`` of arrays, of N sets with P elements in all: ``elements`` (P, X), set after set;
``sizes`` (N,), how many each has; ``targets`` (N, T). Numbers are float32, on a grid of 2⁻²⁰.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import PositiveInt

from shared.data.generated.words import Generated, Lengths
from shared.data.splits import Accompanied

Floats = NDArray[np.float64]
GRID = 2**20
SPREAD, FARTHEST = 0.3, 4.0
"""Standard deviation of a cluster, and the largest coordinate of its centre, in the code of Lee et al. (2019)."""


class Sets(Generated[PositiveInt]):
    """Parameters of both tasks, whose splits are numbers of sets.

    Attributes:
        sizes: least and largest number of elements of a set; each number between is as likely.
    """

    sizes: Lengths


class Mixtures(Sets):
    """Parameters of `mixtures`; ``components``: number of Gaussians of a set, some of which may have no element."""

    components: PositiveInt


class Mixture(NamedTuple):
    """Of sets whose target is a mixture, their parameters: weights (…, K), centres (…, K, 2), spreads (…, K, 2)."""

    weights: Floats
    means: Floats
    scales: Floats


def mixture_of(targets: NDArray[np.floating]) -> Mixture:
    """The mixtures that targets (…, 5 K) of `mixtures` stand for."""
    weights, means, scales = np.split(targets.astype(np.float64).reshape(*targets.shape[:-1], -1, 5), [1, 3], axis=-1)
    return Mixture(weights[..., 0], means, scales)


def maxima(parameters: Sets) -> Accompanied:
    """Sets of uniform numbers from 0 to 1, whose largest is to be found (Lee et al. 2019, section 5.1)."""

    def draw(rng: Generator, size: int) -> tuple[Floats, Floats]:
        numbers = rng.random((size, 1))
        return numbers, numbers.max(axis=0)

    return _drawn(parameters, draw)


def mixtures(parameters: Mixtures) -> Accompanied:
    """Points of the plane that mixtures of Gaussians are drawn of, as Lee et al. (2019, section 5.3) draw them.

    Weights are uniform on the simplex, centres in a square, and all spreads are alike. The target of a set has for each
    Gaussian its weight, its centre and its spread in both directions.
    """
    count = parameters.components

    def draw(rng: Generator, size: int) -> tuple[Floats, Floats]:
        weights, means = rng.dirichlet(np.ones(count)), rng.uniform(-FARTHEST, FARTHEST, (count, 2))
        points = means[rng.choice(count, size, p=weights)] + SPREAD * rng.standard_normal((size, 2))
        return points, np.concatenate((weights[:, None], means, np.full((count, 2), SPREAD)), axis=1).ravel()

    return _drawn(parameters, draw)


def _drawn(parameters: Sets, draw: Callable[[Generator, int], tuple[Floats, Floats]]) -> Accompanied:
    """The files of all splits, from what draws the elements and the target of a set of so many."""
    files = {}
    for split, count in parameters.splits.items():
        rng = np.random.default_rng([parameters.seed, *split.encode()])
        sets = (draw(rng, int(rng.integers(*parameters.sizes, endpoint=True))) for _ in range(count))
        elements, targets = zip(*sets, strict=True)
        files[f"{split}.npz"] = _packed(np.concatenate(elements), np.array([*map(len, elements)]), np.stack(targets))
    return Accompanied({}, files)


def _packed(elements: Floats, sizes: NDArray[np.int64], targets: Floats) -> bytes:
    """A file of sets as its bytes, always the same ones.

    Python before 3.11.4 writes sizes and a version where later ones say that the sizes stand in a field of 64 bits.
    """
    file = io.BytesIO()
    np.savez(file, elements=_on_grid(elements), sizes=sizes, targets=_on_grid(targets))
    packed = bytearray(file.getvalue())
    with zipfile.ZipFile(file) as archive:
        at = archive.start_dir  # of the entries that follow the members
        for member in archive.infolist():
            begin, at = member.header_offset, packed.index(b"PK\1\2", at) + 4
            packed[begin + 18 : begin + 26] = b"\xff" * 8
            packed[begin + 4] = packed[at] = packed[at + 2] = 45
    return bytes(packed)


def _on_grid(numbers: Floats) -> NDArray[np.float32]:
    return (np.rint(numbers * GRID) / GRID).astype(np.float32)
