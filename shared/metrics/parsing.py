"""Labelled brackets of linearised constituency trees (Vinyals et al. 2015), counted as evalb counts them.

A tree is a line such as ``(S (NP XX XX )NP (VP XX )VP )S``: brackets that name their constituent at both ends, and
between them one token for each word.
"""

from __future__ import annotations

from collections import Counter

ROOTS = frozenset({"TOP", "S1", "ROOT"})
"""Labels of the node above the sentence, which every tree has: no merit in finding it."""

Bracket = tuple[str, int, int]
"""Label, words before the constituent, words up to its end."""


def brackets(tree: str) -> Counter[Bracket]:
    """The constituents of a tree, whatever a model has written: no line is refused.

    A closing bracket closes the innermost open one with its label and with it all that were opened since; if none is
    open it counts for nothing. What is open at the end closes there. A constituent without words is one, too, which no
    treebank has. Words are told apart by position alone, punctuation marks among them: evalb's usual parameters leave
    these out, but a linearised tree does not say which they are.
    """
    closed: list[Bracket] = []
    opened: list[tuple[str, int]] = []
    words = 0
    for token in tree.split():
        if len(token) == 1 or token[0] not in "()":
            words += 1
        elif token[0] == "(":
            opened.append((token[1:], words))
        else:
            same = (i for i, (label, _) in reversed(list(enumerate(opened))) if label == token[1:])
            first = next(same, len(opened))
            closed += [(label, begin, words) for label, begin in opened[first:]]
            del opened[first:]
    closed += [(label, begin, words) for label, begin in opened]
    return Counter(bracket for bracket in closed if bracket[0] not in ROOTS)


def bracket_counts(hypothesis: str, reference: str) -> tuple[int, int, int]:
    """Matched, predicted and gold brackets of one sentence; a corpus is scored by their sums.

    Brackets match one to one, by label and by the positions of their first and last words. Unlike evalb, which passes
    over sentences with a wrong number of words, this counts them by the positions they have.
    """
    predicted, gold = brackets(hypothesis), brackets(reference)
    return (predicted & gold).total(), predicted.total(), gold.total()
