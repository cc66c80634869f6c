"""Metrics of image captions with several references each, as the captioning papers report them (Chen et al. 2015).

The metrics are those of pycocoevalcap. Every image gets statistics whose sum or mean gives the corpus score, so that a
bootstrap can resample images. Texts are words separated by spaces, as
:func:`tokenised` returns them.

This module runs the Java programs of pycocoevalcap (METEOR, the PTB tokeniser and SPICE) itself: the package's own
classes write into the installation folder and leave their processes running.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shared.errors import ReplicationError
from shared.metrics import translation

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
References = Sequence[Sequence[str]]

Metric = Literal["bleu", "meteor", "rouge_l", "cider", "spice"]
METRICS: tuple[Metric, ...] = ("bleu", "meteor", "rouge_l", "cider", "spice")
Tokenisation = Literal["ptb", "none"]
"""``ptb``: Stanford's Penn Treebank tokeniser without punctuation, for running text; ``none``: for tokenised text."""
_SPICE_MODELS = ("stanford-corenlp-3.6.0.jar", "stanford-corenlp-3.6.0-models.jar")
METEOR_SIZE = 23  # statistics per segment
# Default parameters of METEOR 1.5 for English, tuned to human rankings (Denkowski & Lavie 2014).
ALPHA, BETA, GAMMA, DELTA = 0.85, 0.2, 0.6, 0.75
STAGES = (1.0, 0.6, 0.8, 0.6)  # weights of matches by equal words, stems, synonyms and paraphrases


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
            ReplicationError: a Java program fails.
        """
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
    """Return the statistics of BLEU with several references per image; their sum gives corpus BLEU, not smoothed."""
    return translation.bleu_statistics(hypotheses, references, tokenise="none")


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
        statistics = np.array(rows, dtype=np.int64).reshape(-1, METEOR_SIZE)
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


def corpus_meteor(sums: ArrayLike) -> Floats:
    """Return METEOR of summed statistics, equal to the result of its EVAL command (Denkowski & Lavie 2014).

    Args:
        sums: (…, 23).

    Returns:
        (…) from 0 to 100; 0 where no word matches.
    """
    sums = np.asarray(sums, dtype=np.float64)
    words, function_words = sums[..., :2], sums[..., 2:4]  # (…, 2): of the hypothesis and of the reference
    stages = sums[..., 4:20].reshape(*sums.shape[:-1], 4, 4)
    content, function = np.split(np.einsum("s,...sk->...k", STAGES, stages), 2, axis=-1)
    chunks, matched = sums[..., 20], sums[..., 21:].mean(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = (DELTA * content + (1 - DELTA) * function) / (
            DELTA * (words - function_words) + (1 - DELTA) * function_words
        )
        precision, recall = np.moveaxis(shares, -1, 0)
        mean = 1 / ((1 - ALPHA) / precision + ALPHA / recall)
        score = mean * (1 - GAMMA * (chunks / matched) ** BETA)
    return np.asarray(100 * np.nan_to_num(np.maximum(score, 0)))


def require_scorers(metrics: Collection[Metric], tokenisation: Tokenisation) -> None:
    """Check the requirements of the metrics before any caption is decoded.

    Raises:
        ReplicationError: pycocoevalcap or Java is missing; the message says how to install it.
    """
    if tokenisation == "ptb" or {*metrics} - {"bleu"}:
        require_package()
    if tokenisation == "ptb" or {"meteor", "spice"} & {*metrics}:
        require_java()


def require_package() -> None:
    """Check that pycocoevalcap can be imported.

    Raises:
        ReplicationError: it is not installed; the message says how to install it.
    """
    if importlib.util.find_spec("pycocoevalcap") is None:
        raise ReplicationError(
            "captions are scored with pycocoevalcap, which is not installed; "
            "run 'python -m pip install -e .' in the project's folder."
        )


def require_java() -> None:
    """Check that Java runs.

    Raises:
        ReplicationError: there is no Java; the message says how to install it.
    """
    java = shutil.which("java")
    # macOS has a placeholder named java that only asks the user to install Java.
    if java is None or subprocess.run([java, "-version"], capture_output=True).returncode:
        raise ReplicationError(
            "METEOR, SPICE and the PTB tokeniser need Java, and there is no 'java' that works on the PATH; install a "
            "Java runtime (Debian, Ubuntu: apt-get install default-jre-headless)."
        )


def coco(module: str) -> Any:
    """Import a module of pycocoevalcap; the error says how to install the package if it is missing."""
    require_package()
    return importlib.import_module(f"pycocoevalcap.{module}")


def beside(module: str, *path: str) -> Path:
    """Return the path of a file in the folder of a module of pycocoevalcap."""
    return Path(coco(module).__file__).parent.joinpath(*path)


def command(memory: str, *arguments: str | Path) -> list[str]:
    """Return a command line that runs Java with a heap of at most ``memory`` ("1G").

    It uses the serial garbage collector, because the default one takes twice the memory, and UTF-8 in every locale.
    The error says how to install Java if it is missing.
    """
    require_java()
    return ["java", "-XX:+UseSerialGC", f"-Xmx{memory}", "-Dfile.encoding=UTF-8", *map(str, arguments)]


def run(arguments: list[str], text: str = "") -> str:
    """Run a program with ``text`` as input and return its output.

    Raises:
        ReplicationError: the program fails; the message has the last line of its output.
    """
    done = subprocess.run(arguments, input=text.encode(), capture_output=True)
    if done.returncode:
        raise failed(done.stderr or done.stdout)
    return done.stdout.decode()


def failed(said: bytes) -> ReplicationError:
    """Return the error for a program that has failed with this output."""
    lines = [line.strip() for line in said.decode(errors="replace").splitlines()]
    # Java prints the exception before its stack trace.
    told = [line for line in lines if line and not line.startswith(("at ", "... "))]
    last = told[-1] if told else "it does not say why"
    return ReplicationError(
        f"a Java program that scores captions has failed ({last}); see that Java is version 8 or newer and that "
        "there is 1 GB of memory for it, or 8 GB for SPICE."
    )
