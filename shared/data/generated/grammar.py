"""The generated task `grammar`: sentences of made-up words and their constituency trees, one symbol per bracket.

Trees have the form of Vinyals et al. (2015, "Grammar as a Foreign Language"): brackets
are labelled at both ends, and words with their tags are replaced by ``XX``, as in ``(S (NP XX XX )NP (VP XX )VP )S``.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from shared.data.generated.words import Texts, Wanted, distinct_texts, namer, syllables
from shared.data.splits import Corpus, Segment

_STEMS = syllables("bdfklmnprst", "aeiou", "lmnrstv")

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
        while (
            more := {
                symbol
                for symbol, expansions in self.rules.items()
                if any(productive.issuperset(right.split()) for right in expansions)
            }
            - productive
        ):
            productive |= more
        if unknown := reached - known:
            raise ValueError(f"{min(unknown)} has neither rules nor words")
        if endless := reached - productive:
            raise ValueError(f"{min(endless)} never comes down to words")
        if idle := known - reached:
            raise ValueError(f"{min(idle)} cannot be derived from {self.start}")
        return self


def vocabulary(parameters: Grammar) -> dict[str, list[str]]:
    """Return made-up words for every preterminal symbol; no two symbols share a word."""
    name = namer(_STEMS, "grammar", parameters.seed)
    return {symbol: name(count, "") for symbol, count in parameters.words.items()}


def grammar(parameters: Grammar) -> Corpus:
    """Return sentences of a probabilistic context-free grammar and their linearised trees.

    Sentences are expanded top-down and accepted if their length is in the bucket, so the lengths inside a bucket follow
    the distribution of the grammar. No sentence occurs twice, within a split or in two; trees do.
    """
    words = vocabulary(parameters)
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
    start: str,
    rules: Mapping[str, tuple[list[list[str]], list[float]]],
    words: Mapping[str, list[str]],
    rng: random.Random,
    longest: int,
) -> tuple[list[str], list[str]]:
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
