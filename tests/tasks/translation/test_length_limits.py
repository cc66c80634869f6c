"""How long a translation may become."""

import gzip
import json

import pytest
import torch
from torch import nn

from shared.config import build
from shared.data.tokenizers import EOS
from shared.decoding.protocol import select_beams
from shared.errors import ReplicationError
from shared.tasks.translation.corpus import PreparedText, prepare_parallel
from shared.tasks.translation.evaluation import evaluate_translation
from shared.tasks.translation.settings import DecodingConfig, TranslationRun

SOURCES = ["a", "a b c", "b c a b c"]


class Endless(nn.Module):
    """Predicts every symbol sooner than the end symbol."""

    def __init__(self, vocabulary):
        super().__init__()
        self.logits = nn.Parameter(-torch.arange(float(vocabulary)))
        with torch.no_grad():
            self.logits[EOS] = -1e3

    def forward(self, source, mask, target):
        return self.logits.expand(*target.shape, -1), None

    def start(self, source, mask):
        return torch.zeros(len(source), 1)

    def step(self, tokens, state):
        return self.logits.log_softmax(0).expand(*tokens.shape, -1).clone(), None, state

    def reorder(self, state, sources, beams):
        return select_beams(state, sources, beams)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for split in ("train", "valid", "test"):
        for language in ("x", "y"):
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in SOURCES))
    (folder / "out").mkdir()
    prepare_parallel(config().corpus, folder, folder / "out")
    return PreparedText.load(folder / "out")


def config(**decoding):
    sections = {
        "task": "toy", "model": {}, "seeds": [1],
        "corpus": {"dataset": "toy", "source": "x", "target": "y", "tokenizer": {"kind": "words", "size": 9}},
        "training": {"updates": 1, "batch": {"sentences": 2}, "optimizer": {"name": "adam", "learning_rate": 0.1},
                     "schedule": {"name": "constant"}, "validate_every": 1},
        "decoding": {"beam": 2, **decoding},
    }  # fmt: skip
    return build(TranslationRun, sections, where="test")


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"maximum_ratio": 1.0, "maximum_extra": 50}, [52, 54, 56]),  # the paper's input + 50, end symbols included
        ({"maximum_ratio": 1.5}, [3, 6, 9]),  # of 2, 4 and 6 source symbols
        ({"maximum_ratio": 0.25, "maximum_extra": 2}, [2, 3, 3]),
        ({"maximum_ratio": 0.1, "minimum_ratio": 0.0}, [1, 1, 1]),  # never nothing
    ],
)
def test_the_source_counts_its_end_symbol_and_the_extra_is_added(text, tmp_path, limits, expected):
    evaluate_translation(Endless(len(text.target)), text, config(**limits), tmp_path)
    with gzip.open(tmp_path / "examples.jsonl.gz", "rt", encoding="utf-8") as lines:
        assert [len(json.loads(line)["hypothesis"].split()) for line in lines] == expected


def test_without_the_option_nothing_is_added_and_less_is_refused():
    assert DecodingConfig(beam=1).maximum_extra == 0
    with pytest.raises(ReplicationError, match="maximum_extra"):
        config(maximum_extra=-1)
