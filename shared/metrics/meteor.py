"""METEOR 1.5 (Denkowski & Lavie 2014): the match statistics of each segment, computed by its Java program.

:func:`shared.metrics.caption_scores.corpus_meteor` computes scores from the statistics.
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

SIZE = 23  # statistics per segment


class Meteor(AbstractContextManager["Meteor"]):
    """One METEOR process for English, reused for all segments: it needs 7 s to read its paraphrases, and 0.6 GB.

    It is a context manager, which ends the process on exit.

    Raises:
        ReplicationError: pycocoevalcap or Java is missing.
    """

    def __init__(self) -> None:
        program = beside("meteor.meteor", "meteor-1.5.jar")
        arguments = command("1G", "-jar", program, "-", "-", "-stdio", "-l", "en", "-norm")
        # The process would block once an unread pipe is full.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (at the exit it is)
        self._process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log)

    def __exit__(self, *_: object) -> None:
        self._process.kill()  # it keeps nothing
        self._process.communicate()
        self._log.close()

    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Integers:
        """Return the statistics of each segment; ``corpus_meteor`` of their sum is corpus METEOR.

        If a segment has several references, the statistics are those of the reference with the highest score.

        Args:
            hypotheses: N segments, words separated by spaces; METEOR lowercases them and separates punctuation.
            references: for each hypothesis at least one.

        Returns:
            (N, 23) in the order of METEOR's SCORE command: words and function words of hypothesis and reference; for
            each of the four stages the content words, and then the function words, matched in hypothesis and reference;
            chunks; words matched in hypothesis and reference. METEOR counts no chunk for a hypothesis that equals its
            reference, and so does this method.

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
        with suppress(BrokenPipeError):  # the process has ended, but its output can still be read
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer[:1].isdigit():  # Java may write that it cannot start to either stream
            self._process.kill()  # reading from a process that is still alive would block
            answer += self._process.stdout.read()
            self._log.seek(0)
            raise failed(answer or self._log.read())
        return answer.decode()
