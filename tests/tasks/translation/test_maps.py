"""Attention as data for the reader of a page."""

import numpy as np
import pytest

from replications.transformer.figures import maps_of_heads
from shared.tasks.translation.heatmaps import SENTENCES, SYMBOLS, maps_of_sentences


def words(side, count):
    return np.array([f"{side}{k}" for k in range(count)])


def kept(path, lengths):
    arrays = {}
    for i, (rows, columns) in enumerate(lengths):
        arrays |= {f"source_{i}": words("s", columns), f"target_{i}": words("t", rows)}
        arrays[f"weights_{i}"] = np.full((rows, columns), 1 / columns, dtype=np.float16)
    np.savez(path, **arrays)
    return path


def test_every_model_and_sentence_is_a_map(tmp_path):
    source = kept(tmp_path / "a.npz", [(2, 3), (4, 2)])
    maps = maps_of_sentences({"one": source, "two": source, "none": tmp_path / "missing.npz"})
    assert [each.choices for each in maps] == [
        {"Model": model, "Attention": "to the source", "Sentence": sentence}
        for model in ("one", "two")
        for sentence in ("1", "2")
    ]
    assert maps[0].rows == ["t0", "t1"]
    assert maps[0].columns == ["s0", "s1", "s2"]
    assert np.array(maps[0].weights) == pytest.approx(np.full((2, 3), 1 / 3), abs=1e-3)


def test_long_sentences_and_more_than_a_few_are_left_out(tmp_path):
    lengths = [(SYMBOLS + 1, 3), *([(2, 3)] * (SENTENCES + 1))]
    maps = maps_of_sentences({"one": kept(tmp_path / "a.npz", lengths)})
    assert [len(each.rows) for each in maps] == [2] * SENTENCES


def test_every_head_is_a_map_and_a_decoder_looks_at_what_came_before(tmp_path):
    weights = np.arange(2 * 3 * 4 * 4, dtype=np.float16).reshape(2, 3, 4, 4) / 100
    path = tmp_path / "heads.npz"
    np.savez(path, source_0=words("s", 4), target_0=words("t", 4), decoder_0=weights)
    maps = maps_of_heads("base", path, "decoder")
    assert [(each.choices["Layer"], each.choices["Head"]) for each in maps] == [
        (layer, head) for layer in "12" for head in "123"
    ]
    assert maps[0].rows == ["t0", "t1", "t2", "t3"]
    assert maps[0].columns == ["<s>", "t0", "t1", "t2"]
    assert np.array(maps[4].weights) == pytest.approx(weights[1, 1].astype(float))
