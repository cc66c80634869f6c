"""Generated tasks: corpora made by a program, with gold alignments, the same bytes on every machine."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field, model_validator

from shared.config import Strict, build
from shared.data.generated.buckets import Buckets
from shared.data.generated.copy import copy
from shared.data.generated.evidence import evidence
from shared.data.generated.grammar import grammar
from shared.data.generated.pictures import pictures
from shared.data.generated.proteins import proteins
from shared.data.generated.recall import recall
from shared.data.splits import Corpus, Segment
from shared.errors import ReplicationError

SOURCE_LANGUAGE, TARGET_LANGUAGE = "source", "target"
_Translated = tuple[list[str], list[tuple[int, int]]]


class AdjacentSwap(Strict):
    """Parameters of `adjacent_swap`.

    Attributes:
        seed: of the lexicon and of every split (each split draws from a generator of its own).
        nouns: word types that are nouns.
        adjectives: word types that are adjectives.
        others: word types that are neither.
        splits: split name to its sentences. Splits named earlier do not depend on later ones.
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
    """Parameters of `noisy_swap`, beside those of `AdjacentSwap`.

    Attributes:
        noise: split name to the share of its target words that are replaced; a split not named is clean.
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
        seed: of the dictionary and of every split (each split draws from a generator of its own).
        marking: word types that, as the first of a sentence, make its halves change places.
        others: word types that do not.
        splits: split name to its sentences. Splits named earlier do not depend on later ones.
    """

    seed: int = Field(ge=0)
    marking: int = Field(gt=0)
    others: int = Field(gt=0)
    splits: dict[str, Buckets] = Field(min_length=1)

    @model_validator(mode="after")
    def _enough_sentences(self) -> ExchangedHalves:
        _check_room(self.marking + self.others, self.splits)
        return self


def _check_room(types: int, splits: Mapping[str, Buckets]) -> None:
    """Refuse more word types than have names, and so many sentences that drawing distinct ones takes long."""
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
    """The two vocabularies of `adjacent_swap`: source word to its translation, and the words that swap."""

    translation: Mapping[str, str]
    nouns: frozenset[str]
    adjectives: frozenset[str]


def lexicon(parameters: AdjacentSwap) -> Lexicon:
    """Draw the word types and the one-to-one translation between them.

    Source words show their class in the last letter, for the eye of the reader only (``-o`` noun, ``-a``
    adjective, ``-u`` other); target words do not.
    """
    endings = "o" * parameters.nouns + "a" * parameters.adjectives + "u" * parameters.others
    translation = _dictionary("adjacent_swap", parameters.seed, endings)
    return Lexicon(
        translation,
        nouns=frozenset(word for word in translation if word.endswith("o")),
        adjectives=frozenset(word for word in translation if word.endswith("a")),
    )


def _dictionary(task: str, seed: int, endings: str) -> dict[str, str]:
    """Made-up source words, one per ending, and their translations."""
    rng = random.Random(f"{task} lexicon {seed}")
    stems = [a + b + c for a, b, c in itertools.product("bdfklmnprst", "aeiou", "lmnrstv")]
    names = [a + b + c + "e" + d for a, b, c, d in itertools.product("ghjvwz", "aiou", "dlmnr", "lnst")]
    rng.shuffle(stems)
    rng.shuffle(names)
    words = [stem + ending for stem, ending in zip(stems, endings, strict=False)]
    return dict(zip(words, names, strict=False))


def translate(words: list[str], language: Lexicon) -> _Translated:
    """Translate word by word; an adjective directly before a noun changes places with it.

    Scans from left to right, so that of several adjectives only the last swaps.

    Returns:
        The target words, and the gold links (source position, target position), sorted by source position.
    """
    order = list(range(len(words)))
    for i in range(len(words) - 1):
        if words[i] in language.adjectives and words[i + 1] in language.nouns:
            order[i], order[i + 1] = i + 1, i
    return _arranged(words, order, language.translation)


def exchange(words: list[str], translation: Mapping[str, str]) -> _Translated:
    """Translate word by word; if the first word is a marking one (in ``-i``), the halves change places.

    Of n words the first half has n // 2, so that in a sentence of odd length the word in the middle belongs to
    the second half; a single word stays where it is.

    Returns:
        As `translate`.
    """
    order = list(range(len(words)))
    if words[0].endswith("i"):
        cut = len(words) // 2
        order = order[cut:] + order[:cut]
    return _arranged(words, order, translation)


def _arranged(words: list[str], order: list[int], translation: Mapping[str, str]) -> _Translated:
    return [translation[words[i]] for i in order], sorted((s, t) for t, s in enumerate(order))


def adjacent_swap(values: Mapping[str, Any]) -> Corpus:
    """Word-for-word translation with adjective-noun swaps, after the toy task of the RNNsearch claims.

    Lengths are uniform inside a bucket, source words are drawn independently and uniformly, so a sentence cannot
    be guessed from a part of it. No sentence, source or target, occurs twice, within a split or in two splits.

    Raises:
        ReplicationError: ``values`` are not valid parameters (`AdjacentSwap`).
    """
    parameters = build(AdjacentSwap, values, where="parameters of the generated task 'adjacent_swap'")
    language = lexicon(parameters)
    return _corpus("adjacent_swap", parameters, list(language.translation), lambda words: translate(words, language))


def noisy_swap(values: Mapping[str, Any]) -> Corpus:
    """The language of `adjacent_swap` with noise in the target texts of some splits.

    Each word of such a target, independently with probability ``noise``, becomes a target word drawn uniformly
    (now and then the same one). The gold links stay those of the clean translation. Sentences are drawn as in
    `adjacent_swap`; no target occurs twice, before or after the noise.

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
    """Word-for-word translation in which the first word decides whether the two halves change places.

    The reordering spans the sentence and depends on a word far from most of what it moves, so that neither
    position alone nor a window around it finds the source word. Sentences are drawn as in `adjacent_swap`.

    Raises:
        ReplicationError: ``values`` are not valid parameters (`ExchangedHalves`).
    """
    parameters = build(ExchangedHalves, values, where="parameters of the generated task 'exchanged_halves'")
    endings = "i" * parameters.marking + "u" * parameters.others
    translation = _dictionary("exchanged_halves", parameters.seed, endings)
    return _corpus("exchanged_halves", parameters, list(translation), lambda words: exchange(words, translation))


def _corpus(
    task: str,
    parameters: AdjacentSwap | ExchangedHalves,
    vocabulary: Sequence[str],
    translated: Callable[[list[str]], _Translated],
    corrupted: Callable[[list[str], str, random.Random], list[str]] | None = None,
) -> Corpus:
    """Draw every split; ``corrupted`` turns a clean target of a split into the one that is written."""
    seen: set[tuple[str, ...]] = set()

    def sentences(split: str) -> Iterator[Segment]:
        rng = random.Random(f"{task} {split} {parameters.seed}")
        for low, high in parameters.splits[split].buckets:
            todo = parameters.splits[split].per_bucket
            while todo:
                words = [rng.choice(vocabulary) for _ in range(rng.randint(low, high))]
                clean, links = translated(words)
                target = corrupted(clean, split, rng) if corrupted else clean
                # Two sources may share a translation (a reordered and a plain one), so targets decide.
                if tuple(clean) in seen or tuple(target) in seen:
                    continue
                seen.update((tuple(clean), tuple(target)))
                todo -= 1
                gold = " ".join(f"{s}-{t}" for s, t in links)
                yield Segment((" ".join(words), " ".join(target)), links=gold)

    # Lists, because which sentence is a repetition depends on the order in which the splits are drawn.
    return {split: list(sentences(split)) for split in parameters.splits}


TASKS: dict[str, Callable[[Mapping[str, Any]], Corpus]] = {
    "adjacent_swap": adjacent_swap,
    "copy": copy,
    "evidence": evidence,
    "exchanged_halves": exchanged_halves,
    "grammar": grammar,
    "noisy_swap": noisy_swap,
    "pictures": pictures,
    "proteins": proteins,
    "recall": recall,
}
"""Generated tasks by name; each checks its own parameters."""


def generate(task: str, parameters: Mapping[str, Any]) -> Corpus:
    """Run the generated task of that name.

    Raises:
        ReplicationError: no such task, or wrong parameters.
    """
    if task not in TASKS:
        raise ReplicationError(f"there is no generated task '{task}'; known tasks: {', '.join(sorted(TASKS))}.")
    return TASKS[task](parameters)
