"""Generated tasks: synthetic corpora whose truth is known, with the same bytes on every machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from shared.config import Strict, build, near
from shared.data.generated import cues, grammar, recall, sequences, translation
from shared.data.splits import Corpus
from shared.errors import ReplicationError


class Task(NamedTuple):
    """A generated task: the class of its parameters, and the function that makes the corpus."""

    parameters: type[Strict]
    make: Callable[[Any], Corpus]


TASKS: dict[str, Task] = {
    "adjacent_swap": Task(translation.AdjacentSwap, translation.adjacent_swap),
    "agreement": Task(translation.Agreement, translation.agreement),
    "copy": Task(sequences.Copy, sequences.copy),
    "evidence": Task(cues.Evidence, cues.evidence),
    "exchanged_halves": Task(translation.ExchangedHalves, translation.exchanged_halves),
    "grammar": Task(grammar.Grammar, grammar.grammar),
    "noisy_swap": Task(translation.NoisySwap, translation.noisy_swap),
    "pictures": Task(sequences.Pictures, sequences.pictures),
    "proteins": Task(sequences.Proteins, sequences.proteins),
    "recall": Task(recall.Recall, recall.recall),
    "tally": Task(cues.Tally, cues.tally),
}
"""Generated tasks by name."""


def generate(task: str, parameters: Mapping[str, Any]) -> Corpus:
    """Generate the corpus of the task of the given name.

    Raises:
        ReplicationError: there is no such task, or its parameters are invalid.
    """
    if task not in TASKS:
        raise ReplicationError(f"there is no generated task '{task}'{near(task, TASKS)}.")
    chosen = TASKS[task]
    return chosen.make(build(chosen.parameters, parameters, where=f"parameters of the generated task '{task}'"))
