"""Generated translation: made-up languages with gold alignments, and targets that agree with several source words."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field, model_validator

from shared.data.generated.words import Draw, Texts, distinct_texts, syllables
from shared.data.splits import Corpus, Segment

_STEMS = syllables("bdfklmnprst", "aeiou", "lmnrstv")
_NAMES = syllables("ghjvwz", "aiou", "dlmnr", "e", "lnst")
_Translated = tuple[list[str], list[tuple[int, int]]]


class _Plain(Texts):
    """What the word-for-word languages have in common."""

    @model_validator(mode="after")
    def _enough(self) -> _Plain:
        """Reject more word types than names, and numbers of sentences of which too few are distinct."""
        types = sum(number for name, number in self if isinstance(number, int) and name != "seed")
        if types > 160:
            raise ValueError(f"at most 160 word types can be named, not {types}")
        wanted: Counter[int] = Counter()
        for split in self.splits.values():
            for low, high in split.buckets:
                share = math.ceil(split.per_bucket / (high - low + 1))
                wanted.update(dict.fromkeys(range(low, high + 1), share))
        for length, count in wanted.items():
            if types**length < 4 * count:
                raise ValueError(f"{types} word types make too few distinct sentences of length {length}")
        return self


class AdjacentSwap(_Plain):
    """Parameters of `adjacent_swap`.

    Attributes:
        nouns: number of nouns.
        adjectives: number of adjectives.
        others: number of other word types.
    """

    nouns: int = Field(gt=0)
    adjectives: int = Field(gt=0)
    others: int = Field(ge=0)


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


class ExchangedHalves(_Plain):
    """Parameters of `exchanged_halves`.

    Attributes:
        marking: number of word types that exchange the halves of a sentence if they are its first word.
        others: number of other word types.
    """

    marking: int = Field(gt=0)
    others: int = Field(gt=0)


class Agreement(Texts):
    """Parameters of `agreement`.

    Attributes:
        places: for each feature how many words behind (or, negative, before) its own place a target word reads it.
        distances: of each pronoun, how many words behind it stands the word that it means.
        pronouns: the probability that a word is a pronoun, where every pronoun has a word to mean.
    """

    places: tuple[int, ...] = Field(min_length=1, max_length=7)
    distances: tuple[Annotated[int, Field(gt=0)], ...] = Field(min_length=1, max_length=9)
    pronouns: float = Field(ge=0, lt=1)

    @model_validator(mode="after")
    def _possible(self) -> Agreement:
        for name, numbers in (("places", self.places), ("distances", self.distances)):
            if len(set(numbers)) != len(numbers):
                raise ValueError(f"'{name}' has a number twice")
        wanted = sum(len(split.buckets) * split.per_bucket for split in self.splits.values())
        if 2 ** (len(self.places) * self.shortest) < 4 * wanted:
            raise ValueError(f"{2 ** len(self.places)} words make too few distinct sentences of length {self.shortest}")
        return self


class Lexicon(NamedTuple):
    """The dictionary of `adjacent_swap`: source word to its translation, and the words that swap."""

    translation: Mapping[str, str]
    nouns: frozenset[str]
    adjectives: frozenset[str]


def _named(task: str, seed: int) -> tuple[list[str], list[str]]:
    """Return stems of source words and target words in the random order of a task's lexicon."""
    rng = random.Random(f"{task} lexicon {seed}")
    stems, names = list(_STEMS), list(_NAMES)
    rng.shuffle(stems)
    rng.shuffle(names)
    return stems, names


def _dictionary(task: str, seed: int, endings: str) -> dict[str, str]:
    """Return made-up source words, one per ending, with their translations.

    The last letter of a source word shows its class to human readers only; target words do not show it.
    """
    stems, names = _named(task, seed)
    return {stem + ending: name for stem, ending, name in zip(stems, endings, names, strict=False)}


def lexicon(parameters: AdjacentSwap) -> Lexicon:
    """Draw the word types and the one-to-one translation between them: ``-o`` noun, ``-a`` adjective, ``-u`` other."""
    endings = "o" * parameters.nouns + "a" * parameters.adjectives + "u" * parameters.others
    translation = _dictionary("adjacent_swap", parameters.seed, endings)
    nouns, adjectives = (frozenset(word for word in translation if word.endswith(ending)) for ending in "oa")
    return Lexicon(translation, nouns, adjectives)


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


def _arranged(words: list[str], order: list[int], translation: Mapping[str, str]) -> _Translated:
    return [translation[words[i]] for i in order], sorted((s, t) for t, s in enumerate(order))


def adjacent_swap(parameters: AdjacentSwap) -> Corpus:
    """Generate word-for-word translations with adjective-noun swaps.

    Lengths are uniform inside a bucket, and source words are independent and uniform, so a part of a sentence does not
    predict the rest. No sentence, source or target, occurs twice, within a split or in two splits.
    """
    language = lexicon(parameters)
    return _corpus("adjacent_swap", parameters, language.translation, lambda words: translate(words, language))


def noisy_swap(parameters: NoisySwap) -> Corpus:
    """Generate the corpus of `adjacent_swap` with noise in the target texts of some splits.

    Each word of such a target is replaced with probability ``noise``, independently, by a uniform target word (which
    can be the same word). The gold links are those of the clean translation. Sentences are drawn as in `adjacent_swap`;
    no target occurs twice, before or after the noise.
    """
    language = lexicon(parameters)
    return _corpus(
        "noisy_swap", parameters, language.translation, lambda words: translate(words, language), parameters.noise
    )


def exchanged_halves(parameters: ExchangedHalves) -> Corpus:
    """Generate word-for-word translations in which the first word decides whether the two halves are exchanged.

    The reordering spans the sentence and depends on a word that is far from most of the moved words, so neither the
    position nor a window around it determines the source word. Sentences are drawn as in `adjacent_swap`.
    """
    endings = "i" * parameters.marking + "u" * parameters.others
    translation = _dictionary("exchanged_halves", parameters.seed, endings)
    return _corpus("exchanged_halves", parameters, translation, lambda words: exchange(words, translation))


def _corpus(
    task: str,
    parameters: _Plain,
    translation: Mapping[str, str],
    translated: Callable[[list[str]], _Translated],
    noise: Mapping[str, float] | None = None,
) -> Corpus:
    vocabulary, names = list(translation), list(translation.values())

    def draws(rng: random.Random, split: str) -> itertools.repeat[Draw]:
        def draw(low: int, high: int) -> tuple[Segment, str, str]:
            words = [rng.choice(vocabulary) for _ in range(rng.randint(low, high))]
            clean, links = translated(words)
            target = clean
            if noise is not None:
                share = noise.get(split, 0)
                target = [rng.choice(names) if rng.random() < share else word for word in clean]
            gold = " ".join(f"{s}-{t}" for s, t in links)
            # A reordered and a plain source can have equal translations, so duplicates are detected by target.
            return Segment((" ".join(words), " ".join(target)), links=gold), " ".join(clean), " ".join(target)

        return itertools.repeat(draw)

    return distinct_texts(task, parameters, draws)


def agreement_words(parameters: Agreement) -> tuple[list[str], list[str], list[str]]:
    """Source words in ``-o``, pronouns in ``-i``, and target words; feature f of word w is bit f of the number w."""
    stems, names = _named("agreement", parameters.seed)
    count = 2 ** len(parameters.places)
    pronouns = stems[count : count + len(parameters.distances)]
    return [stem + "o" for stem in stems[:count]], [stem + "i" for stem in pronouns], names[:count]


def meant(sentence: Sequence[int], distances: Sequence[int], words: int) -> list[int]:
    """Every word's number, a pronoun's (``words`` and above) that of the word it means, by one pass from the right."""
    meanings = list(sentence)
    for place in range(len(sentence) - 1, -1, -1):
        if sentence[place] >= words:
            meanings[place] = meanings[place + distances[sentence[place] - words]]
    return meanings


def agreeing(meanings: Sequence[int], places: Sequence[int]) -> list[int]:
    """The target words' numbers: feature f of the t-th is that of the word at t + places[f], or 0 if there is none."""
    length = len(meanings)
    return [
        sum(meanings[t + place] & 1 << f for f, place in enumerate(places) if 0 <= t + place < length)
        for t in range(length)
    ]


def agreement(parameters: Agreement) -> Corpus:
    """Generate sentences and as long translations, whose every word agrees with the words at several places.

    Every source word has as many binary features as a target word has. A pronoun stands for the word at a fixed
    distance behind it, which may be a pronoun itself, so a chain of pronouns takes as many hops as it has members. All
    of a target word's features come from different places, so what has been translated already says little of the next
    target word.

    Lengths are uniform inside a bucket. Words are independent and uniform. Each is a pronoun instead with probability
    ``pronouns``, every pronoun equally often, but the last words, as many as the largest distance. No source sentence
    occurs twice, within a split or in two.
    """
    words, pronouns, names = agreement_words(parameters)
    kinds, reach, spelled = len(pronouns), max(parameters.distances), words + pronouns

    def draws(rng: random.Random, split: str) -> itertools.repeat[Draw]:
        def draw(low: int, high: int) -> tuple[Segment, str]:
            sentence = [rng.randrange(len(words)) for _ in range(rng.randint(low, high))]
            for place in range(len(sentence) - reach):
                if rng.random() < parameters.pronouns:
                    sentence[place] = len(words) + rng.randrange(kinds)
            target = agreeing(meant(sentence, parameters.distances, len(words)), parameters.places)
            text = " ".join(spelled[word] for word in sentence)
            return Segment((text, " ".join(names[word] for word in target))), text

        return itertools.repeat(draw)

    return distinct_texts("agreement", parameters, draws)
