import copy
from pathlib import Path

import pytest
import yaml

from shared.config import build
from shared.data.cards import Card, load_card
from shared.data.generated import TASKS
from shared.data.readers import READERS
from tests.data import odd
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
