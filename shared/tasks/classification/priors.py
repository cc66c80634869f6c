"""A baseline that does not read the texts: the frequencies of the classes in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shared.errors import ReplicationError
from shared.tasks.classification.corpus import PreparedClassification
from shared.tasks.classification.evaluation import classification_examples
from shared.tasks.classification.settings import ClassificationRun, PriorConfig
from shared.tasks.examples import judged, write_examples
from shared.tasks.replication import Study


class Prior(Study):
    """Variants ``model: {prior: overall | set}``.

    Each predicts the share of each class among the training texts, with one text added per class.
    """

    def evaluate(
        self, config: ClassificationRun, *, prepared: Path, trained: Sequence[Path], out: Path
    ) -> Mapping[str, float]:
        """Judge the predictions on all test splits. A set without training texts gets the shares of all texts.

        Raises:
            ReplicationError: sets are asked for, but the data set has no keys, which name the sets.
        """
        text, by_set = PreparedClassification.load(prepared), config.checked_model(PriorConfig).prior == "set"
        labels, sets = text.split("train").labels, _sets(text, "train", by_set)
        log_probs = {name: _log_shares(labels[sets == name], len(text.classes)) for name in np.unique(sets)}
        overall = _log_shares(labels, len(text.classes))
        examples = {
            split: classification_examples(
                text, split, np.stack([log_probs.get(name, overall) for name in _sets(text, split, by_set)])
            )
            for split in config.corpus.test
        }
        out.mkdir(parents=True, exist_ok=True)
        write_examples(out, [example for records in examples.values() for example in records])
        return judged(examples)


def _sets(text: PreparedClassification, split: str, by_set: bool) -> NDArray[np.str_]:
    """(number of texts,) the name of the set of each text; the same name for all if sets are not told apart."""
    if not by_set:
        return np.full(len(text.split(split)), "")
    keys = text.keys(split)
    if keys is None:
        raise ReplicationError(
            f"the {split} texts in {text.folder} have no keys to tell their sets by; use 'prior: overall'."
        )
    return np.array([key.partition("/")[0] for key in keys])


def _log_shares(labels: NDArray[np.int64], classes: int) -> NDArray[np.float64]:
    """(C,) nats."""
    counts = np.bincount(labels, minlength=classes) + 1
    log_shares: NDArray[np.float64] = np.log(counts / counts.sum())
    return log_shares
