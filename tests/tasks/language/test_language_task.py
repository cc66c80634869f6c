"""Language models beyond what all kinds have in common: one stream of symbols, and what is remembered of it."""

import pytest
import torch

from shared.config import build
from shared.data.fetch import fetch
from shared.data.tokenizers import EOS
from shared.errors import ReplicationError
from shared.tasks.language.corpus import PreparedLanguage
from shared.tasks.language.settings import LanguageRun
from tests.tasks.in_process import paper, train
from tests.tasks.language.toy_language_models import Toy, ToyConfig, write_card

CORPUS = {
    "dataset": "toy", "recalls": "recall", "tokenizer": {"kind": "words", "size": 20}, "test": ["test", "test_other"],
}  # fmt: skip
TRAINING = {
    "updates": 40, "batch": {"sentences": 6, "length": 8}, "memory": 8, "validate_every": 20,
    "optimizer": {"name": "adam", "learning_rate": 0.02},
}  # fmt: skip
EVALUATION = {
    "length": 10, "reach": {"memory": 10}, "columns": 3, "block": 50, "memories": [0, 20],
    "contexts": {"step": 4, "most": 12, "positions": 20}, "samples": {"prompt": 12, "length": 9},
}  # fmt: skip
TASK = {
    "corpus": CORPUS, "model": {"size": 12}, "training": TRAINING, "evaluation": EVALUATION,
    "seeds": [3, 4],
}  # fmt: skip
SHORT = TRAINING | {"updates": 2, "validate_every": 1}
REPLICATION = paper("language", ToyConfig, Toy)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The fetched data set."""
    folder = tmp_path_factory.mktemp("data")
    write_card(folder)
    fetch("toy", root=folder / "data")
    return folder / "data" / "toy"


@pytest.fixture(scope="module")
def prepared(data):
    out = data.parent / "prepared"
    out.mkdir()
    REPLICATION.task.prepare(config().corpus, data, out)
    return out


def config(**sections):
    return build(LanguageRun, {"task": "recall", **TASK, **sections}, where="test")


def test_validation_has_every_symbol_once_and_depends_on_training_alone(prepared):
    text = PreparedLanguage.load(prepared)
    batches = text.valid(config().training)
    places = torch.cat([batch.places[batch.mask] for batch in batches])
    assert sorted(places.tolist()) == list(range(len(text.split("valid"))))
    assert [batch.reset for batch in batches] == [True] + [False] * (len(batches) - 1)
    assert batches[0].inputs.shape == (6, 8)
    other = text.valid(config(evaluation=EVALUATION | {"columns": 1, "length": 3}).training)
    assert all(torch.equal(a.inputs, b.inputs) for a, b in zip(batches, other, strict=True))


def test_a_text_too_short_for_one_batch_is_refused_before_training(prepared, tmp_path):
    wide = config(training=TRAINING | {"batch": {"sentences": 300, "length": 8}})
    with pytest.raises(ReplicationError, match=r"300 columns of segments of 8 symbols need 2,400 symbols, but the"):
        train(REPLICATION, wide, prepared, tmp_path)
    assert not list(tmp_path.rglob("*.*"))


@pytest.mark.parametrize(
    ("corpus", "symbols"), [({}, 20), ({"tokenizer": {"kind": "bytes"}, "unit": "byte", "recalls": None}, EOS + 257)]
)
def test_a_full_batch_is_like_one_of_the_data(corpus, symbols):
    batch, sizes = REPLICATION.task.random_batch(config(corpus=CORPUS | corpus))
    assert sizes == (symbols, None)
    assert batch.inputs.shape == batch.targets.shape == (6, 8)
    assert torch.equal(batch.inputs[:, 1:], batch.targets[:, :-1])
    assert EOS < batch.inputs.min() <= batch.inputs.max() < symbols
    assert batch.tokens == 48
    assert not batch.reset
