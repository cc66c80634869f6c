"""Captions of generated scenes from a small grammar of objects and relations, and the truth of any caption by it.

In a caption of the grammar each noun is linked to its object. The captions of models are parsed with the same grammar.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from shared.errors import ReplicationError

Box = tuple[int, int, int, int]
"""Left, top, right and bottom of a rectangle in pixels; right and bottom are exclusive."""

DIRECTIONS = {"left": "to the left of", "right": "to the right of", "above": "above", "below": "below"}
"""Direction to its words in a caption."""

_ORDERS = {"left": "from left to right", "above": "from top to bottom"}
_LARGER = 2  # least ratio of the areas of two boxes, of which one is called larger
_TRIES = 150  # rounds of all templates for a scene before an error

# A, B and C are objects from left to right: "A" is the name with its indefinite article, "the-A" a second mention;
# "A>B" is a direction from A to B, "A>>B" says that A is larger, "A<B<C" gives their order. Other words are literal.
TEMPLATES: dict[int, tuple[str, ...]] = {
    1: ("A", "there is A", "a picture of A", "this is A", "here is A", "one can see A"),
    2: (
        "A A>B B",
        "A is A>B B",
        "there is A A>B B",
        "there is A ; B is B>A it",
        "A and B ; the-A is A>B the-B",
        "A>B B there is A",
        "A is A>>B B",
    ),
    3: (
        "A A>B B ; C is C>A the-A",
        "there is A ; B is B>A it ; C is C>B the-B",
        "A is A>B B and A>C C",
        "A>B B there is A ; C is C>B the-B",
        "A , B and C ; the-A is A>C the-C",
        "A<B<C : A , B and C",
        "A is A>B B ; it is A>>C C",
    ),
}
"""Number of objects to the templates of captions."""


class Mention(NamedTuple):
    """The words ``start`` to ``end`` (exclusive) of a caption, without article, name the object of that index."""

    start: int
    end: int
    thing: int


class Caption(NamedTuple):
    """Lower-case words separated by spaces, and the mentions in their order."""

    text: str
    mentions: tuple[Mention, ...]


def holds(direction: str, a: Box, b: Box) -> bool:
    """Return whether ``a`` lies completely in that direction of ``b``; left and above can both hold."""
    first, second = (a, b) if direction in ("left", "above") else (b, a)
    axis = 0 if direction in ("left", "right") else 1
    return first[axis + 2] <= second[axis]


def larger(a: Box, b: Box) -> bool:
    """Return whether ``a`` has at least twice the area of ``b``."""
    first, second = ((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b))
    return first >= _LARGER * second


def relations(token: str) -> dict[str, Callable[[Sequence[Box]], bool]]:
    """Return the phrases of a token of `TEMPLATES`, and functions that tell whether they hold for its boxes."""
    if ">>" in token:
        return {"larger than": lambda boxes: larger(*boxes)}
    choices = DIRECTIONS if ">" in token else _ORDERS
    return {said: partial(_one_after_another, direction) for direction, said in choices.items()}


def with_article(name: str) -> str:
    """Return the name after ``a`` or ``an``, by pronunciation: a unicorn, a ewe."""
    vowel = name[0] in "aeiou" and not name.startswith(("uni", "ewe"))
    return f"{'an' if vowel else 'a'} {name}"


def captions(names: Sequence[str], boxes: Sequence[Box], count: int, rng: random.Random) -> list[Caption]:
    """Return distinct true captions of one to three objects, whose boxes are disjoint.

    All templates are used in random order before one is used again; of several true directions a random one is used.
    A caption names the objects in their order from left to right, so the picture determines which one is next.

    Args:
        names: of the objects, no two alike.
        boxes: of the objects.
        count: number of captions.
        rng: random generator.

    Raises:
        ReplicationError: the grammar has fewer captions.
    """
    found: list[Caption] = []
    texts: set[str] = set()
    for _ in range(_TRIES):
        for template in rng.sample(TEMPLATES[len(names)], len(TEMPLATES[len(names)])):
            if len(found) == count:
                return found
            caption = _realise(template, names, boxes, rng)
            if caption and caption.text not in texts:
                texts.add(caption.text)
                found.append(caption)
    raise ReplicationError(f"the grammar has not {count} different captions for {len(names)} objects; ask for fewer.")


def _realise(template: str, names: Sequence[str], boxes: Sequence[Box], rng: random.Random) -> Caption | None:
    """Fill the template with the objects from left to right; None if it does not hold."""
    order = sorted(range(len(names)), key=lambda i: (boxes[i][0] + boxes[i][2], boxes[i][1] + boxes[i][3]))
    parts = dict(zip("ABC", order, strict=False))
    words: list[str] = []
    mentions: list[Mention] = []
    for token in template.split():
        part = parts.get(token.removeprefix("the-"))
        if part is not None:
            name = names[part]
            phrase = f"the {name}" if token.startswith("the-") else with_article(name)
            start = len(words) + 1
            mentions.append(Mention(start, start + len(name.split()), part))
        elif ">" in token or "<" in token:
            related = [boxes[parts[letter]] for letter in token if letter in parts]
            true = [said for said, judge in relations(token).items() if judge(related)]
            if not true:
                return None
            phrase = true[0] if ">>" in token else rng.choice(true)  # a single choice leaves the generator alone
        else:
            phrase = token
        words += phrase.split()
    return Caption(" ".join(words), tuple(mentions))


def _one_after_another(direction: str, boxes: Sequence[Box]) -> bool:
    return all(holds(direction, a, b) for a, b in itertools.pairwise(boxes))


Statement = tuple[Callable[[Sequence[Box]], bool], tuple[int, ...]]
"""Whether a relation holds of boxes, and the indices of the names that it is said of, in its order."""


def parse(caption: str) -> tuple[tuple[str, ...], tuple[Statement, ...]] | None:
    """Return the names of a caption of :func:`captions`, and what it states; None if it is not in the grammar."""
    for expression, tokens in _FORMS:
        match = expression.fullmatch(caption)
        if match and _well_formed(match):
            letters = [letter for letter in "ABC" if letter in match.groupdict()]
            said = (
                (relations(token)[match[group]], tuple(letters.index(letter) for letter in token if letter in letters))
                for group, token in tokens.items()
            )
            return tuple(match[letter] for letter in letters), tuple(said)
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
    said, statements = parsed or (tuple(dict.fromkeys(_NAMED.findall(caption))), ())

    def holding(places: dict[int, int]) -> int:
        """How many statements hold if the names refer to these objects."""
        known = (statement for statement in statements if places.keys() >= {*statement[1]})
        return sum(holds([boxes[places[part]] for part in parts]) for holds, parts in known)

    right, true = max((len(places), holding(places)) for places in _interpretations(said, names))
    mentioned, stated = len(said), len(statements)
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


def _well_formed(match: re.Match[str]) -> bool:
    """Return whether the names differ and have the right articles."""
    groups = match.groupdict()
    names = {letter: groups[letter] for letter in "ABC" if letter in groups}
    articles = all(f"{groups[f'article_{letter}']} {name}" == with_article(name) for letter, name in names.items())
    return len({*names.values()}) == len(names) and articles


def _form(template: str) -> tuple[re.Pattern[str], dict[str, str]]:
    """Return a template as an expression with groups A, B and C for names, and the token of each relation's group."""
    parts: list[str] = []
    tokens: dict[str, str] = {}
    for token in template.split():
        if token in "ABC":
            parts.append(f"(?P<article_{token}>an?) (?P<{token}>{_NAME})")
        elif token.startswith("the-"):
            parts.append(f"the (?P={token.removeprefix('the-')})")
        elif "<" in token or ">" in token:
            group = f"relation_{len(tokens)}"
            tokens[group] = token
            parts.append(f"(?P<{group}>{'|'.join(relations(token))})")
        else:
            parts.append(re.escape(token))
    return re.compile(" ".join(parts)), tokens


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
