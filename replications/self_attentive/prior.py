"""A baseline that does not read the texts: the frequencies of the classes in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from replications.self_attentive.settings import PriorConfig
from shared.errors import ReplicationError
from shared.tasks.classification.corpus import PreparedClassification
from shared.tasks.classification.evaluation import classification_examples
from shared.tasks.classification.settings import ClassificationRun
from shared.tasks.examples import write_records
from shared.tasks.replication import Study


class Prior(Study):
    """Predicts the share of each class among the training texts, with one text added per class."""

    def evaluate(
        self, config: ClassificationRun, *, prepared: Path, trained: Sequence[Path], out: Path
    ) -> Mapping[str, float]:
        """Judge the predictions on all test splits. A set without training texts gets the shares of all texts.

        Raises:
            ReplicationError: sets are asked for, but the data set has no keys, which name the sets.
        """
        text = PreparedClassification.load(prepared)
        by_set = config.checked_model(PriorConfig).prior == "set"
        labels = text.split("train").labels

        def sets(split: str) -> list[str]:
            """Of each text the name of its set; the same name for all if sets are not told apart."""
            keys = text.keys(split) if by_set else [""] * len(text.split(split))
            if keys is None:
                raise ReplicationError(
                    f"the {split} texts in {text.folder} have no keys to tell their sets by; use 'prior: overall'."
                )
            return [key.partition("/")[0] for key in keys]

        def log_shares(chosen: np.ndarray) -> np.ndarray:
            """(C,) nats."""
            counts = np.bincount(labels[chosen], minlength=len(text.classes)) + 1
            return np.asarray(np.log(counts / counts.sum()))

        trained_on = np.array(sets("train"))
        overall = log_shares(np.ones(len(labels), dtype=bool))
        of_set = {str(name): log_shares(trained_on == name) for name in np.unique(trained_on)}
        examples = {
            split: classification_examples(text, split, np.stack([of_set.get(name, overall) for name in sets(split)]))
            for split in config.corpus.test
        }
        return write_records(out, examples)
