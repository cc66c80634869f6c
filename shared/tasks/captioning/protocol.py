"""What a captioner answers; free of Lightning, so that models may import it."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Captioned(NamedTuple):
    """What ``model(features, captions, regions)`` gives of B captions of T symbols and pictures with L places."""

    nats: Tensor
    """(B, T), minus the log-probability of each symbol after those before it; zero at padding."""
    attention: Tensor | None = None
    """(B, T, L), with what weights each symbol was predicted; none if the model does not attend."""
    gates: Tensor | None = None
    """(B, T), the factor β on what is attended to at each symbol; none if the model has no such gate."""
    auxiliary: Tensor | None = None
    """(B,) nats, what training adds to the summed nats of each caption: penalties, an estimator's surrogate."""
