"""Generated tasks: synthetic corpora with gold alignments, with the same bytes on every machine."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field, model_validator

from shared.config import Strict, build
from shared.data.generated.agreement import agreement
from shared.data.generated.buckets import Buckets
from shared.data.generated.copy import copy
from shared.data.generated.evidence import evidence
from shared.data.generated.grammar import grammar
from shared.data.generated.pictures import pictures
from shared.data.generated.proteins import proteins
from shared.data.generated.recall import recall
from shared.data.generated.tally import tally
from shared.data.splits import Corpus, Segment
from shared.errors import ReplicationError

SOURCE_LANGUAGE, TARGET_LANGUAGE = "source", "target"
_Translated = tuple[list[str], list[tuple[int, int]]]


class AdjacentSwap(Strict):
    """Parameters of `adjacent_swap`.

    Attributes:
        seed: seed of the lexicon and of every split (each split has its own generator).
        nouns: number of nouns.
        adjectives: number of adjectives.
        others: number of other word types.
        splits: split name to its sentences. A split does not depend on later ones.
    """

    seed: int = Field(ge=0)
    nouns: int = Field(gt=0)
    adjectives: int = Field(gt=0)
    others: int = Field(ge=0)
    splits: dict[str, Buckets] = Field(min_length=1)

    @model_validator(mode="after")
    def _enough_sentences(self) -> AdjacentSwap:
        _check_room(self.nouns + self.adjectives + self.others, self.splits)
        return self


class NoisySwap(AdjacentSwap):
    """Parameters of `noisy_swap`, in addition to those of `AdjacentSwap`.

    Attributes:
        noise: split name to the share of replaced target words; other splits have no noise.
    """

    noise: dict[str, Annotated[float, Field(gt=0, le=1)]]

    @model_validator(mode="after")
    def _known_splits(self) -> NoisySwap:
        if unknown := self.noise.keys() - self.splits.keys():
            raise ValueError(f"'noise' names the split '{min(unknown)}', which is not made")
        return self


class ExchangedHalves(Strict):
    """Parameters of `exchanged_halves`.

    Attributes:
        seed: seed of the dictionary and of every split (each split has its own generator).
        marking: number of word types that exchange the halves of a sentence if they are its first word.
        others: number of other word types.
        splits: split name to its sentences. A split does not depend on later ones.
    """

    seed: int = Field(ge=0)
    marking: int = Field(gt=0)
    others: int = Field(gt=0)
    splits: dict[str, Buckets] = Field(min_length=1)

    @model_validator(mode="after")
    def _enough_sentences(self) -> ExchangedHalves:
        _check_room(self.marking + self.others, self.splits)
        return self


class Fertility(Strict):
    """Parameters of `fertility`.

    Attributes:
        seed: seed of the dictionary and of every split (each split has its own generator).
        pairs: number of target words; each has two source words, one that gives it once and one that gives it twice.
        splits: split name to its sentences, by the length of the source. A split does not depend on later ones.
    """

    seed: int = Field(ge=0)
    pairs: int = Field(gt=0)
    splits: dict[str, Buckets] = Field(min_length=1)

    @model_validator(mode="after")
    def _enough_sentences(self) -> Fertility:
        _check_room(self.pairs, self.splits)
        return self


def _check_room(types: int, splits: Mapping[str, Buckets]) -> None:
    """Reject more word types than names, and numbers of sentences for which drawing distinct ones takes too long."""
    if types > 160:
        raise ValueError(f"at most 160 word types can be named, not {types}")
    wanted: Counter[int] = Counter()
    for split in splits.values():
        for low, high in split.buckets:
            share = math.ceil(split.per_bucket / (high - low + 1))
            wanted.update(dict.fromkeys(range(low, high + 1), share))
    for length, count in wanted.items():
        if types**length < 4 * count:
            raise ValueError(f"{types} word types make too few distinct sentences of length {length}")


class Lexicon(NamedTuple):
    """The dictionary of `adjacent_swap`: source word to its translation, and the words that swap."""

    translation: Mapping[str, str]
    nouns: frozenset[str]
    adjectives: frozenset[str]


def lexicon(parameters: AdjacentSwap) -> Lexicon:
    """Draw the word types and the one-to-one translation between them.

    The last letter of a source word shows its class to human readers only (``-o`` noun, ``-a`` adjective, ``-u``
    other); target words do not show it.
    """
    endings = "o" * parameters.nouns + "a" * parameters.adjectives + "u" * parameters.others
    translation = _dictionary("adjacent_swap", parameters.seed, endings)
    return Lexicon(
        translation,
        nouns=frozenset(word for word in translation if word.endswith("o")),
        adjectives=frozenset(word for word in translation if word.endswith("a")),
    )


def _dictionary(task: str, seed: int, endings: str) -> dict[str, str]:
    """Return made-up source words, one per ending, with their translations."""
    rng = random.Random(f"{task} lexicon {seed}")
    stems = [a + b + c for a, b, c in itertools.product("bdfklmnprst", "aeiou", "lmnrstv")]
    names = [a + b + c + "e" + d for a, b, c, d in itertools.product("ghjvwz", "aiou", "dlmnr", "lnst")]
    rng.shuffle(stems)
    rng.shuffle(names)
    words = [stem + ending for stem, ending in zip(stems, endings, strict=False)]
    return dict(zip(words, names, strict=False))


def translate(words: list[str], language: Lexicon) -> _Translated:
    """Translate word by word; an adjective directly before a noun changes places with it.

    The scan is from left to right, so of several adjectives only the last one swaps.

    Returns:
        The target words, and the gold links (source position, target position), sorted by source position.
    """
    order = list(range(len(words)))
    for i in range(len(words) - 1):
        if words[i] in language.adjectives and words[i + 1] in language.nouns:
            order[i], order[i + 1] = i + 1, i
    return _arranged(words, order, language.translation)


def exchange(words: list[str], translation: Mapping[str, str]) -> _Translated:
    """Translate word by word; if the first word is a marking one (in ``-i``), exchange the halves.

    The first half has n // 2 of n words, so the middle word of an odd length belongs to the second half, and a single
    word does not move.

    Returns:
        As `translate`.
    """
    order = list(range(len(words)))
    if words[0].endswith("i"):
        cut = len(words) // 2
        order = order[cut:] + order[:cut]
    return _arranged(words, order, translation)


def repeat(words: list[str], translation: Mapping[str, str]) -> _Translated:
    """Translate word by word, in order; a doubling word (in ``-e``) gives its translation twice.

    Returns:
        The target words, and the gold links (source position, target position), sorted by both.
    """
    sources = [i for i, word in enumerate(words) for _ in range(1 + word.endswith("e"))]
    return [translation[words[i]] for i in sources], [(s, t) for t, s in enumerate(sources)]


def _arranged(words: list[str], order: list[int], translation: Mapping[str, str]) -> _Translated:
    return [translation[words[i]] for i in order], sorted((s, t) for t, s in enumerate(order))


def adjacent_swap(values: Mapping[str, Any]) -> Corpus:
    """Generate word-for-word translations with adjective-noun swaps.

    Lengths are uniform inside a bucket, and source words are independent and uniform, so a part of a sentence does not
    predict the rest. No sentence, source or target, occurs twice, within a split or in two splits.

    Raises:
        ReplicationError: ``values`` are not valid parameters (`AdjacentSwap`).
    """
    parameters = build(AdjacentSwap, values, where="parameters of the generated task 'adjacent_swap'")
    language = lexicon(parameters)
    return _corpus("adjacent_swap", parameters, list(language.translation), lambda words: translate(words, language))


def noisy_swap(values: Mapping[str, Any]) -> Corpus:
    """Generate the corpus of `adjacent_swap` with noise in the target texts of some splits.

    Each word of such a target is replaced with probability ``noise``, independently, by a uniform target word (which
    can be the same word). The gold links are those of the clean translation. Sentences are drawn as in `adjacent_swap`;
    no target occurs twice, before or after the noise.

    Raises:
        ReplicationError: ``values`` are not valid parameters (`NoisySwap`).
    """
    parameters = build(NoisySwap, values, where="parameters of the generated task 'noisy_swap'")
    language = lexicon(parameters)
    names = list(language.translation.values())

    def corrupted(target: list[str], split: str, rng: random.Random) -> list[str]:
        share = parameters.noise.get(split, 0)
        return [rng.choice(names) if rng.random() < share else word for word in target]

    return _corpus(
        "noisy_swap",
        parameters,
        list(language.translation),
        lambda words: translate(words, language),
        corrupted,
    )


def exchanged_halves(values: Mapping[str, Any]) -> Corpus:
    """Generate word-for-word translations in which the first word decides whether the two halves are exchanged.

    The reordering spans the sentence and depends on a word that is far from most of the moved words, so neither the
    position nor a window around it determines the source word. Sentences are drawn as in `adjacent_swap`.

    Raises:
        ReplicationError: ``values`` are not valid parameters (`ExchangedHalves`).
    """
    parameters = build(ExchangedHalves, values, where="parameters of the generated task 'exchanged_halves'")
    endings = "i" * parameters.marking + "u" * parameters.others
    translation = _dictionary("exchanged_halves", parameters.seed, endings)
    return _corpus("exchanged_halves", parameters, list(translation), lambda words: exchange(words, translation))


def fertility(values: Mapping[str, Any]) -> Corpus:
    """Generate monotone translations in which every source word is translated once or twice, as its type says.

    A target word has two source words, one of each kind. A word that has just been written therefore does not say
    whether it must be written again: that stands in the source word that was attended to. Sentences are drawn as in
    `adjacent_swap`; of the sources that have one translation only one occurs.

    Raises:
        ReplicationError: ``values`` are not valid parameters (`Fertility`).
    """
    parameters = build(Fertility, values, where="parameters of the generated task 'fertility'")
    names = _dictionary("fertility", parameters.seed, "u" * parameters.pairs)
    translation = {word[:-1] + ending: name for word, name in names.items() for ending in "ue"}
    return _corpus("fertility", parameters, list(translation), lambda words: repeat(words, translation))


def _corpus(
    task: str,
    parameters: AdjacentSwap | ExchangedHalves | Fertility,
    vocabulary: Sequence[str],
    translated: Callable[[list[str]], _Translated],
    corrupted: Callable[[list[str], str, random.Random], list[str]] | None = None,
) -> Corpus:
    """Draw every split; ``corrupted`` adds the noise of a split to a clean target."""
    seen: set[tuple[str, ...]] = set()

    def sentences(split: str) -> Iterator[Segment]:
        rng = random.Random(f"{task} {split} {parameters.seed}")
        for low, high in parameters.splits[split].buckets:
            todo = parameters.splits[split].per_bucket
            while todo:
                words = [rng.choice(vocabulary) for _ in range(rng.randint(low, high))]
                clean, links = translated(words)
                target = corrupted(clean, split, rng) if corrupted else clean
                # A reordered and a plain source can have equal translations, so duplicates are detected by target.
                if tuple(clean) in seen or tuple(target) in seen:
                    continue
                seen.update((tuple(clean), tuple(target)))
                todo -= 1
                gold = " ".join(f"{s}-{t}" for s, t in links)
                yield Segment((" ".join(words), " ".join(target)), links=gold)

    # Lists, because the duplicates depend on the order in which the splits are drawn.
    return {split: list(sentences(split)) for split in parameters.splits}


TASKS: dict[str, Callable[[Mapping[str, Any]], Corpus]] = {
    "adjacent_swap": adjacent_swap,
    "agreement": agreement,
    "copy": copy,
    "evidence": evidence,
    "exchanged_halves": exchanged_halves,
    "fertility": fertility,
    "grammar": grammar,
    "noisy_swap": noisy_swap,
    "pictures": pictures,
    "proteins": proteins,
    "recall": recall,
    "tally": tally,
}
"""Generated tasks by name; each validates its parameters."""


def generate(task: str, parameters: Mapping[str, Any]) -> Corpus:
    """Generate the corpus of the task of the given name.

    Raises:
        ReplicationError: the task does not exist, or its parameters are invalid.
    """
    if task not in TASKS:
        raise ReplicationError(f"there is no generated task '{task}'; known tasks: {', '.join(sorted(TASKS))}.")
    return TASKS[task](parameters)
