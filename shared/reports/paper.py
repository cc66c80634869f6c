"""Facts of a paper as data: who, where, its mechanism drawn, its tables of results, its settings and sizes."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from shared.claims.schema import Provenance
from shared.config import Strict, build, load_yaml
from shared.reports.document import Box, Drawing, link

Value = float | int | str | None
SOURCES: Mapping[str, str] = {
    "C:paper": "in the paper", "C:code": "in its authors' code", "C:note": "in a note on the paper",
    "D": "computed from its numbers", "M": "from memory",
}  # fmt: skip
"""Provenance of a fact, in words."""
WIDTH, GAP, LINE, LETTER, EDGE = 360.0, 30.0, 17.0, 7.2, 6.0
"""Of the drawing, between rows, of a line, of a letter on average, and around the words of a box: pixels of a phone."""


class Column(Strict):
    """A column of a paper's table; with ``metric`` our runs have a number to put beside it, unless a row says which."""

    key: str
    title: str
    metric: str | None = None


class Row(Strict, extra="allow"):
    """A row of a paper's table as printed, with a further key for each column: null where nothing is reported.

    Attributes:
        variants: of ours that correspond to the row, one per task.
        metrics: column to the metric of ours that counts in this row in place of the column's own.
    """

    __pydantic_extra__: dict[str, Value] = Field(init=False)
    label: str
    variants: tuple[str, ...] = Field(default=(), min_length=1)
    metrics: dict[str, str] = Field(default={}, min_length=1)

    def __getitem__(self, column: str) -> Value:
        """The paper's number or word in a column, by its key."""
        return self.__pydantic_extra__[column]

    def metric(self, column: Column) -> str | None:
        """The metric of ours that stands beside the paper's number there, if any."""
        return self.metrics.get(column.key, column.metric)


class PaperTable(Strict):
    """A table of the paper as printed."""

    id: str
    title: str
    where: str
    provenance: Provenance
    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = Field(min_length=1)
    note: str | None = None

    @model_validator(mode="after")
    def _rectangular(self) -> PaperTable:
        keys = {column.key for column in self.columns}
        for row in self.rows:
            if row.__pydantic_extra__.keys() != keys:
                raise ValueError(f"row '{row.label}' of table {self.id} must have exactly {sorted(keys | {'label'})}")
            if unknown := row.metrics.keys() - keys:
                raise ValueError(f"row '{row.label}' of table {self.id} has no column '{min(unknown)}'")
        return self


class Setting(Strict):
    """One hyper-parameter of the paper."""

    item: str
    value: float | int | str
    provenance: Provenance


class Program(Strict):
    """What the authors' program does otherwise than the paper, or where the paper leaves it open.

    Attributes:
        item: what is meant.
        paper: what the paper says; null: nothing.
        program: what the program does.
        file: where it does so, ``<owner>/<repository>@<commit>/<path>``.
        here: what this project does.
        known: the program, or that part of it, was run; its text was read; or from memory.
    """

    item: str
    paper: str | None = None
    program: str
    file: str = Field(pattern=r"^[\w.-]+/[\w.-]+@[0-9a-f]{7,40}/\S+$")
    here: str
    known: Literal["run", "read", "memory"]

    def source(self) -> str:
        """How it is known, and a link to the file."""
        repository, _, rest = self.file.partition("@")
        commit, _, path = rest.partition("/")
        return f"{self.known}: {link(Path(path).name, f'https://github.com/{repository}/blob/{commit}/{path}')}"


Score = Literal[
    "additive", "multiplicative", "scaled multiplicative", "general", "biased general", "activated general",
    "similarity", "location",
]  # fmt: skip


class Attention(Strict):
    """An attention of the paper in the terms of Brauwers & Frasincar (2021), sections 3.1 to 3.3.

    Attributes:
        name: what attends to what.
        code: the class that it is, ``<file>:<class>``.
        multiplicity: how many sequences of features are attended to, and which of them first.
        levels: of features, such as words and sentences.
        representations: of the same input that are attended to.
        scoring: how a query and a key become a score; several where the paper compares them.
        alignment: what the weights are spread over.
        dimensionality: whether all numbers of a value have one weight.
        query: where it comes from.
        queries: how many attend at once, or one after the other.
    """

    name: str
    code: str = Field(pattern=r"^[\w/]+\.py:\w+$")
    multiplicity: Literal["singular", "alternating", "interactive", "parallel"] = "singular"
    levels: Literal["single-level", "attention-via-attention", "hierarchical"] = "single-level"
    representations: Literal["single-representational", "multi-representational"] = "single-representational"
    scoring: tuple[Score, ...] = Field(min_length=1)
    alignment: Literal["global", "local", "hard", "reinforced"]
    dimensionality: Literal["single-dimensional", "multi-dimensional"] = "single-dimensional"
    query: Literal["basic", "specialized", "self-attentive"]
    queries: Literal["singular", "multi-head", "multi-hop", "capsule-based"]


class ModelPart(Strict, extra="allow"):
    """A part of the paper's models, with its parameters in each of them."""

    __pydantic_extra__: dict[str, int] = Field(init=False)
    part: str

    @property
    def counts(self) -> dict[str, int]:
        """Model to parameters."""
        return self.__pydantic_extra__


class ParameterCounts(Strict):
    """Sizes of the paper's models, in parameters."""

    provenance: Provenance
    note: str | None = None
    parts: tuple[ModelPart, ...]
    totals: dict[str, int]

    @model_validator(mode="after")
    def _adds_up(self) -> ParameterCounts:
        for each in self.parts:
            if each.counts.keys() != self.totals.keys():
                raise ValueError(f"the part '{each.part}' must have exactly the keys part, {', '.join(self.totals)}")
        for model, total in self.totals.items():
            if (summed := sum(each.counts[model] for each in self.parts)) != total:
                raise ValueError(f"the parts of {model} add up to {summed}, not {total}")
        return self


class Diagram(Strict):
    """Boxes and arrows.

    Attributes:
        rows: from the top, each of the names of its boxes and what stands in them; "-" keeps a place free.
        arrows: two names each, from and to, in rows further down or in the same one.
        new: names of the boxes that the paper adds.
    """

    rows: tuple[Mapping[str, str], ...] = Field(min_length=1)
    arrows: tuple[str, ...] = ()
    new: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Diagram:
        known = {name for row in self.rows for name in row}
        if unknown := [name for each in (*self.arrows, *self.new) for name in each.split() if name not in known]:
            raise ValueError(f"the diagram has no box '{unknown[0]}'; its boxes are {', '.join(sorted(known))}")
        if wrong := [each for each in self.arrows if len(each.split()) != 2]:
            raise ValueError(f"the arrow '{wrong[0]}' must be two names with a space between them")
        return self

    def drawing(self) -> Drawing:
        """Where its boxes and arrows are."""
        boxes, top = dict[str, Box](), 1.0
        for row in self.rows:
            width = WIDTH / len(row) - 8
            lines = {name: textwrap.wrap(text, int((width - 2 * EDGE) / LETTER)) for name, text in row.items()}
            height = LINE * max(map(len, lines.values())) + 2 * EDGE
            for place, (name, said) in enumerate(lines.items()):
                first = top + (height - LINE * len(said)) / 2 + 13
                words = [] if said == ["-"] else [(first + LINE * number, line) for number, line in enumerate(said)]
                boxes[name] = (WIDTH * (place + 0.5) / len(row), top, width, height, words, name in self.new)
            top += height + GAP
        label = "; ".join(" leads to ".join(map(self._words, arrow.split())) for arrow in self.arrows)
        arrows = [self._ends(arrow, boxes) for arrow in self.arrows]
        return Drawing((WIDTH, top - GAP + 1), [*boxes.values()], arrows, label)

    def _words(self, name: str) -> str:
        return next(row[name] for row in self.rows if name in row)

    def _ends(self, arrow: str, boxes: Mapping[str, Box]) -> tuple[float, float, float, float]:
        """From one box to the other: down, or to the side where they stand in one row; ends keep apart."""
        (x1, y1, w1, h1, *_), (x2, y2, w2, h2, *_) = map(boxes.__getitem__, arrow.split())
        if y1 == y2:
            side = 1 if x2 > x1 else -1
            return x1 + side * w1 / 2, y1 + h1 / 2, x2 - side * w2 / 2, y2 + h2 / 2
        return x1 + self._apart(arrow, 0, boxes) * w1, y1 + h1, x2 + self._apart(arrow, 1, boxes) * w2, y2

    def _apart(self, arrow: str, side: int, boxes: Mapping[str, Box]) -> float:
        """Where on its box an arrow ends, from -0.5 to 0.5: in the order in which the other ends stand."""
        name = arrow.split()[side]
        ends = [each.split()[1 - side] for each in self.arrows if each.split()[side] == name]
        ends = sorted((each for each in ends if boxes[each][1] != boxes[name][1]), key=lambda each: boxes[each][0])
        return (ends.index(arrow.split()[1 - side]) + 1) / (len(ends) + 1) - 0.5


class Paper(Strict):
    """A paper's facts.

    Attributes:
        short: as cited in running text, such as "Bahdanau et al. 2015".
        mechanism: what it adds to attention, in a sentence.
        diagram: the same, drawn.
        attentions: each of its kind that the paper introduces or compares.
        code: claim to the parts of ``model.py`` that it is about, such as ``Encoder`` and ``Encoder.forward``.
        data: names of the data cards of what the paper's own models were trained on.
        program: all that is said anywhere of what the authors' program does.
    """

    short: str
    title: str
    authors: tuple[str, ...] = Field(min_length=1)
    venue: str
    year: int = Field(ge=1900, le=2100)
    url: str = Field(pattern="^https?://")
    mechanism: str | None = None
    diagram: Diagram | None = None
    attentions: tuple[Attention, ...] = ()
    code: Mapping[str, tuple[str, ...]] = Field(default={})
    data: tuple[str, ...] = ()
    tables: tuple[PaperTable, ...] = ()
    hyperparameters: tuple[Setting, ...] = ()
    program: tuple[Program, ...] = ()
    parameter_counts: ParameterCounts | None = None

    @classmethod
    def load(cls, path: Path) -> Paper:
        """Read a paper.yaml.

        Raises:
            ReplicationError: the file is missing or wrong; says where.
        """
        return build(cls, load_yaml(path), where=str(path))
