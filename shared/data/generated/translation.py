"""Generated translation: made-up languages with gold alignments, agreement with several source words, and trees.

Trees have the form of Vinyals et al. (2015, "Grammar as a Foreign Language"): brackets
are labelled at both ends, and words with their tags are replaced by ``XX``, as in ``(S (NP XX XX )NP (VP XX )VP )S``.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from shared.data.generated.words import Texts, Wanted, distinct_texts, namers, syllables
from shared.data.splits import Corpus, Segment

_STEMS = syllables("bdfklmnprst", "aeiou", "lmnrstv")
_NAMES = syllables("ghjvwz", "aiou", "dlmnr", "e", "lnst")


class _Plain(Texts):
    """What the word-for-word languages have in common."""

    @model_validator(mode="after")
    def _enough(self) -> _Plain:
        """Reject more word types than names, and numbers of sentences of which too few are distinct."""
        types = sum(number for name, number in self if isinstance(number, int) and name != "seed")
        if types > 160:
            raise ValueError(f"at most 160 word types can be named, not {types}")
        for split in self.splits.values():
            for low, high in split.buckets:
                if types**low * (high - low + 1) < 4 * split.per_bucket:
                    raise ValueError(f"{types} word types make too few distinct sentences of length {low}")
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


def lexicon(task: str, seed: int, **endings: int) -> dict[str, str]:
    """Return made-up source words, as many with each ending as asked for, and their one-to-one translations.

    The last letter of a source word is its class: ``o`` noun, ``a`` adjective, ``i`` marking, ``u`` other. Target words
    do not show it.
    """
    source, target = namers(task, seed, _STEMS, _NAMES)
    words = [word for letter, count in endings.items() for word in source(count, letter)]
    return dict(zip(words, target(len(words), ""), strict=True))


def swapped(words: Sequence[str]) -> list[int]:
    """Return the order of the source words in the target: an adjective directly before a noun changes places with it.

    The scan is from left to right, so of several adjectives only the last one swaps.
    """
    order = list(range(len(words)))
    for i, (first, second) in enumerate(itertools.pairwise(words)):
        if first.endswith("a") and second.endswith("o"):
            order[i], order[i + 1] = i + 1, i
    return order


def exchanged(words: Sequence[str]) -> list[int]:
    """Return the order of the source words in the target: if the first word is a marking one, the halves change places.

    The first half has n // 2 of n words, so the middle word of an odd length belongs to the second half, and a single
    word does not move.
    """
    order = list(range(len(words)))
    cut = len(words) // 2 if words[0].endswith("i") else 0
    return order[cut:] + order[:cut]


def adjacent_swap(parameters: AdjacentSwap) -> Corpus:
    """Generate word-for-word translations with adjective-noun swaps.

    Lengths are uniform inside a bucket, and source words are independent and uniform, so a part of a sentence does not
    predict the rest. No sentence, source or target, occurs twice, within a split or in two splits.
    """
    return _corpus("adjacent_swap", parameters, swap_lexicon(parameters), swapped)


def swap_lexicon(parameters: AdjacentSwap) -> dict[str, str]:
    """Return the dictionary of `adjacent_swap` and `noisy_swap`."""
    return lexicon("adjacent_swap", parameters.seed, o=parameters.nouns, a=parameters.adjectives, u=parameters.others)


def noisy_swap(parameters: NoisySwap) -> Corpus:
    """Generate the corpus of `adjacent_swap` with noise in the target texts of some splits.

    Each word of such a target is replaced with probability ``noise``, independently, by a uniform target word (which
    can be the same word). The gold links are those of the clean translation. Sentences are drawn as in `adjacent_swap`;
    no target occurs twice, before or after the noise.
    """
    return _corpus("noisy_swap", parameters, swap_lexicon(parameters), swapped, parameters.noise)


def exchanged_halves(parameters: ExchangedHalves) -> Corpus:
    """Generate word-for-word translations in which the first word decides whether the two halves are exchanged.

    The reordering spans the sentence and depends on a word that is far from most of the moved words, so neither the
    position nor a window around it determines the source word. Sentences are drawn as in `adjacent_swap`.
    """
    words = lexicon("exchanged_halves", parameters.seed, i=parameters.marking, u=parameters.others)
    return _corpus("exchanged_halves", parameters, words, exchanged)


def _corpus(
    task: str, parameters: _Plain, translation: Mapping[str, str], order: Callable[[Sequence[str]], list[int]],
    noise: Mapping[str, float] | None = None,
) -> Corpus:  # fmt: skip
    vocabulary, names = list(translation), list(translation.values())

    def draw(wanted: Wanted, rng: random.Random) -> tuple[Segment, str, str]:
        words = [rng.choice(vocabulary) for _ in range(rng.randint(wanted.low, wanted.high))]
        places = order(words)
        target = clean = [translation[words[place]] for place in places]
        if noise is not None:
            share = noise.get(wanted.split, 0)
            target = [rng.choice(names) if rng.random() < share else word for word in clean]
        gold = " ".join(f"{s}-{t}" for s, t in sorted(zip(places, itertools.count(), strict=False)))
        # A reordered and a plain source can have equal translations, so duplicates are detected by target.
        return Segment((" ".join(words), " ".join(target)), links=gold), " ".join(clean), " ".join(target)

    return distinct_texts(task, parameters, draw)


def agreement_words(parameters: Agreement) -> tuple[list[str], list[str], list[str]]:
    """Source words in ``-o``, pronouns in ``-i``, and target words; feature f of word w is bit f of the number w."""
    source, target = namers("agreement", parameters.seed, _STEMS, _NAMES)
    count = 2 ** len(parameters.places)
    return source(count, "o"), source(len(parameters.distances), "i"), target(count, "")


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

    def draw(wanted: Wanted, rng: random.Random) -> tuple[Segment, str]:
        sentence = [rng.randrange(len(words)) for _ in range(rng.randint(wanted.low, wanted.high))]
        for place in range(len(sentence) - reach):
            if rng.random() < parameters.pronouns:
                sentence[place] = len(words) + rng.randrange(kinds)
        target = agreeing(meant(sentence, parameters.distances, len(words)), parameters.places)
        text = " ".join(spelled[word] for word in sentence)
        return Segment((text, " ".join(names[word] for word in target))), text

    return distinct_texts("agreement", parameters, draw)


Symbol = Annotated[str, StringConstraints(pattern="^[A-Z]+(-[a-z]+)?$")]
"""A label and, after a hyphen, an optional subclass that the tree does not show, such as a class of nouns."""
_Rules = dict[Symbol, dict[str, Annotated[float, Field(gt=0, le=1)]]]


class Grammar(Texts):
    """Parameters of `grammar`: a probabilistic context-free grammar and the sizes of its samples.

    Attributes:
        start: the start symbol.
        rules: symbol to its expansions (symbols separated by spaces) with their probabilities.
        words: preterminal symbol to its number of words, which are uniformly distributed.
    """

    start: Symbol
    rules: _Rules
    words: dict[Symbol, Annotated[int, Field(gt=0)]]

    @model_validator(mode="after")
    def _well_formed(self) -> Grammar:
        if sum(self.words.values()) > len(_STEMS):
            raise ValueError(f"at most {len(_STEMS)} words can be named, not {sum(self.words.values())}")
        if both := self.rules.keys() & self.words.keys():
            raise ValueError(f"{min(both)} has both rules and words")
        for symbol, expansions in self.rules.items():
            if not math.isclose(math.fsum(expansions.values()), 1, abs_tol=1e-9):
                raise ValueError(f"the probabilities of {symbol} do not sum to 1")
            if not all(map(str.split, expansions)):
                raise ValueError(f"{symbol} has an empty expansion")
        known = self.rules.keys() | self.words.keys()
        reached, productive = {self.start}, set(self.words)
        while more := {part for symbol in reached for part in " ".join(self.rules.get(symbol, ())).split()} - reached:
            reached |= more
        rules = {symbol: [*map(str.split, expansions)] for symbol, expansions in self.rules.items()}
        for _ in rules:  # a round finds another one, or there is none
            productive |= {symbol for symbol, right in rules.items() if any(map(productive.issuperset, right))}
        if unknown := reached - known:
            raise ValueError(f"{min(unknown)} has neither rules nor words")
        if endless := reached - productive:
            raise ValueError(f"{min(endless)} never comes down to words")
        if idle := known - reached:
            raise ValueError(f"{min(idle)} cannot be derived from {self.start}")
        return self


def grammar_words(parameters: Grammar) -> dict[str, list[str]]:
    """Return made-up words for every preterminal symbol; no two symbols share a word."""
    (name,) = namers("grammar", parameters.seed, _STEMS)
    return {symbol: name(count, "") for symbol, count in parameters.words.items()}


def grammar(parameters: Grammar) -> Corpus:
    """Return sentences of a probabilistic context-free grammar and their linearised trees.

    Sentences are expanded top-down and accepted if their length is in the bucket, so the lengths inside a bucket follow
    the distribution of the grammar. No sentence occurs twice, within a split or in two; trees do.
    """
    words = grammar_words(parameters)
    rules = {
        symbol: ([right.split() for right in expansions], list(expansions.values()))
        for symbol, expansions in parameters.rules.items()
    }

    def draw(wanted: Wanted, rng: random.Random) -> tuple[Segment, str] | None:
        sentence, tree = _derive(parameters.start, rules, words, rng, wanted.high)
        text = " ".join(sentence)
        return (Segment((text, " ".join(tree))), text) if len(sentence) >= wanted.low else None

    return distinct_texts("grammar", parameters, draw)


def _derive(
    start: str, rules: Mapping[str, tuple[list[list[str]], list[float]]], words: Mapping[str, list[str]],
    rng: random.Random, longest: int,
) -> tuple[list[str], list[str]]:  # fmt: skip
    """Expand ``start`` leftmost first; return words and tree, or no words if there are more than ``longest``."""
    sentence: list[str] = []
    tree: list[str] = []
    agenda, due = [start], 1  # symbols to expand, and a lower bound of their number of words
    while agenda:
        symbol = agenda.pop()
        if symbol.startswith(")"):
            tree.append(symbol)
        elif symbol in words:
            sentence.append(rng.choice(words[symbol]))
            tree.append("XX")
        else:
            expansions, probabilities = rules[symbol]
            (right,) = rng.choices(expansions, probabilities)
            due += len(right) - 1
            if due > longest:
                return [], []
            label = symbol.partition("-")[0]
            tree.append(f"({label}")
            agenda += [f"){label}", *reversed(right)]
    return sentence, tree
