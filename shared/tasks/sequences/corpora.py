"""What the settings of a corpus have in common, whatever it is a corpus of."""

from __future__ import annotations

from pydantic import Field, model_validator

from shared.config import Strict


class CorpusConfig(Strict):
    """Which data set a task is of, and on which of its splits models are judged.

    With ``left_out``, the reason, the task is neither fetched nor prepared, and none of its variants is run.
    """

    dataset: str
    test: list[str] = Field(default=["test"], min_length=1)
    left_out: str | None = Field(default=None, min_length=1)

    @property
    def splits(self) -> list[str]:
        """All splits of the task."""
        return ["train", "valid", *self.test]

    @model_validator(mode="after")
    def _the_report_is_of_the_first(self) -> CorpusConfig:
        if self.test[0] != "test":
            raise ValueError("the first of 'test' must be the split 'test', which the report is of")
        if len(set(self.splits)) < len(self.splits):
            raise ValueError("'test' must name every split once, and neither 'train' nor 'valid'")
        return self
