"""METEOR 1.5 (Denkowski & Lavie 2014): the matches of each segment, found by its program in Java.

:func:`shared.metrics.caption_scores.corpus_meteor` makes scores of them.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress

import numpy as np
from numpy.typing import NDArray

from shared.metrics.java import beside, command, failed

Integers = NDArray[np.int64]

SIZE = 23  # numbers of a segment


class Meteor(AbstractContextManager["Meteor"]):
    """One METEOR process for English, kept for many segments, since it takes 7 s to read its paraphrases and 0.6 GB.

    It ends when the ``with`` block does that it is used in.

    Raises:
        ReplicationError: pycocoevalcap or Java is missing.
    """

    def __init__(self) -> None:
        program = beside("meteor.meteor", "meteor-1.5.jar")
        arguments = command("1G", "-jar", program, "-", "-", "-stdio", "-l", "en", "-norm")
        # A pipe that nobody reads could fill up.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (at the exit it is)
        self._process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log)

    def __exit__(self, *_: object) -> None:
        self._process.kill()  # it keeps nothing
        self._process.communicate()
        self._log.close()

    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Integers:
        """What METEOR is made of, segment by segment; ``corpus_meteor`` of the sum is corpus METEOR.

        Of several references it is the one with the highest score that counts.

        Args:
            hypotheses: N segments, words separated by spaces; METEOR lowercases and cuts off punctuation.
            references: of each hypothesis, at least one.

        Returns:
            (N, 23) as METEOR's SCORE has them: words and function words of hypothesis and reference; for each of the
            four stages content words matched in hypothesis and reference, and function words likewise; chunks, words
            matched in hypothesis and reference. Of a hypothesis that is its reference METEOR adds up no chunk, so
            here it has none.

        Raises:
            ReplicationError: the process has ended, or could not start.
        """
        rows = [self._score(h, r) for h, r in zip(hypotheses, references, strict=True)]
        statistics = np.array(rows, dtype=np.int64).reshape(-1, SIZE)
        matched = statistics[:, 4:20].reshape(-1, 4, 2, 2).sum(axis=(1, 2))  # in hypothesis and reference
        identical = (matched == statistics[:, :2]).all(axis=1) & (statistics[:, 20] == 1)
        statistics[identical, 20] = 0
        return statistics

    def _score(self, hypothesis: str, references: Sequence[str]) -> list[float]:
        fields = (" ".join(text.replace("|||", "").split()) for text in (*references, hypothesis))
        return [float(number) for number in self._ask(" ||| ".join(("SCORE", *fields))).split()]

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # it has ended, and what it said can still be read
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer[:1].isdigit():  # Java says on either that it cannot start
            self._process.kill()  # were it still alive, the rest would be waited for in vain
            answer += self._process.stdout.read()
            self._log.seek(0)
            raise failed(answer or self._log.read())
        return answer.decode()
