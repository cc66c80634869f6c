"""A card for files of the user's own: ``data new my_corpus --from pairs.tsv``."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from shared.config import EXPONENT, MOST_SHOWN, build, check_name, load_yaml
from shared.data.cards import Card, Draw
from shared.data.fetch import fetch
from shared.data.look import describe
from shared.data.opening import form_of, listed, table_rows, text_lines, twin_of, visible
from shared.data.readers.texts import TABLES, TABULAR, records
from shared.data.sources import sha256_of
from shared.errors import ReplicationError

ROLES = {
    "translation": ("source", "target"),
    "classification": ("label", "text"),
    "captioning": ("image", "caption"),
    "language": (),
    "sequences": (),
}
"""Kind of task to what the columns of its tables are, in this order."""
FASTA = (".fasta", ".fa", ".faa")
_GUESSED = 100_000  # rows
_LICENCE = "to be filled in: whose data are these, and who may use them?"


class _Dumper(yaml.SafeDumper):
    """Puts in quotes what this project reads as a number, too, such as a file called 1e3."""


_Dumper.add_implicit_resolver(*EXPONENT)
_Form = tuple[str, dict[str, Any], dict[str, str], list[str]]
"""Reader, its options, languages, and those of which no text is in two splits."""


def new_card(
    name: str, files: Sequence[str], kind: str | None = None, columns: Sequence[str] = (),
    percent: Sequence[int] = (5, 5), seed: int = 1, root: Path = Path("data"),
) -> None:  # fmt: skip
    """Write the card of a new data set, fetch it and print what it has.

    Args:
        name: of the data set.
        files: a table of pairs, of labels and texts, or of pictures and captions, with their folder; or other texts.
        kind: of its tasks; None: what the files look like.
        columns: of a table: those that are read, if the first line names them, else the names of all.
        percent: of the texts that become valid, and test.
        seed: of the draw.
        root: folder of cards.

    Raises:
        ReplicationError: there is such a card, a file is missing or not what the kind needs; there is no card then.
    """
    card, paths = root / f"{name}.yaml", [Path(os.environ.get("REPLICATE_FROM", ""), file).absolute() for file in files]
    if not re.fullmatch("[a-z][a-z0-9_]{,99}", name):
        raise ReplicationError(f"'{name}' cannot name a data set; use up to 100 of a-z, 0-9 and '_'.")
    if card.exists() or (root / name).exists():
        raise ReplicationError(f"{card} cannot be made; remove it and {root / name}, or give another name.")
    for path in (root, *paths):
        # os.path takes a name that is too long, too; a pipe would be waited for.
        if not (os.path.isfile(path) or os.path.isdir(path)) or paths.count(path) > 1:  # noqa: PTH112, PTH113
            raise ReplicationError(f"{path} is no file or folder{twin_of(path)}, or is given twice; check its name.")
    folder = Path(os.path.commonpath([path.parent for path in paths]))
    inside = os.path.relpath(folder)
    place = str(folder) if inside.startswith(("..", "~")) else inside  # ~ would be the home folder
    draw = build(Draw, dict(zip(Draw.model_fields, (seed, *percent), strict=True)), where="data new").model_dump()
    kind = kind or _kind(paths, columns)
    reader, options, languages, compared = _form(paths, folder, kind, columns)
    raw = [path for path in paths if not any(other in path.parents for other in paths)]
    size = sum(each.stat().st_size for path in raw for each in (path, *listed(path, "**/*")) if each.is_file())
    content = {
        "id": name, "title": f"{name}, own data", "licence": _LICENCE, "citation": "own data, not published",
        "languages": languages, "needs_bytes": 10_000_000 + 5 * size,
        "sources": [{"kind": "folder", "folder": place}],
        "raw": {_inside(path, folder): {"sha256": sha256_of(path)} for path in raw},
        "reader": {"name": reader, "options": options},
        "splits": dict.fromkeys(("train", "valid", "test"), "drawn, see 'draw'") if languages else {},
        "traps": [],
    }  # fmt: skip
    if languages:
        content |= {"draw": draw, "compared": compared}
    else:
        options["cut"] = {"valid": draw["valid_percent"], "test": draw["test_percent"]}
    _write(card, content)
    try:
        print(*describe(name, root), sep="\n")
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{card} and its data are there; 'check {name} --data' looks at them") from None
    print(visible(f"{card} is there, {_use(name, kind, reader, options)}"))


def _write(card: Path, content: Mapping[str, Any]) -> None:
    """Fetch the data of a card, which is put in place last: a process that is killed leaves none."""
    plain = r"\x85" not in repr(content)  # which YAML takes for a line end
    written = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=plain, width=118)
    partial = card.with_name(f".{card.stem}.partial")
    try:
        partial.write_text(written, encoding="utf-8")
        fetch(build(Card, load_yaml(partial), where=str(card)), root=card.parent)
    except BaseException:
        partial.unlink(missing_ok=True)
        shutil.rmtree(card.with_suffix(".downloads"), ignore_errors=True)
        raise
    partial.rename(card)


def _use(name: str, kind: str, reader: str, options: Mapping[str, Any]) -> str:
    """What the files were taken for, and what to do with the card."""
    keys = ", source: source, target: target" * (kind == "translation")
    how = "".join(f", {role} from '{column}'" for role, column in options.get("fields", {}).items())
    how += ", line 1 as data" * ("columns" in options)
    return (
        f"read as {kind} by the reader '{reader}'{how}; if that is not what the files are, remove it and say --kind "
        "and --columns. Fill in its licence. Name it in a task of a paper of that kind, in "
        f"replications/<paper>/<scale>/params.yaml: corpus: {{dataset: {name}{keys}, …}}."
    )


def _kind(paths: Sequence[Path], columns: Sequence[str]) -> str:
    """The kind of task that files look like."""
    if any(path.is_dir() for path in paths):
        return "captioning"
    form = form_of(paths[0])
    if form in FASTA:
        return "sequences"
    for path in (path for path in paths if form_of(path) not in (*TABULAR, *[".sgm", ".xml"] * (len(paths) == 2))):
        begin = next((line for line in text_lines(path) if re.match(r"\s*[^\s#]", line)), "")  # CoNLL-U has comments
        if re.match(r"\s*(\S[^\t\0]*\t|__label__|[>\[{]|<([?!]|html\b))", begin, re.IGNORECASE):
            raise ReplicationError(
                f"{path.name}: it begins like a table, fastText, XML, HTML, JSON or FASTA; give the file a "
                f"name that ends in {', '.join((*TABULAR, *FASTA))}, or say by --kind what it is."
            )
    if len(paths) > 1 or form not in TABULAR:
        return "translation" if len(paths) == 2 else "language"
    first = _first_row(paths[0])
    if "label" in (*first, *columns):
        return "classification"
    if {*ROLES["translation"]} <= {*first, *columns}:
        return "translation"
    keys = first if form == ".jsonl" else _nameless(first)
    read = ([keys[first.index(name)] for name in columns if name in first] or keys)[:2]
    head = form != ".jsonl" and not {*first}.isdisjoint(columns)
    rows = [[row.get(key) for key in read] for _, row in islice(records(paths[0], keys), head, _GUESSED)]
    values = [Counter(column) for column in zip(*{tuple(map(str, row)) for row in rows}, strict=True)]
    # Labels are two or more short values that stand again and again.
    few = min(values, key=len, default=Counter[str]())
    if not 6 <= len(few) * 3 <= few.total() or max(map(len, few)) > 40:
        return "translation"
    if few is not values[0]:
        raise ReplicationError(
            f"{paths[0].name}: the second of the two columns that are read has {len(few)} values, as labels have; give "
            "'--kind classification --columns' with that of the labels first, or text label if line 1 is data, or else "
            "'--kind translation'."
        )
    return "classification"


def _form(paths: Sequence[Path], folder: Path, kind: str, columns: Sequence[str]) -> _Form:
    """How files are read for a kind of task."""
    check_name(kind, ROLES, "there is no kind of task")
    folders, roles = [path for path in paths if path.is_dir()], ROLES[kind]
    inside = [path for each in folders for path in listed(each) if kind == "captioning"]
    tables = [path for path in dict.fromkeys((*paths, *inside)) if form_of(path) in TABULAR and path.is_file()]
    names = [_inside(path, folder) for path in paths]
    options = _columns(tables[0], roles, columns) if tables and roles and (folders or len(paths) == 1) else {}
    languages = {role: f"{role}, of {' and '.join(names)}" for role in roles}
    match kind, len(paths), len(tables), len(folders):
        case ("translation", 1, 1, 0) | ("translation", 2, 0, 0):
            part = dict(zip(roles, names * 2, strict=False))
            return "parallel", {"parts": {"train": [part]}, "skip_incomplete": True} | options, languages, [*roles]
        case "classification", 1, *_:
            return "labelled", {"parts": {"train": names}, "skip_incomplete": True} | options, languages, ["text"]
        case "captioning", _, 1, 1:
            options |= {"captions": [_inside(tables[0], folder)], "pictures": _inside(folders[0], folder).rstrip("/")}
            languages = {"captions": f"captions, of {tables[0].name}", "photo": "names of files"}
            return "photos", options, languages, ["photo"]
        case "language", _, 0, 0:
            return "running_text", {"parts": {"train": [{"file": name} for name in names]}}, {}, []
        case "sequences", 1, 0, 0:
            kinship = {"headers": "any", "jaccard": 0.02, "containment": 0.3, "valid_percent": 0, "test_percent": 0}
            languages = {"sequence": f"sequence, of {names[0]}", "name": "what stands behind the identifier"}
            return "fasta", {"file": names[0]} | kinship, languages, ["sequence"]
    raise ReplicationError(
        f"{', '.join(map(str, paths))}: not files for {kind}; give one table or two texts for translation, one table "
        "for classification, a folder of pictures and one table for captioning, texts for language, one FASTA file for "
        "sequences, and say by --kind which it is."
    )


def _columns(path: Path, roles: Sequence[str], given: Sequence[str]) -> dict[str, Any]:
    """The options that say which columns of a table are read.

    Raises:
        ReplicationError: it is not known what the columns are.
    """
    first = _first_row(path)
    has_names = form_of(path) == ".jsonl" or {*(given or roles)} <= {*first}
    seen = ["".join(filter(str.isprintable, field)).strip(' "') for field in first]
    words = all(re.fullmatch(r"\w+", field) for field in seen)
    # Who names the roles answers what is said below: then line 1 is data, if it has them in another case.
    known = {*map(str.casefold, given)} & {*(seen if [*given] == [*roles] else map(str.casefold, seen))}
    if not has_names and (known or (not given and (words or _is_rare(path, roles, first)))):
        raise ReplicationError(
            f"{path.name}: line 1 may be the names of columns or data ({_begin(first)}); say '--columns' and the "
            f"names there of {' and '.join(roles)}, or '--columns {' '.join(roles)}' if they are data."
        )
    lines = islice(filter(None, text_lines(path)), _GUESSED)
    if form_of(path) == ".csv" and not (has_names or given) and all(";" in line for line in lines):
        raise ReplicationError(
            f"{path.name}: every line has ';', so that this may part the columns; part them by ',', or say '--columns "
            f"{' '.join(roles)}' if ',' does."
        )
    if has_names and not given and len(first) > len(roles) and not {*roles} <= {*first}:
        raise ReplicationError(
            f"{path.name}: line 1 has the fields {_begin(first)}; say '--columns' and the two that are to be read "
            f"as {' and '.join(roles)}."
        )
    names = first if has_names else [*(given or roles)]
    if len({*names}) != len(first):
        names = [*roles, *(f"other{number}" for number in range(1, len(first) - len(roles) + 1))]
        named = f", or name all in their order, as in '--columns {' '.join(names)}'" * (len(names) == len(first))
        advice = "give each column a name of its own" if has_names else f"part columns so{named}"
        raise ReplicationError(
            f"{path.name}: line 1, parted by {TABLES[form_of(path)]!r}, is {_begin(first, ' | ')}; {advice}."
        )
    rest = iter([name for name in (given or names) if name not in roles])
    read = [role if role in (given or names) else next(rest, role) for role in roles]
    check_name(read[-1], names, f"{path.name} has no column")
    options: dict[str, Any] = {} if has_names else {"columns": names}
    fields = {role: name for role, name in zip(roles, read, strict=False) if role != name}
    return options | ({"fields": fields} if fields else {})


def _begin(fields: Sequence[str], between: str = ", ") -> str:
    """The fields of a line, cut where they are long."""
    text = visible(between.join(fields))
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def _nameless(first: Sequence[str]) -> list[str]:
    """Names of columns that no row has, as the first line may be one."""
    return [f"\0{number}" for number in range(len(first))]


def _is_rare(path: Path, roles: Sequence[str], first: Sequence[str]) -> bool:
    """Whether line 1 has a label that stands there alone, as the name of a column does, and each other one again."""
    if roles[0] != "label":
        return False
    keys = _nameless(first)
    counts = Counter(str(row.get(keys[0])) for _, row in islice(records(path, keys), _GUESSED))
    return len(counts) > 2 and [label for label, count in counts.items() if count == 1] == [first[0]]


def _first_row(path: Path) -> list[str]:
    """The fields of the first line of a table, or the keys of the first record."""
    form = form_of(path)
    record = next((record for _, record in records(path)), {}) if form == ".jsonl" else None
    first = next((row for _, row in table_rows(path, TABLES[form])), []) if record is None else [*record]
    if not first:
        raise ReplicationError(f"{path.name} has no row; give a file of one row for each text.")
    return first


def _inside(path: Path, folder: Path) -> str:
    if re.search(r"\\[^/]*$|[\ud800-\udfff]", str(path)):
        raise ReplicationError(f"the name {str(path)!r} has a backslash or is not UTF-8; give the file another name.")
    return path.relative_to(folder).as_posix() + "/" * path.is_dir()
