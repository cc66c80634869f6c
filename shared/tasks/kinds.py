"""The kinds of task, the one place where a kind is registered; and the papers, by name.

A kind is a package ``shared.tasks.<kind>``. Its modules are imported when they are first asked for: nothing waits for
the other kinds, and settings, measures and reports need no torch.

* ``settings`` has ``RUN``, the settings of a variant.
* ``corpus`` has ``prepare(corpus, dataset, out)``, which turns a fetched data set into what training reads and returns
  a summary; where there are pictures, ``features(corpus, dataset, out)`` encodes them first. ``PREPARED`` is the class
  of what was prepared, a :class:`shared.tasks.batches.Prepared`. It has ``sizes``, the two arguments of ``build_model``
  that depend on the data; ``batches(training, seed)``, from a batch's number to that batch of training and all that
  follow it; and ``valid(training)``, the batches of the validation split.
* ``module`` says what a model must be able to do. ``module(model, config, data)`` returns the
  :class:`shared.training.module.TrainingModule`; ``data`` is None for one that is not validated.
  ``random_batch(config)`` returns a batch of random symbols as large as in training, and such ``sizes``.
* ``evaluation`` has ``evaluate(replication, config, data, trained, out)``, which judges one trained seed, or several
  together as an ensemble, by their folders, and returns metrics. Where these have signatures, it has
  ``describe(config)``, for the reader of ``metrics.json``: ``signatures``, and what one ``token`` is, else the corpus'
  ``unit``.
* ``measures`` registers the kind's measures; ``report`` has ``REPORT``, what reports of the kind show.
* ``trial`` has ``try_input(model, data, config, asked, seed)``, which gives a trained model one input.
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.config import check_name
from shared.errors import ReplicationError

if TYPE_CHECKING:
    from shared.tasks.replication import Replication
    from shared.tasks.settings import RunConfig

KINDS = ("translation", "classification", "captioning", "language", "sequences", "sets")


def part_of(kind: str, part: str) -> Any:
    """A module of a kind, such as its ``settings``.

    Raises:
        ReplicationError: there is no such kind.
    """
    check_name(kind, KINDS, "there is no kind of task")
    with large_imports():
        return importlib.import_module(f"shared.tasks.{kind}.{part}")


def open_data(config: RunConfig, prepared: Path) -> Any:
    """What the prepare stage left of a variant's task in a folder."""
    return part_of(config.kind, "corpus").PREPARED(prepared, config.corpus)


def load_measures(*kinds: str) -> None:
    """Register the measures that several kinds have, and those of some kinds, of all by default."""
    import shared.metrics.measures  # noqa: F401

    for kind in kinds or KINDS:
        part_of(kind, "measures")


def papers() -> list[str]:
    """All papers of the project."""
    return sorted(file.parent.name for file in Path("replications").glob("*/variants.yaml"))


def load_replication(paper: str) -> Replication:
    """Import ``replications.<paper>.replication``.

    Raises:
        ReplicationError: there is no such module, or it has no ``REPLICATION``.
    """
    file = Path("replications", paper, "replication.py")
    if not file.is_file():
        raise ReplicationError(f"there is no {file}; see 'Add a paper' in CONTRIBUTING.md.")
    module = importlib.import_module(f"replications.{paper}.replication")
    if not hasattr(module, "REPLICATION"):
        raise ReplicationError(f"{file} does not define REPLICATION; let it say how models are built.")
    return module.REPLICATION


@contextmanager
def large_imports() -> Iterator[None]:
    """Turn garbage collection off for imports of torch or Lightning: it frees nothing and takes a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
