"""The truth of a caption of a composed scene; the caption is parsed with the grammar of the references."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from shared.data.generated.scene_captions import TEMPLATES, Box, relations, with_article

Judge = Callable[[Sequence[Box]], bool]


class Statement(NamedTuple):
    """A statement that a relation holds.

    Attributes:
        holds: tells whether the relation holds between objects with the given boxes.
        parts: indices of the names in the caption, in the order of the relation.
    """

    holds: Judge
    parts: tuple[int, ...]


class Reading(NamedTuple):
    """The content of a caption: the names of its objects, and statements about their places and sizes."""

    names: tuple[str, ...]
    statements: tuple[Statement, ...]


class _Form(NamedTuple):
    """Return a template as a regular expression with groups A, B and C for names, and a group for each relation."""

    expression: re.Pattern[str]
    tokens: dict[str, str]


def parse(caption: str) -> Reading | None:
    """Parse a caption of `shared.data.generated.scene_captions.captions`; None if it is not in the grammar."""
    for form in _FORMS:
        match = form.expression.fullmatch(caption)
        if match and _well_formed(match):
            letters = [letter for letter in "ABC" if letter in match.groupdict()]
            return Reading(
                tuple(match[letter] for letter in letters),
                tuple(
                    Statement(
                        relations(token)[match[group]],
                        tuple(letters.index(letter) for letter in token if letter in letters),
                    )
                    for group, token in form.tokens.items()
                ),
            )
    return None


def scene_truth(caption: str, names: Sequence[Sequence[str]], boxes: Sequence[Box]) -> dict[str, int]:
    """Compare a caption with its scene.

    Different names refer to different objects. If a name fits several objects, as "animal" fits two animals, it refers
    to the object that makes most of the caption true. A caption outside of the grammar has no statements, and its
    objects are the distinct names that follow "a" or "an".

    Args:
        caption: lower-case words separated by spaces.
        names: for each object of the scene its possible names, the name and the kind.
        boxes: the boxes of the objects.

    Returns:
        ``objects``, the number of objects of the scene, and ``named``, how many of them the caption names;
        ``mentioned``, the number of objects in the caption, and ``right``, how many of them are in the scene (equal to
        ``named``); ``relations``, the number of statements about places and sizes, and ``true``, how many of them hold;
        ``grammatical`` (0 or 1); and ``all_true`` (0 or 1): grammatical, and all objects and statements are right.
    """
    parsed = parse(caption)
    reading = parsed or Reading(tuple(dict.fromkeys(_NAMED.findall(caption))), ())
    right, true = max(
        (len(places), sum(_holds(statement, places, boxes) for statement in reading.statements))
        for places in _interpretations(reading.names, names)
    )
    mentioned, stated = len(reading.names), len(reading.statements)
    return {
        "objects": len(names),
        "named": right,
        "mentioned": mentioned,
        "right": right,
        "relations": stated,
        "true": true,
        "grammatical": int(parsed is not None),
        "all_true": int(parsed is not None and right == mentioned and true == stated),
    }


def _interpretations(said: Sequence[str], names: Sequence[Sequence[str]]) -> Iterator[dict[int, int]]:
    """Yield all assignments of names to objects of the scene; a name that fits no object is left out."""
    choices = [[None, *(i for i, known in enumerate(names) if name in known)] for name in said]
    for chosen in itertools.product(*choices):
        places = {part: thing for part, thing in enumerate(chosen) if thing is not None}
        if len({*places.values()}) == len(places):
            yield places


def _holds(statement: Statement, places: dict[int, int], boxes: Sequence[Box]) -> bool:
    there = all(part in places for part in statement.parts)
    return there and statement.holds([boxes[places[part]] for part in statement.parts])


def _well_formed(match: re.Match[str]) -> bool:
    """Return whether the names differ and have the right articles."""
    groups = match.groupdict()
    names = [name for group, name in groups.items() if group in "ABC"]
    articles = (f"{groups[f'article_{letter}']} {groups[letter]}" for letter in "ABC" if letter in groups)
    return len({*names}) == len(names) and all(map(_right_article, articles))


def _right_article(phrase: str) -> bool:
    return with_article(phrase.partition(" ")[2]) == phrase


def _form(template: str) -> _Form:
    parts: list[str] = []
    tokens: dict[str, str] = {}
    for token in template.split():
        if token in "ABC":
            parts.append(f"(?P<article_{token}>an?) (?P<{token}>{_NAME})")
        elif token.startswith("the-"):
            parts.append(f"the (?P={token.removeprefix('the-')})")
        elif _is_relation(token):
            group = f"relation_{len(tokens)}"
            tokens[group] = token
            parts.append(f"(?P<{group}>{'|'.join(relations(token))})")
        else:
            parts.append(re.escape(token))
    return _Form(re.compile(" ".join(parts)), tokens)


def _is_relation(token: str) -> bool:
    return "<" in token or ">" in token


def _words_of_the_grammar() -> set[str]:
    """Return the words that can be before or after a name; no name contains one, so its end is unambiguous."""
    found = {"a", "an", "the"}
    for token in {token for forms in TEMPLATES.values() for template in forms for token in template.split()}:
        if ">" in token:
            found |= {word for said in relations(token) for word in said.split()}
        elif token.removeprefix("the-") not in "ABC" and "<" not in token:  # a colon follows an order
            found.add(token)
    return found


_WORD = rf"(?!(?:{'|'.join(sorted(map(re.escape, _words_of_the_grammar())))})\b)[a-z]+"
_NAME = f"{_WORD}(?: {_WORD})?"
_NAMED = re.compile(rf"\ban? ({_NAME})\b")
_FORMS = [_form(template) for forms in TEMPLATES.values() for template in forms]
