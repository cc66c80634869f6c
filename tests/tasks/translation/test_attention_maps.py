"""What evaluation keeps of every head: of which sentences, in which order of axes."""

import numpy as np
import pytest
import torch
from torch import nn

from replications.transformer.figures import SAID, draw_heads
from shared.tasks.translation.corpus import PreparedText, prepare_parallel
from shared.tasks.translation.evaluation import save_attention_maps
from shared.tasks.translation.settings import ParallelCorpusConfig

LENGTHS = (3, 12, 9, 30, 11)  # words of the test sentences; targets have one word more


class Headed(nn.Module):
    """Three layers of two heads; each weight says which layer, head, query and key it is of."""

    def __init__(self):
        super().__init__()
        self.anywhere = nn.Parameter(torch.zeros(1))

    def attention_maps(self, source, source_mask, target):
        assert source_mask.all(), "a sentence of its own has no padding"
        assert source.shape[0] == target.shape[0] == 1
        sizes = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
        return {kind: numbered(rows.size(1), columns.size(1)) for kind, (rows, columns) in sizes.items()}


def numbered(rows, columns):
    return torch.arange(3 * 2 * rows * columns).view(3, 1, 2, rows, columns) / 2048


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    lines = {"train": [("a b c", "A B C")], "valid": [("a", "A")]}
    lines["test"] = [(" ".join("ab"[k % 2] for k in range(n)), " ".join(["C"] * (n + 1))) for n in LENGTHS]
    for split, pairs in lines.items():
        for language, column in zip(("x", "y"), zip(*pairs, strict=True), strict=True):
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in column))
    (folder / "out").mkdir()
    corpus = {"dataset": "toy", "source": "x", "target": "y", "tokenizer": {"kind": "words", "size": 10}}
    prepare_parallel(ParallelCorpusConfig.model_validate(corpus), folder, folder / "out")
    return PreparedText.load(folder / "out")


@pytest.fixture(scope="module")
def kept(text, tmp_path_factory):
    path = tmp_path_factory.mktemp("kept") / "heads.npz"
    save_attention_maps(path, Headed(), text, "test")
    return path


def test_two_sentences_of_middling_length_are_kept(kept):
    """Those with 10 and 12 target words are nearest to 10; their order is the test set's."""
    with np.load(kept) as arrays:
        assert [len(arrays[f"source_{i}"]) for i in (0, 1)] == [9 + 1, 11 + 1]
        assert sorted(arrays) == sorted(f"{name}_{i}" for name in ("source", "target", *SAID) for i in (0, 1))


def test_layers_come_before_heads_and_queries_before_keys(kept):
    with np.load(kept) as arrays:
        s, t = 10, 11
        assert list(arrays["source_0"]) == [*"ababababa", "</s>"]
        assert list(arrays["target_0"]) == [*["C"] * 10, "</s>"]
        for kind, shape in {"encoder": (s, s), "decoder": (t, t), "cross": (t, s)}.items():
            weights = arrays[f"{kind}_0"]
            assert weights.dtype == np.float16
            assert np.array_equal(weights, numbered(*shape)[:, 0].numpy().astype(np.float16))


def test_a_report_draws_what_is_kept(kept, tmp_path):
    assert draw_heads(kept, "cross", tmp_path / "cross.png")


def test_a_model_that_cannot_tell_leaves_no_file(text, tmp_path):
    save_attention_maps(tmp_path / "heads.npz", nn.Linear(1, 1), text, "test")
    assert list(tmp_path.iterdir()) == []
