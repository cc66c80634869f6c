"""What a classifier answers; free of Lightning, so that models may import it."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Classified(NamedTuple):
    """What ``model(texts, masks)`` gives, where both have one (B, n) tensor per text of an example."""

    logits: Tensor
    """(B, C), one column per class."""
    attention: tuple[Tensor, ...] = ()
    """Per text (B, r, n), zero at padding, each row with the sum one; none if the model does not attend."""
    auxiliary: Tensor | None = None
    """(B,) nats, what training adds to the cross-entropy of each example: a penalty times its coefficient."""
