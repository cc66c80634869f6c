"""Captions of generated scenes from a small grammar of objects and relations; each noun is linked to its object."""

from __future__ import annotations

import itertools
import random
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
_TRIES = 1000  # templates drawn for a scene before an error

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


class Named(NamedTuple):
    """An object and its name in a caption."""

    name: str
    box: Box


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
    match direction:
        case "left":
            return a[2] <= b[0]
        case "above":
            return a[3] <= b[1]
        case "right":
            return holds("left", b, a)
        case _:
            return holds("above", b, a)


def larger(a: Box, b: Box) -> bool:
    """Return whether ``a`` has at least twice the area of ``b``."""
    return _area(a) >= _LARGER * _area(b)


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


def captions(things: Sequence[Named], count: int, rng: random.Random) -> list[Caption]:
    """Return distinct true captions of one to three objects, whose boxes are disjoint.

    All templates are used in random order before one is used again; of several true directions a random one is used.
    A caption names the objects in their order from left to right, so the picture determines which one is next.

    Args:
        things: the objects; no two have the same name.
        count: number of captions.
        rng: random generator.

    Raises:
        ReplicationError: the grammar has fewer captions.
    """
    found: list[Caption] = []
    texts: set[str] = set()
    for template, _ in zip(_endless(TEMPLATES[len(things)], rng), range(_TRIES), strict=False):
        if len(found) == count:
            return found
        caption = _realise(template, things, rng)
        if caption and caption.text not in texts:
            texts.add(caption.text)
            found.append(caption)
    raise ReplicationError(f"the grammar has not {count} different captions for {len(things)} objects; ask for fewer.")


def _endless(templates: Sequence[str], rng: random.Random) -> Iterator[str]:
    while True:
        yield from rng.sample(templates, len(templates))


def _realise(template: str, things: Sequence[Named], rng: random.Random) -> Caption | None:
    """Fill the template with the objects from left to right; None if it does not hold."""
    order = sorted(range(len(things)), key=lambda thing: _middle(things[thing].box))
    parts = dict(zip("ABC", order, strict=False))
    words: list[str] = []
    mentions: list[Mention] = []
    for token in template.split():
        part = parts.get(token.removeprefix("the-"))
        if part is not None:
            name = things[part].name
            phrase = f"the {name}" if token.startswith("the-") else with_article(name)
            start = len(words) + 1
            mentions.append(Mention(start, start + len(name.split()), part))
        elif ">" in token or "<" in token:
            boxes = [things[parts[letter]].box for letter in token if letter in parts]
            if (said := _relation(token, boxes, rng)) is None:
                return None
            phrase = said
        else:
            phrase = token
        words += phrase.split()
    return Caption(" ".join(words), tuple(mentions))


def _relation(token: str, boxes: Sequence[Box], rng: random.Random) -> str | None:
    """Return a phrase of a relation token that holds for these boxes; None if there is none."""
    true = [said for said, judge in relations(token).items() if judge(boxes)]
    if ">>" in token:
        return true[0] if true else None  # with a single choice the generator is not used
    return rng.choice(true) if true else None


def _one_after_another(direction: str, boxes: Sequence[Box]) -> bool:
    return all(holds(direction, a, b) for a, b in itertools.pairwise(boxes))


def _middle(box: Box) -> tuple[int, int]:
    """Return twice the centre of a box (x, y), which is an integer."""
    return box[0] + box[2], box[1] + box[3]


def _area(box: Box) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])
