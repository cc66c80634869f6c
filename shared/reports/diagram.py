"""A mechanism as a diagram: boxes in rows and arrows between them, drawn as SVG from a short description."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from html import escape

from markupsafe import Markup
from pydantic import Field, model_validator

from shared.config import Strict

WIDTH, GAP, LINE, LETTER, EDGE = 360.0, 30.0, 17.0, 7.2, 6.0
"""Of the drawing, between rows, of a line, of a letter on average, and around the words of a box: pixels of a phone."""
HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 8 4 0 8z"/></marker>'
)


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

    def svg(self) -> Markup:
        """The drawing, in the colours of the page around it."""
        boxes, words, top = {}, [], 1.0
        for row in self.rows:
            width = WIDTH / len(row) - 8
            lines = {name: textwrap.wrap(text, int((width - 2 * EDGE) / LETTER)) for name, text in row.items()}
            height = LINE * max(map(len, lines.values())) + 2 * EDGE
            for place, (name, said) in enumerate(lines.items()):
                middle = WIDTH * (place + 0.5) / len(row)
                boxes[name] = (middle, top, width, height)
                if said != ["-"]:
                    kind = ' class="new"' if name in self.new else ""
                    words.append(f'<rect{kind} x="{middle - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" '
                                 f'height="{height:.1f}" rx="5"/>')  # fmt: skip
                    first = top + (height - LINE * len(said)) / 2 + 13
                    words += [
                        f'<text x="{middle:.1f}" y="{first + LINE * number:.1f}">{escape(line)}</text>'
                        for number, line in enumerate(said)
                    ]
            top += height + GAP
        arrows = "".join(self._line(arrow, boxes) for arrow in self.arrows)
        label = "; ".join(" leads to ".join(map(self._words, arrow.split())) for arrow in self.arrows)
        size = f'viewBox="0 0 {WIDTH:.0f} {top - GAP + 1:.0f}"'
        head = f'<svg class="diagram" {size} role="img" aria-label="{escape(label)}">'
        return Markup(f"{head}{HEAD}{arrows}{''.join(words)}</svg>")

    def _words(self, name: str) -> str:
        return next(row[name] for row in self.rows if name in row)

    def _line(self, arrow: str, boxes: Mapping[str, tuple[float, float, float, float]]) -> str:
        """From one box to the other: down, or to the side where they stand in one row; ends keep apart."""
        one, other = arrow.split()
        (x1, y1, w1, h1), (x2, y2, w2, h2) = boxes[one], boxes[other]
        if y1 == y2:
            side = 1 if x2 > x1 else -1
            begin, end = (x1 + side * w1 / 2, y1 + h1 / 2), (x2 - side * w2 / 2, y2 + h2 / 2)
        else:
            begin = (x1 + self._apart(arrow, 0, boxes) * w1, y1 + h1)
            end = (x2 + self._apart(arrow, 1, boxes) * w2, y2)
        (a, b), (c, d) = begin, end
        return f'<path d="M{a:.1f} {b:.1f} {c:.1f} {d:.1f}" marker-end="url(#head)"/>'

    def _apart(self, arrow: str, side: int, boxes: Mapping[str, tuple[float, float, float, float]]) -> float:
        """Where on its box an arrow ends, from -0.5 to 0.5: in the order in which the other ends stand."""
        name = arrow.split()[side]
        ends = [each.split()[1 - side] for each in self.arrows if each.split()[side] == name]
        ends = sorted((each for each in ends if boxes[each][1] != boxes[name][1]), key=lambda each: boxes[each][0])
        return (ends.index(arrow.split()[1 - side]) + 1) / (len(ends) + 1) - 0.5
