"""The numbers and the lengths of the sentences of a generated split."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from shared.config import Strict


def _range(bucket: tuple[int, int]) -> tuple[int, int]:
    if not 1 <= bucket[0] <= bucket[1]:
        raise ValueError(f"{list(bucket)} is not a range of lengths")
    return bucket


class Buckets(Strict):
    """Sentences of one split: ``per_bucket`` of each length range, both ends included, in this order."""

    buckets: tuple[Annotated[tuple[int, int], AfterValidator(_range)], ...] = Field(min_length=1)
    per_bucket: int = Field(gt=0)
