"""Small raw files that every reader accepts, with the languages and options of a card."""

import gzip
import json
import lzma
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tests.data.odd import SPLITS, archive, bible, cifar, described, encoded, idx, protein

WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight")


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


def _bible(raw: Path) -> None:
    bible(raw / "bible.db", [(key, 1, c, 1, f"{key} chapter {c}") for key in "kl" for c in range(1, 60)])


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
    bible(raw / "bible.db", [("k", 40, c, 1, f"verse {c}") for c in range(1, 60)])


def _fasta(raw: Path) -> None:
    draw = random.Random(0)
    letters = ("".join(draw.choices("ACDEFGHIKLMNPQRSTVWY", k=40)) for _ in range(60))
    entries = (protein(f"F{i}", text, f"Protein {WORDS[i % 8]} {i}") for i, text in enumerate(letters))
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
    photo = encoded(Image.new("RGB", (8, 8), (1, 2, 3)))
    archive(raw / "a.tar", [(f"images/{i}.jpg", photo) for i in range(6)])
    said = [(f"{i}.jpg", ("train", "val", "test")[i % 3], [f"A dog {WORDS[i]}."]) for i in range(6)]
    (raw / "dataset.json").write_text(described(said), encoding="utf-8")


def greys(count: int, shape: tuple[int, ...], first: int) -> NDArray[np.uint8]:
    """Pictures of one grey each."""
    return np.stack([np.full(shape, first + i, np.uint8) for i in range(count)])


def _idx(raw: Path) -> None:
    for name, first in (("a", 0), ("t", 40)):
        (raw / name).write_bytes(idx(greys(20, (2, 3), first)))


def _classified(raw: Path) -> None:
    _idx(raw)
    for name in "at":
        classes = bytes(i % 10 for i in range(20))
        (raw / f"{name}.classes").write_bytes(b"\0\0\x08\x01" + struct.pack(">I", 20) + classes)


def _cifar(raw: Path) -> None:
    for name, first in (("a", 0), ("t", 40)):
        (raw / name).write_bytes(cifar(greys(8, (32, 32, 3), first)))


def _running(raw: Path) -> None:
    for split in SPLITS:
        (raw / split).write_bytes("\n".join(_sentences(split)).encode())


SVG = '<svg viewBox="0 0 72 72" xmlns="http://www.w3.org/2000/svg">{}</svg>'


def write_scenes(raw: Path, of: dict[str, list[str]], drawing: Callable[[int], str]) -> None:
    """Names, groups and drawings of pictures as OpenMoji has them, from the names of each group."""
    names, groups = {}, []
    (raw / "svg").mkdir()
    for i, (group, name) in enumerate((group, name) for group, own in of.items() for name in own):
        names[chr(0x1F400 + i)] = {"en": f":{name.replace(' ', '_')}:"}
        groups.append({"unified": f"{0x1F400 + i:04X}", "subcategory": group, "sort_order": i})
        (raw / "svg" / f"{0x1F400 + i:04X}.svg").write_text(drawing(i), encoding="utf-8")
    (raw / "names.json").write_text(json.dumps(names), encoding="utf-8")
    (raw / "groups.json").write_text(json.dumps(groups), encoding="utf-8")


def _scenes(raw: Path) -> None:
    groups = {"mammal": ["cat", "ox", "elk", "yak"], "hand": ["hammer", "saw", "awl", "pick"]}
    write_scenes(raw, groups, lambda i: SVG.format(f'<ellipse cx="36" cy="36" rx="{12 + i}" ry="9" fill="red"/>'))


def _treebank(raw: Path) -> None:
    for section, split in enumerate(SPLITS):
        (raw / "wsj" / f"0{section}").mkdir(parents=True)
        trees = "".join(f"( (S (NP (NN {split})) (VP (VBZ is) (CD {i})) (. .)) )\n" for i in range(6))
        (raw / "wsj" / f"0{section}" / "w.mrg").write_text(trees, encoding="utf-8")


def _files(raw: Path) -> None:
    (raw / "weights.npz").write_bytes(gzip.compress(b"weights"))


_SUFFIXES = dict(zip(SPLITS, ("", ".sgm", ".tags"), strict=True))
_PARTS = {split: [{own: f"{split}.{own}{suffix}" for own in ("en", "de")}] for split, suffix in _SUFFIXES.items()}
_SCENES = {"train": 8, "valid": 2, "test": 2, "test_combinations": 2, "test_pictures": 2}
CASES = [
    Case("bible", ["en", "fr"], {"translations": {"en": "k", "fr": "l"}}, _bible),
    Case("bible_alignments", ["grc", "en"],
         {"translations": {"en_web": "k"}, "valid_percent": 20, "test_percent": 20}, _alignments),
    Case("fasta", ["sequence", "name"],
         {"file": "a", "jaccard": 0.5, "containment": 0.9, "valid_percent": 20, "test_percent": 20,
          "held_out": {"families": 1, "smallest": 1, "largest": 60}}, _fasta, ("sequence",)),
    Case("files", [], {}, _files),
    Case("labelled", ["text", "label"],
         {"parts": {"train": ["a.jsonl"], "valid": ["b.tab"], "test": ["c.jsonl.xz"]}}, _labelled, ("text",)),
    Case("parallel", ["en", "de"], {"parts": _PARTS}, _parallel),
    Case("photos", ["captions", "photo"], {"captions": ["dataset.json"]}, _photos),
    Case("pixel_texts", ["text", "label"], {"train": ["a", "a.classes"], "test": ["t", "t.classes"], "valid": 3},
         _classified, ("text",)),
    Case("pixels", [], {"format": "idx", "train": ["a"], "test": ["t"], "valid": 3}, _idx),
    Case("pixels", [], {"format": "cifar", "train": ["a"], "test": ["t"], "valid": 3}, _cifar),
    Case("running_text", [], {"parts": {split: [{"file": split}] for split in SPLITS}}, _running),
    Case("scenes", ["captions", "mentions", "boxes", "scene"],
         {"seed": 3, "kinds": {"animal": ["mammal"], "tool": ["hand"]}, "held_out_percent": 20, "numbers": [2, 4, 4],
          "combinations": 4, "sizes": [48], "captions": 2, "scenes": _SCENES}, _scenes),
    Case("treebank", ["words", "tree"],
         {"folder": "wsj", "sections": {split: [f"0{i}"] for i, split in enumerate(SPLITS)}}, _treebank, ("words",)),
]  # fmt: skip
