"""fast_align (Dyer et al. 2013) from the package systran-align: wheels for Python 3.11 on Linux x86-64 only."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared.errors import ReplicationError
from shared.metrics.alignment import Links, as_links
from shared.metrics.word_aligner import Words

Table = NDArray[np.uint8]


def is_available() -> bool:
    """Return whether systran-align supports this Python and platform."""
    return importlib.util.find_spec("systran_align") is not None


class FastAlign:
    """IBM Model 2 with a diagonal prior; the two directions are combined by grow-diag-final-and.

    Args:
        forward, backward: contents of the model files that training writes.
    """

    def __init__(self, forward: Table, backward: Table) -> None:
        self._state = {"forward": forward, "backward": backward}
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / name for name in ("forward", "backward")]
            for path, table in zip(paths, (forward, backward), strict=True):
                table.tofile(path)
            self._aligner = importlib.import_module("systran_align").Aligner(*map(str, paths))

    @classmethod
    def train(cls, pairs: Sequence[tuple[Words, Words]], *, iterations: int = 5) -> FastAlign:
        """Train both directions with the options that the authors recommend: ``-d -o -v``.

        Raises:
            ReplicationError: fast_align fails.
        """
        with tempfile.TemporaryDirectory() as folder:
            text, forward, backward = (Path(folder) / name for name in ("text", "forward", "backward"))
            lines = (" ||| ".join(" ".join(_plain(side)) for side in pair) for pair in pairs if all(pair))
            text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            _train_fast_align(text, forward, backward, iterations)
            return cls(np.fromfile(forward, np.uint8), np.fromfile(backward, np.uint8))

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> FastAlign:
        """Return the aligner whose :meth:`state` is given."""
        return cls(**state)

    def state(self) -> dict[str, Any]:
        """Return the contents of the two model files."""
        return dict(self._state)

    @property
    def parameters(self) -> int:
        """0, because systran-align does not report the number of its parameters."""
        return 0

    def links(self, source: Words, target: Words) -> Links:
        """Return the links (N, 2) as source and target positions; many to many."""
        return as_links(self._aligner.align(_plain(source), _plain(target))["alignments"])

    def nll(self, source: Words, target: Words) -> float:
        """Return the negative log-likelihood of the target given the source in nats."""
        return -float(self._aligner.align(_plain(source), _plain(target))["forward_log_prob"])


def _plain(words: Words) -> list[str]:
    """Replace words equal to the separator between the two languages in the input of fast_align."""
    return [word.replace("|||", "|") for word in words]


def _train_fast_align(text: Path, forward: Path, backward: Path, iterations: int) -> None:
    """Run it in a child process with one thread, because sums over several threads differ from run to run."""
    program = (
        "import sys, systran_align; text, forward, backward, iterations = sys.argv[1:]; "
        "systran_align.generate_alignment_probabilities(text, forward, backward, iterations=int(iterations), "
        "favor_diagonal=True, optimize_tension=True, variational_bayes=True)"
    )
    command = [sys.executable, "-c", program, *map(str, (text, forward, backward, iterations))]
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=one_thread, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ReplicationError(f"fast_align failed: {last}.")
