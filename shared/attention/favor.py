"""FAVOR+ (Choromanski et al. 2021, section 2): random features whose products are, on average, a kernel of attention.

Features of the softmax kernel grow like exponentials. The feature maps here return values that cannot overflow, and
separately the logarithm of each position's scale, which depends on that position alone. With it, the causal forms of
:mod:`shared.attention.linear` rescale their state by the largest key *so far*. No constant is added to the features of
a key: divided by the largest key of the whole sequence before, they would depend on later positions.

Shape letters: T positions, K width of queries and keys, P projections, C features.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from shared.attention.feature_maps import ExactMap, FeatureMap, Features

Directions = Literal["orthogonal", "iid", "uncorrected"]
"""Directions of projections: orthogonal in blocks of K; independent; or the raw, biased Q of a QR decomposition."""
Norms = Literal["chi", "sqrt"]
"""Norms of projections: χ_K-distributed, as of Gaussian vectors; or √K, which gives the regularized kernel SMREG."""
Estimator = Literal["positive", "hyperbolic", "trigonometric"]
"""Features of the softmax kernel: exp(ωᵀx); exp(±ωᵀx); or sin ωᵀx and cos ωᵀx, whose products may be negative."""

QUERY_SCALE, KEY_SCALE = 2.0**32, 2.0**20
"""The largest positive feature of a query and of a key. The factors cancel, and powers of two round nothing."""
LEAST_QUERY = 2.0**-116
"""The least positive feature of a query. It is e^-102 times the largest one. Its product with the largest feature of a
key is well above the rounding error of float32 in sums of very small products."""
LEAST_LOG = -80.0
"""The lowest logarithm whose exponential is computed directly; below it, exp may be subnormal in float32."""


def orthogonal_blocks(
    blocks: int, size: int, *, corrected: bool = True, generator: torch.Generator | None = None,
    device: torch.device | None = None,
) -> Tensor:  # fmt: skip
    """Random orthogonal matrices, uniform over the group (Haar's measure).

    For Gaussian A = QR, Q is uniform only if the diagonal of R is positive. LAPACK does not ensure this, so the columns
    of Q are multiplied by the signs of that diagonal (Mezzadri 2007, section 4).

    Args:
        blocks: how many, independent of each other.
        size: K.
        corrected: whether to correct the signs; the official code does not, and its estimates are biased.
        generator: of the random numbers; the device's own unless given.
        device: where they are drawn.

    Returns:
        (blocks, K, K), float32.
    """
    q, r = torch.linalg.qr(torch.randn(blocks, size, size, generator=generator, device=device))
    matrices: Tensor = q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2) if corrected else q
    return matrices.mT


def random_projections(
    count: int, size: int, *, directions: Directions = "orthogonal", norms: Norms = "chi",
    generator: torch.Generator | None = None, device: torch.device | None = None,
) -> Tensor:  # fmt: skip
    """The vectors ω of section 2.4: (P, K) float32.

    With norms χ_K each row alone is Gaussian, whatever the others are. More than K rows cannot all be orthogonal: they
    are in blocks of K, independent of each other, the last of which may be cut short.

    Args:
        count: P.
        size: K.
        directions: see :data:`Directions`.
        norms: see :data:`Norms`.
        generator: of the random numbers; the device's own unless given.
        device: where they are drawn.
    """
    gaussian = torch.randn(count, size, generator=generator, device=device)
    lengths = gaussian.norm(dim=1, keepdim=True)  # (P, 1)
    if directions == "iid":
        units = gaussian / lengths
    else:
        corrected, blocks = directions == "orthogonal", -(-count // size)
        matrices = orthogonal_blocks(blocks, size, corrected=corrected, generator=generator, device=device)
        units = matrices.flatten(0, 1)[:count]
    rows: Tensor = units * (lengths if norms == "chi" else math.sqrt(size))
    return rows


class RandomFeatures(FeatureMap):
    """What feature maps with random projections share: the projections, which are drawn and never learned.

    The projections are a buffer, so a checkpoint contains them: queries and keys always use the same projections, and
    repeated evaluations of a model agree. The training code calls :meth:`redraw` at intervals of its choice.

    Args:
        key_size: K.
        projections: P, for all heads the same.
        directions: see :data:`Directions`.
        norms: see :data:`Norms`.
        scale: of xᵀy in the kernel; 1/√K unless given, as attention has it.
    """

    w: Tensor

    def __init__(
        self, *, key_size: int, projections: int, directions: Directions = "orthogonal", norms: Norms = "chi",
        scale: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.directions, self.norms = directions, norms
        self.root = math.sqrt(1 / math.sqrt(key_size) if scale is None else scale)
        self.register_buffer("w", torch.empty(projections, key_size))
        self.redraw()

    @torch.no_grad()
    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Draw all projections anew.

        Args:
            generator: of the random numbers, on the projections' device; that device's own unless given.
        """
        (count, size), device = self.w.shape, self.w.device
        rows = random_projections(
            count, size, directions=self.directions, norms=self.norms, generator=generator, device=device
        )
        self.w.copy_(rows)

    def size(self, key_size: int) -> int:
        """P, for queries and keys of the K it was built for."""
        return self.w.size(0)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(…, T, K) to itself times √scale, and its projections (…, T, P); both in float32 at least.

        Features are exponentials of projections, so a rounding error of a projection becomes a factor of its feature.
        """
        x = x.to(torch.promote_types(x.dtype, torch.float32)) * self.root
        with torch.autocast(x.device.type, enabled=False):
            return x, x @ self.w.to(x.dtype).t()


class SoftmaxFeatures(RandomFeatures):
    """φ with E φ(x)ᵀφ(y) = exp(scale · xᵀy) (section 2.3, lemma 1), without bias if norms are χ_K.

    Args:
        estimator: see :data:`Estimator`. Positive features are as many as projections, the others twice as many.
        key_size: K.
        projections: P.
        directions: see :data:`Directions`.
        norms: see :data:`Norms`.
        scale: see :class:`RandomFeatures`.
    """

    def __init__(
        self, *, key_size: int, projections: int, estimator: Estimator = "positive",
        directions: Directions = "orthogonal", norms: Norms = "chi", scale: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(key_size=key_size, projections=projections, directions=directions, norms=norms, scale=scale)
        self.estimator = estimator

    def size(self, key_size: int) -> int:
        """P or 2 P."""
        return self.w.size(0) * (1 if self.estimator == "positive" else 2)

    def forward(self, x: Tensor) -> Features:
        """(…, T, K) to φ (…, T, C): values in [0, 1], a position's largest 1; trigonometric ones lie in [-1, 1]."""
        y, projected = self.project(x)
        if self.estimator == "trigonometric":
            half = y.square().sum(-1, keepdim=True) / 2  # (…, T, 1)
            log = half.detach()
            values = torch.cat((projected.sin(), projected.cos()), dim=-1) * (half - log).exp()
            return Features(values.to(x.dtype), log.squeeze(-1) - math.log(projected.size(-1)) / 2)
        both = projected if self.estimator == "positive" else torch.cat((projected, -projected), dim=-1)
        half = y.square().sum(-1, keepdim=True) / 2  # (…, T, 1)
        top, log = both.detach().amax(-1, keepdim=True), half.detach()
        logs = both - (top + (half - log))  # half - log is 0 and carries the gradient of half
        return Features(logs.exp().to(x.dtype), (top - log).squeeze(-1) - math.log(both.size(-1)) / 2)

    def queries(self, x: Tensor) -> Tensor:
        """φ(x) up to a factor per position: (…, T, K) to (…, T, C).

        Positive features are clamped to the range from :data:`LEAST_QUERY` to :data:`QUERY_SCALE`. Without the lower
        bound a normaliser could underflow to zero in float32: the features of a query and of the only key it sees may
        be large at different projections. The bound changes only results whose normaliser is of its order of
        magnitude. The result is float32 for queries in float16, which cannot represent the bounds.
        """
        if self.estimator == "trigonometric":
            features: Features = self(x)
            return features.values
        return self._exponentials(x, QUERY_SCALE, LEAST_QUERY)[0]

    def keys(self, x: Tensor, mask: Tensor | None = None) -> Features:
        """See :class:`shared.attention.feature_maps.FeatureMap`; positive features are all times :data:`KEY_SCALE`."""
        if self.estimator == "trigonometric":
            features: Features = self(x)
            return features.masked(mask)
        values, top, y = self._exponentials(x, KEY_SCALE, 0.0)
        log_scale = (top - y.square().sum(-1, keepdim=True) / 2).squeeze(-1) - math.log(values.size(-1)) / 2
        return Features(values, log_scale).masked(mask)

    def _exponentials(self, x: Tensor, *bounds: float) -> tuple[Tensor, Tensor, Tensor]:
        dtype, both_signs = torch.promote_types(x.dtype, torch.float32), self.estimator == "hyperbolic"
        with torch.autocast(x.device.type, enabled=False):
            given = x.to(dtype), self.w.to(dtype), self.root, both_signs
            values, top, y = _Exponentials.apply(*given, *bounds)  # type: ignore[no-untyped-call]
        return values.to(torch.float32 if x.dtype == torch.float16 else x.dtype), top, y

    def kernel(self, x: Tensor, y: Tensor) -> Tensor:
        """The estimates of exp(scale · xᵀy): (…, T, K) and (…, S, K) to (…, T, S)."""
        (a, log_a), (b, log_b) = self(x), self(y)
        estimates: Tensor = a @ b.mT * (log_a.unsqueeze(-1) + log_b.unsqueeze(-2)).exp()
        return estimates


class _Exponentials(torch.autograd.Function):
    """What :meth:`SoftmaxFeatures.forward` makes of (…, T, K), times a factor and with a lower bound, in few passes.

    The features take the place of the projections in memory. The gradient is computed from the features, since each is
    its own derivative with respect to the exponent ωᵀx - |x|²/2. Returned are the features (…, T, C), the largest
    projection of each position (…, T, 1) and the inputs times √scale (…, T, K); only the features have a gradient.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, w: Tensor, root: float, both_signs: bool, factor: float, least: float
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        y = torch.mul(x, root, out=torch.empty_like(x, memory_format=torch.contiguous_format))
        values = y @ w.t()
        if both_signs:
            values = torch.cat((values, -values), dim=-1)
        top = values.amax(-1, keepdim=True)
        ctx.bounded = bool(values.sub_(top).amin() < LEAST_LOG)
        if ctx.bounded:  # exp alone would be too small for float32, not exp times the factor
            rest = (values - LEAST_LOG).clamp_(max=0).exp_()  # 1 where the logarithm is larger
            values.clamp_(min=LEAST_LOG).exp_().mul_(factor).mul_(rest).clamp_(min=least)
        else:
            values.exp_().mul_(factor)
        ctx.save_for_backward(values, y, w)
        ctx.root, ctx.both_signs, ctx.least = root, both_signs, least
        ctx.mark_non_differentiable(top, y)
        return values, top, y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_values: Tensor, *_: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        values, y, w = ctx.saved_tensors
        d = d_values * values
        if ctx.bounded and ctx.least:
            d.masked_fill_(values == ctx.least, 0)
        d_half = -d.sum(-1, keepdim=True)
        if ctx.both_signs:
            positive, negative = d.chunk(2, dim=-1)
            d = positive - negative
        return (d @ w).add_(y * d_half).mul_(ctx.root), None, None, None, None, None


class GeneralizedFeatures(RandomFeatures, ExactMap):
    """φ(x) = f(ωᵀx) + ε, generalized attention (section 2.2), up to the factor 1/√P, which cancels.

    With f = ReLU it is the paper's Performer-ReLU. Without projections it is
    :class:`shared.attention.feature_maps.ReLU`.

    Args:
        key_size: K.
        projections: P, which is C.
        f: elementwise, and nowhere negative.
        epsilon: ε; 1e-3 in the paper.
        directions: see :data:`Directions`.
        norms: see :data:`Norms`.
        scale: see :class:`RandomFeatures`.
    """

    def __init__(
        self, *, key_size: int, projections: int, f: Callable[[Tensor], Tensor] = nn.functional.relu,
        epsilon: float = 1e-3, directions: Directions = "orthogonal", norms: Norms = "chi", scale: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(key_size=key_size, projections=projections, directions=directions, norms=norms, scale=scale)
        self.f, self.epsilon = f, epsilon

    def forward(self, x: Tensor) -> Tensor:
        """(…, T, K) to (…, T, P)."""
        return (self.f(self.project(x)[1]) + self.epsilon).to(x.dtype)
