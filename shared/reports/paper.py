"""Facts of a paper as data: who, where, its tables of results, its settings and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from shared.claims.schema import Provenance
from shared.config import Strict, build, load_yaml
from shared.reports.document import Paragraph, link

Value = float | int | str | None
Words = Annotated[str, Field(min_length=1)]
_KINDS: Mapping[str, Any] = {"label": str, "variants": list, "metrics": dict}
"""What a row has under a key that is not a column's."""


class Column(Strict):
    """A column of a paper's table; with ``metric`` our runs have a number to put beside it, unless a row says which."""

    key: Words
    title: Words
    metric: Words | None = None


class PaperTable(Strict):
    """A table of the paper as printed.

    Attributes:
        rows: each a mapping with ``label``, a value per column key (null: not reported) and, where our runs
            have counterparts, ``variants``: their names, one per task; ``metrics`` maps column keys to the metrics
            that count in this row in place of the columns' own.
    """

    id: Words
    title: Words
    where: Words
    provenance: Provenance
    columns: tuple[Column, ...]
    rows: tuple[dict[str, Value | list[str] | dict[str, str]], ...] = Field(min_length=1)
    note: str | None = None

    @model_validator(mode="after")
    def _rectangular(self) -> PaperTable:
        wanted = {"label"} | {column.key for column in self.columns}
        for row in self.rows:
            if row.keys() - {"variants", "metrics"} != wanted:
                raise ValueError(f"row '{row.get('label')}' of table {self.id} must have exactly {sorted(wanted)}")
            for key, value in row.items():
                if not isinstance(value, _KINDS.get(key, float | int | str | None)):
                    raise ValueError(f"'{key}' of row '{row['label']}' of table {self.id} cannot be {value!r}")
                if key in _KINDS and not value:
                    raise ValueError(f"'{key}' of a row of table {self.id} is empty; fill it, or leave it out")
            if not all(_metrics(row).values()):
                raise ValueError(f"'metrics' of row '{row['label']}' of table {self.id} names no metric")
            if unknown := _metrics(row).keys() - wanted:
                raise ValueError(f"row '{row['label']}' of table {self.id} has no column '{min(unknown)}'")
        return self

    def variants(self, row: int) -> list[str]:
        """Our variants that correspond to this row."""
        found = self.rows[row].get("variants")
        return found if isinstance(found, list) else []

    def metric(self, row: int, column: Column) -> str | None:
        """The metric of ours that stands beside the paper's number there, if any."""
        return _metrics(self.rows[row]).get(column.key, column.metric)


def _metrics(row: Mapping[str, object]) -> dict[str, str]:
    found = row.get("metrics")
    return found if isinstance(found, dict) else {}


class Setting(Strict):
    """One hyper-parameter of the paper."""

    item: Words
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

    item: Words
    paper: Words | None = None
    program: Words
    file: str = Field(pattern=r"^[\w.-]+/[\w.-]+@[0-9a-f]{7,40}/\S+$")
    here: Words
    known: Literal["run", "read", "memory"]

    def source(self) -> str:
        """How it is known, and a link to the file."""
        repository, _, rest = self.file.partition("@")
        commit, _, path = rest.partition("/")
        return f"{self.known}: {link(Path(path).name, f'https://github.com/{repository}/blob/{commit}/{path}')}"


class ParameterCounts(Strict):
    """Sizes of the paper's models, in parameters; ``parts`` have the key ``part`` and one key per model."""

    provenance: Provenance
    note: str | None = None
    parts: tuple[dict[str, str | int], ...]
    totals: dict[str, int]

    @model_validator(mode="after")
    def _adds_up(self) -> ParameterCounts:
        for part in self.parts:
            if not part.get("part") or part.keys() != {"part", *self.totals}:
                raise ValueError(f"{part} must have exactly the keys part, {', '.join(self.totals)}")
            if not isinstance(part["part"], str):
                raise ValueError(f"'part' of {part} must be a text")
        for model, total in self.totals.items():
            for part in self.parts:
                if not isinstance(part.get(model), int):
                    raise ValueError(f"the part '{part.get('part')}' must have a whole number for '{model}'")
            summed = sum(int(part[model]) for part in self.parts)
            if summed != total:
                raise ValueError(f"the parts of {model} add up to {summed}, not {total}")
        return self


class Paper(Strict):
    """A paper's facts.

    Attributes:
        short: as cited in running text, such as "Bahdanau et al. 2015".
        mechanism: what it adds to attention, in a sentence.
        data: names of the data cards of what the paper's own models were trained on.
        program: all that is said anywhere of what the authors' program does.
    """

    short: Words
    title: Words
    authors: tuple[Words, ...] = Field(min_length=1)
    venue: Words
    year: int = Field(ge=1900, le=2100)
    url: str = Field(pattern="^https?://")
    mechanism: Words | None = None
    data: tuple[str, ...] = ()
    tables: tuple[PaperTable, ...] = ()
    hyperparameters: tuple[Setting, ...] = ()
    program: tuple[Program, ...] = ()
    parameter_counts: ParameterCounts | None = None

    def citation(self) -> Paragraph:
        """Authors, linked title, venue and year."""
        *first, last = self.authors
        names = f"{', '.join(first)} and {last}" if first else last
        return Paragraph(f"{names}: {link(self.title, self.url)}. {self.venue} {self.year}.")

    def bibtex(self) -> str:
        """The paper as an entry for BibTeX."""
        key = f"{self.authors[0].split()[-1].lower()}{self.year}"
        fields = {
            "title": f"{{{self.title}}}", "author": " and ".join(self.authors), "booktitle": self.venue,
            "year": str(self.year), "url": self.url,
        }  # fmt: skip
        lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
        return f"@inproceedings{{{key},\n{lines}\n}}\n"

    @classmethod
    def load(cls, path: Path) -> Paper:
        """Read a paper.yaml.

        Raises:
            ReplicationError: the file is missing or wrong; says where.
        """
        return build(cls, load_yaml(path), where=str(path))
