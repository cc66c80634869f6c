"""Batches of captions and their regions against building them symbol by symbol."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shared.data.ragged import RaggedArray
from shared.data.tokenizers import EOS, PAD
from shared.tasks.captioning.corpus import CaptionedSplit
from shared.vision.features import Grid, coverage
from tests.refused import assert_refused

GRID = Grid(rows=2, columns=3, size=4)
NO_LINK = -1
corner = st.tuples(st.integers(0, 5), st.integers(1, 6)).filter(lambda ends: ends[0] < ends[1])
boxes = st.tuples(corner, corner).map(lambda ends: tuple(end / 6 for end in np.array(ends).T.ravel()))


@st.composite
def images(draw):
    """Images with boxes of their objects and captions: symbols, each with what it names of the image or nothing."""
    drawn = []
    for _ in range(draw(st.integers(1, 4))):
        own = draw(st.lists(boxes, max_size=3))
        word = st.tuples(st.integers(4, 90), st.integers(NO_LINK, len(own) - 1))
        drawn.append((own, draw(st.lists(st.lists(word, max_size=5), min_size=1, max_size=3))))
    return drawn


def split_of(images):
    captions, owner, links, first = [], [], [], 0
    for image, (own, texts) in enumerate(images):
        for text in texts:
            captions.append([*(symbol for symbol, _ in text), EOS])
            owner.append(image)
            links += [*(thing if thing == NO_LINK else first + thing for _, thing in text), NO_LINK]
        first += len(own)
    features = np.arange(len(images) * 24, dtype=np.float16).reshape(-1, 6, 4)
    table = np.array([box for own, _ in images for box in own]).reshape(-1, 4)
    return CaptionedSplit(features, RaggedArray.pack(captions), np.array(owner), np.array(links, np.int32), table, GRID)


def flat(images):
    return [(image, own, text) for image, (own, texts) in enumerate(images) for text in texts]


@given(images(), st.randoms())
def test_a_batch_is_what_building_it_symbol_by_symbol_gives(images, random):
    split, rows = split_of(images), flat(images)
    order = random.choices(range(len(rows)), k=random.randint(1, len(rows)))
    batch = split.batch(np.array(order))
    width = 1 + max(len(rows[i][2]) for i in order)
    assert batch.captions.shape == batch.mask.shape == (len(order), width)
    assert batch.tokens == sum(len(rows[i][2]) + 1 for i in order)
    regions = batch.regions if batch.regions is not None else torch.zeros(len(order), width, 6)
    assert (batch.regions is None) == (not any(own for own, _ in images))
    for row, i in enumerate(order):
        image, own, text = rows[i]
        ended = [*(symbol for symbol, _ in text), EOS]
        assert batch.captions[row].tolist() == ended + [PAD] * (width - len(ended))
        assert batch.mask[row].tolist() == [True] * len(ended) + [False] * (width - len(ended))
        assert batch.features[row].flatten().tolist() == list(range(24 * image, 24 * image + 24))
        things = [thing for _, thing in text] + [NO_LINK] * (width - len(text))
        for found, thing in zip(regions[row], things, strict=True):
            inside = np.zeros(6) if thing == NO_LINK else coverage([own[thing]], 2, 3)[0]
            assert found.tolist() == pytest.approx(inside / max(inside.sum(), 1e-9), abs=1e-6)
        assert split.lengths[0][i] == len(ended)


@pytest.mark.parametrize("changes", [
    *({"features": np.zeros(shape, np.float16)} for shape in ((1, 6, 5), (1, 4, 4), (0, 6, 4))),
    {"image": np.array([0, 0])}, {"links": np.array([NO_LINK], np.int32)}, {"boxes": np.zeros((0, 4))},
])  # fmt: skip
def test_features_and_captions_of_different_data_are_refused(changes):
    split = split_of([([(0, 0, 1, 1)], [[(7, 0)]])])
    assert_refused("do not fit; run the features and prepare stages", CaptionedSplit, **{**vars(split), **changes})
