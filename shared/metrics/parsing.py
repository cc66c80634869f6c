"""Labelled brackets of linearised constituency trees (Vinyals et al. 2015), counted as in evalb.

A tree is a line such as ``(S (NP XX XX )NP (VP XX )VP )S``: opening and closing brackets carry the label of the
constituent, and each word is one token.
"""

from __future__ import annotations

from collections import Counter

ROOTS = frozenset({"TOP", "S1", "ROOT"})
"""Labels of the root node, which is not scored because every tree has it."""

Bracket = tuple[str, int, int]
"""Label, position of the first word, and position after the last word."""


def brackets(tree: str) -> Counter[Bracket]:
    """Return the constituents of a line, which may be malformed.

    A closing bracket closes the innermost open bracket of its label and every bracket opened after that one; without
    an open bracket of its label it is ignored. Brackets that are open at the end close there. Constituents without
    words count, although no treebank has any. Punctuation counts as words: the usual parameters of evalb exclude it,
    but a linearised tree does not mark it.
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
    """Return the numbers of matched, predicted and gold brackets of one sentence; a corpus is scored by their sums.

    Brackets match one to one, by label and by the positions of their first and last words. evalb skips sentences with a
    wrong number of words; this function scores them.
    """
    predicted, gold = brackets(hypothesis), brackets(reference)
    return (predicted & gold).total(), predicted.total(), gold.total()
