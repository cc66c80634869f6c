"""The study of evaluation speed: what goes through the network, with how much before it, counted and not reckoned."""

import numpy as np
import pytest
import torch

from replications.transformer_xl.speed import EvaluationSpeed, passes, seconds_in_turns
from shared.data.tokenizers import EOS
from shared.decoding.protocol import Reach
from shared.tasks.language.corpus import PreparedLanguage, Stream, prepare
from tests.refused import assert_refused
from tests.tasks.in_process import run_config
from tests.tasks.language.toy_language_models import Toy, ToyConfig

SYMBOLS = 400
LENGTHS = [1, 3, 5, 10, 40]
QUANTITIES = ("tokens_reuse", "tokens_sliding", "token_ratio", "microseconds_reuse", "microseconds_sliding", "speedup")


class Remembering(Toy):
    """Counts how much its memory holds, and what it reads."""

    def __init__(self, config, vocabulary, other=None):
        super().__init__(config, vocabulary, other)
        self.read = []

    def forward(self, inputs, targets, memory=None):
        memory.seen = getattr(memory, "seen", 0)
        self.read.append((tuple(inputs.shape), memory.reach, min(memory.seen, memory.reach.memory)))
        memory.seen += inputs.size(1)
        return super().forward(inputs, targets, memory)

    def next_log_probs(self, inputs, memory=None):
        assert memory is None
        self.read.append((tuple(inputs.shape), None, 0))
        return super().next_log_probs(inputs)


STUDY = EvaluationSpeed(Remembering, ToyConfig)


def config():
    return run_config(
        "language", {"tokenizer": {"kind": "characters"}, "unit": "character"},
        model={"size": 5, "study": "evaluation_speed", "lengths": LENGTHS, "seconds": 0.001},
        evaluation={"length": 4, "columns": 3, "reach": {"memory": 6, "clamp": 2}},
    )  # fmt: skip


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    for split in ("train", "valid", "test"):
        (folder / f"{split}.text").write_text(("abcdefghi\n" * SYMBOLS)[:SYMBOLS])
    prepare(config().corpus, folder, folder)
    return folder


@pytest.fixture
def case(prepared):
    """A model, and the symbols that it is measured on."""
    text = PreparedLanguage(prepared)
    return Remembering(ToyConfig(size=5), len(text.tokenizer)).eval(), text.split("test")


def test_the_ratio_of_symbols_is_the_attention_length(prepared, tmp_path):
    metrics = STUDY.evaluate(config(), prepared=prepared, trained=[tmp_path], out=tmp_path)
    assert metrics.keys() == {f"{quantity}@{length}" for quantity in QUANTITIES for length in LENGTHS}
    for length in LENGTHS:
        assert metrics[f"tokens_reuse@{length}"] == 1
        assert metrics[f"token_ratio@{length}"] == metrics[f"tokens_sliding@{length}"] == length
        times = (metrics[f"microseconds_{way}@{length}"] for way in ("sliding", "reuse"))
        assert metrics[f"speedup@{length}"] == pytest.approx(next(times) / next(times))
        assert metrics[f"microseconds_reuse@{length}"] > 0


@pytest.mark.parametrize("length", LENGTHS)
def test_states_are_those_of_a_full_memory(case, length):
    model, stream = case
    reuse = passes(model, model, stream, length, config().evaluation)["reuse"]
    warm_up = len(model.read)
    for _ in range(2):
        reuse()
    assert model.read[warm_up:] == [((3, 4), (length, True, 2), length)] * 2 * len(reuse.batches)
    assert reuse.scored == sum(batch.inputs.numel() for batch in reuse.batches) >= 3 * length
    places = torch.cat([batch.places for batch in reuse.batches], 1)
    assert len(places.unique()) == reuse.scored
    assert places.min() >= length


@pytest.mark.parametrize("length", LENGTHS)
def test_a_window_is_read_for_every_symbol(case, length):
    model, stream = case
    sliding = passes(model, model, stream, length, config().evaluation)["sliding"]
    model.read.clear()
    sliding()
    windows = max(1, 12 // length)
    assert model.read == [((windows, length), None, 0)]
    (batch,) = sliding.batches
    assert batch.mask.sum(1).tolist() == [1] * windows
    assert batch.mask[:, -1].all()


@torch.inference_mode()
def test_segments_are_read_on_from_where_the_memory_ends(case):
    model, stream = case
    reuse = passes(model, model, stream, 9, config().evaluation)["reuse"]
    nats = torch.cat([reuse.read(batch) for batch in reuse.batches], 1)
    text = torch.from_numpy(np.append(EOS, stream.symbols).astype(np.int64))
    before = reuse.batches[0].places[:, :1] - 12  # three segments fill the memory
    read = text[before + torch.arange(12 + nats.size(1) + 1)]
    expected = model(read[:, :-1], read[:, 1:], model.memory(3, Reach(9)))
    torch.testing.assert_close(nats, expected[:, 12:])


def test_medians_of_turns():
    clock, order = [0.0], []

    def taking(name, seconds):
        def run():
            order.append(name)
            clock[0] += next(seconds)

        return run

    slow, fast = iter([50, 4, 90, 5, 6, 7]), iter([50, 1, 2, 3, 1, 1])
    both = {"slow": taking("slow", slow), "fast": taking("fast", fast)}
    assert seconds_in_turns(both, 108, clock=lambda: clock[0]) == {"slow": 5.5, "fast": 1.5}
    assert order == ["slow", "fast"] * 5
    other = {"other": taking("other", iter([9, 9, 2, 1]))}
    assert seconds_in_turns(other, 0.0, clock=lambda: clock[0]) == {"other": 2}


@pytest.mark.parametrize(("symbols", "length"), [(SYMBOLS, SYMBOLS), (SYMBOLS, 120), (100, 30)])
def test_a_short_text_is_refused(case, symbols, length):
    model, stream = case
    short = Stream(stream.symbols[:symbols])
    assert_refused(rf"{symbols} symbols, too few for an", passes, model, model, short, length, config().evaluation)
