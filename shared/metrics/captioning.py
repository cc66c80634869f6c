"""Metrics of image captions with several references each, as the captioning papers report them (Chen et al. 2015).

The metrics are those of pycocoevalcap. Every image gets statistics whose sum or mean gives the corpus score, so that a
bootstrap can resample images (:mod:`shared.metrics.caption_scores`). Texts are words separated by spaces, as
:func:`tokenised` returns them.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shared.errors import ReplicationError
from shared.metrics.java import beside, coco, command, require_java, require_package, run
from shared.metrics.meteor import Meteor

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
References = Sequence[Sequence[str]]

Metric = Literal["bleu", "meteor", "rouge_l", "cider", "spice"]
METRICS: tuple[Metric, ...] = ("bleu", "meteor", "rouge_l", "cider", "spice")
Tokenisation = Literal["ptb", "none"]
"""``ptb``: Stanford's Penn Treebank tokeniser without punctuation, for running text; ``none``: for tokenised text."""
_SPICE_MODELS = ("stanford-corenlp-3.6.0.jar", "stanford-corenlp-3.6.0-models.jar")


class CaptionScorer(AbstractContextManager["CaptionScorer"]):
    """Scores captions; a context manager, which ends its METEOR process on exit.

    Args:
        metrics: names of the metrics. BLEU alone, of tokenised text, needs neither Java nor pycocoevalcap.
        tokenisation: how the captions are tokenised before they are scored.

    Raises:
        ReplicationError: a requirement of the metrics is missing; the message says how to install it.
    """

    def __init__(self, metrics: Collection[Metric] = METRICS, *, tokenisation: Tokenisation = "ptb") -> None:
        require_scorers(metrics, tokenisation)
        self._tokenisation = tokenisation
        self._missing = spice_missing() if "spice" in metrics else None
        self._open = ExitStack()
        functions: dict[Metric, Callable[[Sequence[str], References], NDArray[Any]]] = {
            "bleu": bleu_statistics, "rouge_l": rouge_l, "cider": cider, "spice": spice
        }  # fmt: skip
        if "meteor" in metrics:
            functions["meteor"] = self._open.enter_context(Meteor()).statistics
        absent = {"spice"} if self._missing else set()
        self._functions = {name: functions[name] for name in METRICS if name in {*metrics} - absent}

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def statistics(self, hypotheses: Sequence[str], references: References) -> list[dict[str, Any]]:
        """Return the statistics of every image as values that JSON can hold; the measures read them as ``caption``.

        Args:
            hypotheses: the captions of all N images of a split; CIDEr weights words by their rarity in the whole split.
            references: for each image at least one caption.

        Returns:
            N dictionaries with the requested metrics: ``bleu`` (10 numbers), ``meteor`` (23), ``rouge_l``, ``cider``
            and ``spice``.

        Raises:
            ReplicationError: an image has no reference, or a Java program fails.
        """
        bare = [number for number, captions in enumerate(references) if not captions]
        if bare:
            raise ReplicationError(f"image {bare[0]} of the split has no reference caption; leave it out.")
        if self._tokenisation == "ptb":
            hypotheses, references = _all_tokenised(hypotheses, references)
        columns = {name: of(hypotheses, references).tolist() for name, of in self._functions.items()}
        return [{name: column[i] for name, column in columns.items()} for i in range(len(hypotheses))]

    def signatures(self) -> dict[str, str]:
        """Return for each metric the version that computed it, or why it was not computed."""
        words = "words of the Stanford PTB tokeniser" if self._tokenisation == "ptb" else "words as they are"
        package = f"pycocoevalcap {version('pycocoevalcap')}" if {*self._functions} - {"bleu"} else ""
        texts: dict[Metric, str] = {
            "bleu": f"sacreBLEU {version('sacrebleu')}, closest reference length, not smoothed",
            "meteor": f"METEOR 1.5 -l en -norm, {package}",
            "rouge_l": f"{package}, β = 1.2",
            "cider": f"{package}, document frequencies of this split's references",
            "spice": f"SPICE 1.0, {package}",
        }
        made: dict[str, str] = {metric: f"{texts[metric]}, {words}" for metric in self._functions}
        return made if self._missing is None else made | {"spice": f"not computed: {self._missing}"}


def require_scorers(metrics: Collection[Metric], tokenisation: Tokenisation) -> None:
    """Check the requirements of the metrics before any caption is decoded.

    Raises:
        ReplicationError: pycocoevalcap or Java is missing; the message says how to install it.
    """
    if tokenisation == "ptb" or {*metrics} - {"bleu"}:
        require_package()
    if tokenisation == "ptb" or {"meteor", "spice"} & {*metrics}:
        require_java()


def tokenised(captions: Sequence[str]) -> list[str]:
    """Return lower-case words of the Stanford Penn Treebank tokeniser, without punctuation, separated by spaces.

    Java is started once for all captions.

    Raises:
        ReplicationError: pycocoevalcap or Java is missing, or fails.
    """
    punctuation = {*coco("tokenizer.ptbtokenizer").PUNCTUATIONS}
    program = beside("tokenizer.ptbtokenizer", "stanford-corenlp-3.4.1.jar")
    options = ("-preserveLines", "-lowerCase", "-encoding", "UTF-8")
    arguments = command("1G", "-cp", program, "edu.stanford.nlp.process.PTBTokenizer", *options)
    # Every character that the tokeniser takes for a line end is white space to Python.
    lines = run(arguments, "".join(f"{' '.join(caption.split())}\n" for caption in captions)).split("\n")[:-1]
    if len(lines) != len(captions):
        raise ReplicationError(
            f"the PTB tokeniser made {len(lines)} lines of {len(captions)} captions; look for odd characters in them."
        )
    return [" ".join(word for word in line.split(" ") if word not in punctuation) for line in lines]


def bleu_statistics(hypotheses: Sequence[str], references: References) -> Integers:
    """Return the statistics of BLEU with several references per image; ``corpus_bleu`` of their sum is corpus BLEU.

    Returns:
        (N, 10): hypothesis length; length of the closest reference (the shorter of ties); matches of 1- to 4-grams,
        each clipped to its largest count in one reference; number of 1- to 4-grams in the hypothesis.
    """
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU(tokenize="none", effective_order=True, force=True)  # silences a warning
    scores = (metric.sentence_score(h, list(r)) for h, r in zip(hypotheses, references, strict=True))
    rows = [[s.sys_len, s.ref_len, *s.counts, *s.totals] for s in scores]
    return np.array(rows, dtype=np.int64).reshape(-1, 10)


def rouge_l(hypotheses: Sequence[str], references: References) -> Floats:
    """Return ROUGE-L (Lin 2004) of each image by pycocoevalcap, 0 to 1: (N,); the corpus score is their mean.

    It is the F-measure of the longest common subsequence; recall and precision are each the maximum over references.
    """
    score = coco("rouge.rouge").Rouge().calc_score
    scores = [score([h], list(r)) for h, r in zip(hypotheses, references, strict=True)]
    return np.array(scores, dtype=np.float64)


def cider(hypotheses: Sequence[str], references: References) -> Floats:
    """Return CIDEr-D (Vedantam et al. 2015) of each image by pycocoevalcap, 0 to 10: (N,); the corpus has their mean.

    The weight of an n-gram is its inverse document frequency over the images, so the N images must be a whole split; a
    single image scores 0. A bootstrap of the means keeps these weights.
    """
    scorer = coco("cider.cider_scorer").CiderScorer()
    for hypothesis, captions in zip(hypotheses, references, strict=True):
        scorer += (hypothesis, list(captions))
    return np.array(scorer.compute_score()[1], dtype=np.float64)


def spice(hypotheses: Sequence[str], references: References) -> Floats:
    """Return SPICE (Anderson et al. 2016) of each image, 0 to 1: (N,); the corpus score is their mean.

    Raises:
        ReplicationError: the models of its parser are missing, see :func:`spice_missing`, or Java fails.
    """
    if missing := spice_missing():
        raise ReplicationError(f"SPICE cannot be computed: {missing}; put them there.")
    pairs = enumerate(zip(hypotheses, references, strict=True))
    images = [{"image_id": i, "test": h, "refs": list(r)} for i, (h, r) in pairs]
    with tempfile.TemporaryDirectory() as folder:
        captions, scores = Path(folder) / "captions.json", Path(folder) / "scores.json"
        captions.write_text(json.dumps(images), encoding="utf-8")
        program = beside("spice.spice", "spice-1.0.jar")
        run(command("8G", "-jar", program, captions, "-out", scores, "-silent"))
        found = {of["image_id"]: of["scores"]["All"]["f"] for of in json.loads(scores.read_text("utf-8"))}
    return np.array([found[i] for i in range(len(images))], dtype=np.float64)


def spice_missing() -> str | None:
    """Return why SPICE cannot be computed; None if the models of its parser, which it comes without, are installed."""
    if all(beside("spice.spice", "lib", name).exists() for name in _SPICE_MODELS):
        return None
    return f"{' and '.join(_SPICE_MODELS)} are not in pycocoevalcap/spice/lib"


def _all_tokenised(hypotheses: Sequence[str], references: References) -> tuple[list[str], list[list[str]]]:
    words = iter(tokenised([*hypotheses, *(caption for captions in references for caption in captions)]))
    return [next(words) for _ in hypotheses], [[next(words) for _ in captions] for captions in references]
