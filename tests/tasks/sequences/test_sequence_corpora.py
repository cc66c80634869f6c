"""Corpora of sequences: told apart by what they are of, prepared and opened alike."""

import numpy as np
import pytest
import torch

from shared.config import Strict, build
from shared.data.generated.sequences import FILE
from shared.data.storage import write_lines
from shared.tasks.sequences.corpus import PreparedSequences, prepare
from shared.tasks.sequences.settings import SequenceCorpusConfig

SPLITS = ("train", "valid", "test")
COPIES = {"of": "copies", "shortest": 3, "longest": 5, "sequences": {"train": 9, "valid": 3, "test": 4}}


class Task(Strict):
    corpus: SequenceCorpusConfig


def corpus(**values):
    return build(Task, {"corpus": {"dataset": "toy"} | values}, where="task").corpus


@pytest.fixture
def fetched(tmp_path):
    """A folder with what each kind reads."""
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / FILE).write_text('{"seed": 7, "symbols": 5}')
    for split in SPLITS:
        np.save(folder / f"{split}.images.npy", np.zeros((2, 2, 2, 1), np.uint8))
        for name, lines in {"sequence": ["ACDC", "W"], "name": ["a", "b"], "key": ["F:1", "F:2"]}.items():
            write_lines(folder / f"{split}.{name}", lines)
    return folder


@pytest.mark.parametrize(
    ("values", "symbols", "unit", "causal", "counts_hits", "tokens"),
    [
        (COPIES, 6, "symbol", True, True, 7),
        ({"of": "pixels", "levels": 4}, 5, "pixel", True, False, 6),
        ({"of": "proteins"}, 30, "residue", True, True, 5),
        ({"of": "proteins", "masked": True}, 30, "residue", False, True, 2),
    ],
)
def test_every_corpus_is_prepared_and_opened_and_has_batches(
    fetched, tmp_path, values, symbols, unit, causal, counts_hits, tokens
):
    config, out = corpus(**values), tmp_path / "out"
    out.mkdir()
    assert prepare(config, fetched, out)["dataset"] == "toy"
    task = PreparedSequences.load(config, out)
    assert (task.symbols, config.unit) == (symbols, unit)
    assert (config.causal, config.counts_hits) == (causal, counts_hits)
    for name in SPLITS:
        split = task.split(name)
        (lengths,) = split.lengths
        batch = split.batch(np.array([0, 1]), (1, 2))
        assert batch.tokens == tokens
        assert len(lengths) == len(split)
        assert batch.inputs.shape == batch.targets.shape == batch.scored.shape == (2, lengths[:2].max())
        assert int(batch.inputs.max()) < symbols
        assert int(batch.targets.max()) < symbols
        read = torch.ones_like(batch.scored) if batch.mask is None else batch.mask
        assert read.sum(1).tolist() == lengths[:2].tolist()
        assert not (batch.scored & ~read).any()
