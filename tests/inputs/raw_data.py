"""Small raw files that every reader accepts, with the languages and options of a card."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import random
import sqlite3
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight")
SPLITS = ("train", "valid", "test")


class Case(NamedTuple):
    """A reader's input.

    Attributes:
        reader: its name.
        languages, options: of the card.
        write: makes the raw files in a folder.
        compared: the languages in which no two splits share a text.
    """

    reader: str
    languages: list[str]
    options: dict[str, Any]
    write: Callable[[Path], None]
    compared: tuple[str, ...] | None = None


def _sentences(name: str, count: int = 12) -> list[str]:
    return [f"{name} {WORDS[i % 8]} {WORDS[i // 8]} {i} ." for i in range(count)]


def _tar(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def _database(path: Path, rows: list[tuple[str, int, int, int, str]]) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bible (bbName TEXT, bNumber INT, cNumber INT, vNumber INT, vText TEXT)")
    connection.executemany("INSERT INTO bible VALUES (?, ?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()


def _bible(raw: Path) -> None:
    _database(raw / "bible.db", [(key, 1, c, 1, f"{key} chapter {c}") for key in "kl" for c in range(1, 60)])


def _alignments(raw: Path) -> None:
    greek, english, records = ["id\ttext"], ["id\tsource_verse\ttext"], []
    for chapter in range(1, 60):
        verse = f"40{chapter:03}001"
        for word in (1, 2):
            greek.append(f"n{verse}{word:03}\tλ{chapter}.{word}")
            english.append(f"{verse}{word:03}\t{verse}\tw{chapter}.{word}")
            records.append({"source": [f"n{verse}{word:03}"], "target": [f"{verse}{word:03}"]})
    (raw / "SBLGNT.tsv").write_text("\n".join(greek) + "\n", encoding="utf-8")
    (raw / "nt_BSB.tsv").write_text("\n".join(english) + "\n", encoding="utf-8")
    (raw / "SBLGNT-BSB-manual.json").write_text(json.dumps({"records": records}), encoding="utf-8")
    _database(raw / "bible.db", [("k", 40, c, 1, f"verse {c}") for c in range(1, 60)])


def _fasta(raw: Path) -> None:
    generator = random.Random(0)
    entries = (
        f">tr|F{i}|F{i}_X Protein {WORDS[i % 8]} {i} OS=Some thing PE=4\n"
        f"{''.join(generator.choices('ACDEFGHIKLMNPQRSTVWY', k=40))}\n"
        for i in range(60)
    )
    (raw / "a").write_text("".join(entries), encoding="utf-8")


def _labelled(raw: Path) -> None:
    for split, name in zip(SPLITS, ("a.jsonl", "b.tab", "c.jsonl.xz"), strict=True):
        texts = _sentences(split)
        lines = "".join(json.dumps({"text": text, "label": str(i % 2)}) + "\n" for i, text in enumerate(texts))
        if name == "b.tab":
            lines = "label\ttext\nd\tstring\nclass\t\n" + "".join(f"{i % 2}\t{t}\n" for i, t in enumerate(texts))
        content = lines.encode()
        (raw / name).write_bytes(lzma.compress(content) if name.endswith("xz") else content)


def _parallel(raw: Path) -> None:
    for language in ("en", "de"):
        for split, suffix in zip(SPLITS, ("", ".sgm", ".tags"), strict=True):
            lines = _sentences(f"{language} {split}")
            if suffix == ".sgm":
                lines = [f'<seg id="{i}">{line}</seg>' for i, line in enumerate(lines)]
            (raw / f"{split}.{language}{suffix}").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _photos(raw: Path) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), (1, 2, 3)).save(buffer, "PNG")
    _tar(raw / "a.tar", {f"images/{i}.jpg": buffer.getvalue() for i in range(6)})
    images = [
        {"filename": f"{i}.jpg", "split": ("train", "val", "test")[i % 3], "sentences": [{"raw": f"A dog {WORDS[i]}."}]}
        for i in range(6)
    ]
    (raw / "dataset.json").write_text(json.dumps({"images": images}), encoding="utf-8")


def _idx(raw: Path) -> None:
    for name, first in (("a", 0), ("t", 40)):
        pixels = bytes(first + i for i in range(20) for _ in range(6))
        (raw / name).write_bytes(b"\0\0\x08\x03" + struct.pack(">3I", 20, 2, 3) + pixels)


def _classified(raw: Path) -> None:
    _idx(raw)
    for name in "at":
        (raw / f"{name}.classes").write_bytes(
            b"\0\0\x08\x01" + struct.pack(">I", 20) + bytes(i % 10 for i in range(20))
        )


def _cifar(raw: Path) -> None:
    for name, first in (("a", 0), ("t", 40)):
        (raw / name).write_bytes(b"".join(bytes([1]) + bytes([first + i]) * 3072 for i in range(8)))


def _running(raw: Path) -> None:
    for split in SPLITS:
        (raw / split).write_bytes("\n".join(_sentences(split)).encode())


def _scenes(raw: Path) -> None:
    names, groups = {}, []
    (raw / "svg").mkdir()
    for i, name in enumerate(("cat", "ox", "elk", "yak", "hammer", "saw", "awl", "pick")):
        code = f"{0x1F400 + i:04X}"
        names[chr(0x1F400 + i)] = {"en": f":{name}:"}
        groups.append({"unified": code, "subcategory": "mammal" if i < 4 else "hand", "sort_order": i})
        drawing = f'<ellipse cx="36" cy="36" rx="{12 + i}" ry="9" fill="red"/>'
        svg = f'<svg viewBox="0 0 72 72" xmlns="http://www.w3.org/2000/svg">{drawing}</svg>'
        (raw / "svg" / f"{code}.svg").write_text(svg, encoding="utf-8")
    (raw / "names.json").write_text(json.dumps(names), encoding="utf-8")
    (raw / "groups.json").write_text(json.dumps(groups), encoding="utf-8")


def _treebank(raw: Path) -> None:
    for section, split in enumerate(SPLITS):
        (raw / "wsj" / f"0{section}").mkdir(parents=True)
        trees = "".join(f"( (S (NP (NN {split})) (VP (VBZ is) (CD {i})) (. .)) )\n" for i in range(6))
        (raw / "wsj" / f"0{section}" / "w.mrg").write_text(trees, encoding="utf-8")


def _files(raw: Path) -> None:
    (raw / "weights.npz").write_bytes(gzip.compress(b"weights"))


_PARTS = {
    split: [{language: f"{split}.{language}{suffix}" for language in ("en", "de")}]
    for split, suffix in zip(SPLITS, ("", ".sgm", ".tags"), strict=True)
}
_SCENES = {"train": 8, "valid": 2, "test": 2, "test_combinations": 2, "test_pictures": 2}
CASES = [
    Case("bible", ["en", "fr"], {"translations": {"en": "k", "fr": "l"}}, _bible),
    Case(
        "bible_alignments", ["grc", "en"],
        {"translations": {"en_web": "k"}, "valid_percent": 20, "test_percent": 20}, _alignments,
    ),
    Case(
        "fasta", ["sequence", "name"],
        {"file": "a", "jaccard": 0.5, "containment": 0.9, "valid_percent": 20, "test_percent": 20,
         "held_out": {"families": 1, "smallest": 1, "largest": 60}}, _fasta, ("sequence",),
    ),
    Case("files", [], {}, _files),
    Case(
        "labelled", ["text", "label"],
        {"parts": {"train": ["a.jsonl"], "valid": ["b.tab"], "test": ["c.jsonl.xz"]}}, _labelled, ("text",),
    ),
    Case("parallel", ["en", "de"], {"parts": _PARTS}, _parallel),
    Case("photos", ["captions", "photo"], {"captions": ["dataset.json"]}, _photos),
    Case("pixel_texts", ["text", "label"], {"train": ["a", "a.classes"], "test": ["t", "t.classes"], "valid": 3},
         _classified, ("text",)),
    Case("pixels", [], {"format": "idx", "train": ["a"], "test": ["t"], "valid": 3}, _idx),
    Case("pixels", [], {"format": "cifar", "train": ["a"], "test": ["t"], "valid": 3}, _cifar),
    Case("running_text", [], {"parts": {split: [{"file": split}] for split in SPLITS}}, _running),
    Case(
        "scenes", ["captions", "mentions", "boxes", "scene"],
        {"seed": 3, "kinds": {"animal": ["mammal"], "tool": ["hand"]}, "held_out_percent": 20, "numbers": [2, 4, 4],
         "combinations": 4, "sizes": [48], "captions": 2, "scenes": _SCENES}, _scenes,
    ),
    Case(
        "treebank", ["words", "tree"],
        {"folder": "wsj", "sections": {split: [f"0{i}"] for i, split in enumerate(SPLITS)}}, _treebank, ("words",),
    ),
]  # fmt: skip
