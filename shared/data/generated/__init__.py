"""Generated tasks: synthetic corpora whose truth is known, with the same bytes on every machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, get_type_hints

from shared.config import Strict, build, check_name
from shared.data.generated import cues, sequences, sets, translation
from shared.data.splits import Corpus


class Task(NamedTuple):
    """A generated task: the class of its parameters, and the function that makes the corpus."""

    parameters: type[Strict]
    make: Callable[[Any], Corpus]


_MAKERS: tuple[Callable[[Any], Corpus], ...] = (
    translation.adjacent_swap, translation.agreement, sequences.copy, cues.documents,
    translation.exchanged_halves, translation.grammar, sets.maxima, sets.mixtures, translation.noisy_swap,
    sequences.pictures, sequences.proteins, sequences.recall, cues.tally,
)  # fmt: skip
TASKS = {make.__name__: Task(get_type_hints(make)["parameters"], make) for make in _MAKERS}
"""Generated tasks by name."""


def generate(task: str, parameters: Mapping[str, Any]) -> Corpus:
    """Generate the corpus of the task of the given name.

    Raises:
        ReplicationError: there is no such task, or its parameters are invalid.
    """
    check_name(task, TASKS, "there is no generated task")
    chosen = TASKS[task]
    return chosen.make(build(chosen.parameters, parameters, where=f"parameters of the generated task '{task}'"))
