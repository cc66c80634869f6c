"""What evaluation writes down of language models, against texts read symbol by symbol; what it keeps for readers."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from replications.transformer_xl.texts import BORDER, AttentionToText, Samples
from shared.claims.results import load_results
from shared.config import build
from shared.data.storage import save_arrays
from shared.data.tokenizers import EOS, WordVocabulary
from shared.decoding.protocol import Reach
from shared.errors import ReplicationError
from shared.reports.page import render
from shared.tasks.examples import write_kept
from shared.tasks.language.corpus import PreparedLanguage, prepare
from shared.tasks.language.evaluation import ROWS, TEXTS, drawn, kept_texts, write_on
from shared.tasks.language.settings import LanguageEvaluation
from tests.refused import assert_refused
from tests.replications import small_transformer_xl as xl
from tests.tasks.in_process import draw_kept, judged, run_config
from tests.tasks.language.synthetic_language import MODELS
from tests.tasks.language.synthetic_language import build as build_runs
from tests.tasks.language.toy_language_models import Toy, ToyConfig

VOCABULARY = 12
SIZE = 331  # of the test text; no multiple of any segment, block or number of columns
BIT = math.log(2)


class Seen:
    """The last symbols read, as many as the memory holds."""

    def __init__(self, columns, reach):
        self.reach, self.held = reach, torch.empty(columns, 0, dtype=torch.int64)

    def clear(self):
        self.held = self.held[:, :0]


class FiniteReach(nn.Module):
    """What comes next depends on which of the last ``window`` symbols stood how far back, and on nothing else."""

    def __init__(self, window):
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        self.tables = nn.Parameter(torch.randn(window, VOCABULARY, VOCABULARY, generator=generator))
        self.read = 0

    def memory(self, columns, reach):
        return Seen(columns, reach)

    def all_log_probs(self, inputs, memory):
        """(B, T, V)."""
        held = memory.held if memory is not None else inputs[:, :0]
        symbols = torch.cat((held, inputs), dim=1)
        logits = torch.zeros(*symbols.shape, VOCABULARY)
        for back, table in enumerate(self.tables[: symbols.size(1)]):
            logits[:, back:] += table[symbols[:, : symbols.size(1) - back]]
        if memory is not None:
            memory.held = symbols[:, max(0, symbols.size(1) - memory.reach.memory) :]
        self.read += inputs.numel()
        return logits[:, held.size(1) :].log_softmax(-1)

    def forward(self, inputs, targets, memory=None):
        return -self.all_log_probs(inputs, memory).gather(2, targets.unsqueeze(2)).squeeze(2)

    def next_log_probs(self, inputs, memory=None):
        return self.all_log_probs(inputs, memory)[:, -1]


def alone(model, symbols, place, context=None):
    """The loss of one symbol after as many before it as are asked for, or all and the end symbol before them."""
    before = [EOS, *symbols[:place].tolist()]
    inputs = torch.tensor([before if context is None else before[len(before) - context :]])
    with torch.no_grad():
        return -model.next_log_probs(inputs)[0, int(symbols[place])].item()


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Random text in two test splits; some symbols count as recalls."""
    folder, rng = tmp_path_factory.mktemp("text"), np.random.default_rng(5)
    for split, size in (("test", SIZE), ("other", 45)):
        distances = np.where(rng.random(size) < 0.2, rng.integers(1, 70, size), 0)
        symbols = rng.integers(EOS, VOCABULARY, size)
        save_arrays(folder / split, {"symbols": symbols, "distances": distances.astype(np.int32)})
    words = WordVocabulary([f"w{i}" for i in range(VOCABULARY - 4)])
    prepared, units = PreparedLanguage(folder), {"test": {"units": SIZE // 2}, "other": {"units": 45}}
    vars(prepared).update(tokenizer=words, summary={"unit": "word", "splits": units})
    return prepared


def judge(text, out, *, window=5, test=("test",), **evaluation):
    """Metrics, examples and the model that was judged."""
    corpus = {"test": list(test), "recalls": "recall", "tokenizer": {"kind": "words", "size": 12}}
    evaluation = {"length": 8, "reach": {"memory": 4}, "columns": 3, "block": 50} | evaluation
    model = FiniteReach(window).eval()
    return *judged(run_config("language", corpus, evaluation=evaluation), text, model, out), model


def test_blocks_are_the_text_in_its_order_and_nothing_is_left_out(text, tmp_path):
    metrics, examples, model = judge(text, tmp_path)
    symbols = text.split("test").symbols
    nats = [alone(model, symbols, place) for place in range(SIZE)]
    assert [e["id"] for e in examples] == [f"test-{i}" for i in range(7)]
    assert [e["tokens"] for e in examples] == [50] * 6 + [31]
    assert [e["nll"] for e in examples] == pytest.approx([sum(nats[i : i + 50]) for i in range(0, SIZE, 50)], rel=1e-5)
    assert sum(e["units"] for e in examples) == pytest.approx(SIZE // 2)
    assert {(e["split"], e["unit"]) for e in examples} == {("test", "word")}
    assert metrics["word_perplexity"] == pytest.approx(math.exp(sum(nats) / (SIZE // 2)), rel=1e-4)
    assert "bits" not in metrics


@pytest.mark.parametrize("columns", [1, 2, 7, 64])
@pytest.mark.parametrize(("length", "memory"), [(8, 4), (3, 4), (1, 4), (40, 4), (400, 4), (5, 100)])
def test_neither_columns_nor_segments_matter_where_all_is_remembered(text, tmp_path, columns, length, memory):
    first, _, _ = judge(text, tmp_path)
    again, examples, _ = judge(text, tmp_path, columns=columns, length=length, reach={"memory": memory})
    assert again["word_perplexity"] == pytest.approx(first["word_perplexity"], rel=1e-5)
    assert sum(e["tokens"] for e in examples) == SIZE


def test_without_memory_the_start_of_a_segment_knows_less(text, tmp_path):
    _, (example, *_), model = judge(text, tmp_path, reach={"memory": 0}, columns=1, block=SIZE)
    symbols = text.split("test").symbols
    parts = [[0.0, 0] for _ in range(8)]
    for place in range(SIZE):
        parts[place % 8][0] += alone(model, symbols, place, context=place % 8 + 1)
        parts[place % 8][1] += 1
    assert np.array(example["positions"]) == pytest.approx(np.array(parts), rel=1e-5)
    assert example["nll"] == pytest.approx(sum(nats for nats, _ in parts), rel=1e-5)


@pytest.mark.parametrize("length", [16, 12, 8])
def test_positions_are_eighths_of_the_segment(text, tmp_path, length):
    _, examples, _ = judge(text, tmp_path, length=length)
    counts = np.sum([[n for _, n in e["positions"]] for e in examples], axis=0)
    assert counts.sum() == SIZE
    whole = np.bincount(np.arange(length) * 8 // length, minlength=8) * (SIZE / length)
    assert counts == pytest.approx(whole, abs=3 * 4)  # three columns, whose last segments are cut
    assert [sum(nats for nats, _ in e["positions"]) for e in examples] == pytest.approx([e["nll"] for e in examples])
    assert not any("positions" in e for e in judge(text, tmp_path, length=7)[1])


def test_further_memories_are_scored_beside_the_own_one(text, tmp_path):
    metrics, examples, _ = judge(text, tmp_path, memories=[0, 4, 16], test=("test", "other"))
    of_test = [e for e in examples if e["split"] == "test"]
    assert all(e["memories"].keys() == {"0", "4", "16"} for e in of_test)
    assert [e["memories"]["4"] for e in of_test] == [e["nll"] for e in of_test]
    alike, _, _ = judge(text, tmp_path, reach={"memory": 0})
    assert metrics["word_perplexity@0"] == pytest.approx(alike["word_perplexity"], abs=1e-9)
    assert metrics["word_perplexity@16"] == pytest.approx(metrics["word_perplexity"], rel=1e-5)
    assert metrics["word_perplexity@0"] != pytest.approx(metrics["word_perplexity"], rel=1e-3)
    assert not any("memories" in e for e in examples if e["split"] == "other")
    assert "other.word_perplexity" in metrics
    beside, _, _ = judge(text, tmp_path, reach={"memory": 0}, sliding={"context": 2}, memories=[4, 8])
    assert beside["word_perplexity@4"] == pytest.approx(metrics["word_perplexity"], rel=1e-5)


def test_recalls_are_found_by_their_distance(text, tmp_path):
    metrics, examples, model = judge(text, tmp_path)
    stream, totals = text.split("test"), {}
    for place in np.flatnonzero(stream.distances):
        nats, end = alone(model, stream.symbols, place), 4
        while end < stream.distances[place]:
            end *= 2
        total = totals.setdefault(str(end), [0.0, 0, 0])
        total[:] = total[0] + nats, total[1] + 1, total[2] + (math.exp(-nats) > 0.5)
    assert totals.keys() == {"4", "8", "16", "32", "64", "128"}
    for end, total in totals.items():
        found = np.sum([e["recalls"][end] for e in examples if end in e.get("recalls", {})], axis=0)
        assert found == pytest.approx(total, rel=1e-5)
        assert metrics[f"recalled@{end}"] == pytest.approx(100 * total[2] / total[1])
        assert metrics[f"recall_bits@{end}"] == pytest.approx(total[0] / total[1] / BIT, rel=1e-5)


@pytest.mark.parametrize("size", [1, 50])
def test_windows_read_the_same_context_for_every_symbol(text, tmp_path, size):
    sliding = {"context": 4, "stride": 1, "size": size}
    _, examples, model = judge(text, tmp_path, sliding=sliding, reach={"memory": 0})
    symbols = text.split("test").symbols
    nats = [alone(model, symbols, place, context=min(4, place + 1)) for place in range(SIZE)]
    assert [e["nll"] for e in examples] == pytest.approx([sum(nats[i : i + 50]) for i in range(0, SIZE, 50)], rel=1e-5)
    assert not any({"positions", "memories"} & e.keys() for e in examples)


CONTEXTS = {"step": 3, "most": 12, "positions": 40}
OF_RECALLS = {"contexts": CONTEXTS | {"of": "recalls", "positions": 25}}


@pytest.mark.parametrize(("settings", "memory", "sees"), [
    *(({"length": length}, 20, 12) for length in (5, 8, 400)), ({}, 0, 8), ({"sliding": {"context": 5}}, 0, 5),
    (OF_RECALLS, 20, 12), (OF_RECALLS, 0, 8),
])  # fmt: skip
def test_contexts_are_read_from_nothing_as_far_as_the_model_sees(text, tmp_path, settings, memory, sees):
    asked = {"contexts": CONTEXTS, "reach": {"memory": memory}} | settings
    _, _, model = judge(text, tmp_path, window=12, **asked)
    kept, stream = np.load(tmp_path / "contexts.npz"), text.split("test")
    places = kept["places"]
    assert kept["context"].tolist() == [3, 6, 9, 12]
    assert len(np.unique(places)) == len(places) == asked["contexts"]["positions"]
    if "of" in asked["contexts"]:
        assert (stream.distances[places] > 0).all()
    else:
        assert (places[0], places[-1]) == (12, SIZE - 1)
        assert set(np.diff(places)) == {3, SIZE - 1 - 12 - 38 * 3}  # two runs
    for nats, context in zip(kept["nats"], kept["context"], strict=True):
        expected = [alone(model, stream.symbols, place, context=min(context, sees)) for place in places]
        assert nats == pytest.approx(np.array(expected), rel=1e-5)


def test_a_model_without_memory_reads_no_more_than_it_sees(text, tmp_path):
    read = []
    for most in (9, 300):
        contexts = {"step": 3, "most": most, "positions": 10}
        _, _, model = judge(text, tmp_path, contexts=contexts, reach={"memory": 0})
        read.append(model.read)
    assert read[0] == read[1]
    assert len(np.unique(np.load(tmp_path / "contexts.npz")["nats"][2:], axis=0)) == 1


def test_a_text_shorter_than_the_contexts_is_refused(text, tmp_path):
    assert_refused(r"331 symbols, too few", judge, text, tmp_path, contexts={"step": 3, "most": 333, "positions": 4})
    last = int(np.flatnonzero(text.split("test").distances)[-1])
    with pytest.raises(ReplicationError, match="no recalls after as many symbols"):
        judge(text, tmp_path, contexts={"step": last + 1, "most": last + 1, "positions": 1, "of": "recalls"})
    judge(text, tmp_path, contexts={"step": 3, "most": 330, "positions": 4})
    assert np.load(tmp_path / "contexts.npz")["places"].tolist() == [330]
    judge(text, tmp_path, contexts=CONTEXTS | {"positions": 1000})
    assert np.diff(np.load(tmp_path / "contexts.npz")["places"]).min() == 3


SYMBOLS, LENGTH, MEMORY = 200, 10, 15
SEEN = LENGTH + MEMORY
TEXT = "the cat sat\non the mat\n\nthe dog was not there\n" * 4
TOKENIZERS = {
    "characters": ("character", {"kind": "characters"}),
    "bytes": ("byte", {"kind": "bytes"}),
    "words": ("word", {"kind": "words", "size": 30}),
    "pieces": ("word", {"kind": "sentencepiece", "size": 24}),
}


def kept(folder, distances=None, model=None, memory=MEMORY):
    """What is kept of a random text, some of whose symbols repeat one that stood so far before, and its symbols."""
    arrays = {"symbols": np.random.default_rng(1).integers(EOS, xl.VOCABULARY, SYMBOLS)}
    if distances is not None:
        arrays["distances"] = np.array([distances.get(place, 0) for place in range(SYMBOLS)], np.int32)
    save_arrays(folder / "test", arrays)
    text = PreparedLanguage(folder)
    vars(text)["tokenizer"] = WordVocabulary([f"w{i}" for i in range(xl.VOCABULARY - 4)])
    asked = {"length": LENGTH, "reach": {"memory": memory}, "columns": 1, "block": 50}
    with torch.inference_mode():
        found = kept_texts(model or xl.small().eval(), text, "test", build(LanguageEvaluation, asked, where="test"))
    return found, arrays["symbols"]


def pieces(symbols):
    return ["</s>" if symbol == EOS else f"w{symbol - 4}" for symbol in symbols]


def test_parts_end_before_the_symbols_that_repeat_the_furthest_one_in_sight(tmp_path):
    places = {20: 11, 90: SEEN, 120: SEEN + 1, 150: 24, 170: 3}  # the first is too early, the third too far
    texts, symbols = kept(tmp_path / "a", places)
    assert len(texts) == TEXTS
    for text, end in zip(texts, (90, 150), strict=True):
        assert text["symbols"].tolist() == pieces(symbols[end - SEEN : end])
        assert text["next"] == pieces([symbols[end]])[0]
        assert text["own"] == LENGTH
    assert kept(tmp_path / "b", {120: SEEN + 1})[0] == []


def test_where_repetitions_are_not_known_parts_are_evenly_spread(tmp_path):
    texts, symbols = kept(tmp_path)
    ends = [e for e in range(SEEN, SYMBOLS) for t in texts if pieces(symbols[e - SEEN : e]) == t["symbols"].tolist()]
    assert ends == pytest.approx([30 + (SYMBOLS - 31) / 3, 30 + 2 * (SYMBOLS - 31) / 3], abs=1)


@pytest.mark.parametrize("memory", [MEMORY, 0])
def test_weights_are_those_of_the_model_and_never_on_what_comes_later(tmp_path, memory):
    model, seen = xl.small().eval(), LENGTH + memory
    (text, *_), symbols = kept(tmp_path, {100: 5}, model, memory)
    weights = text["weights"].astype(np.float32)
    assert weights.shape[2:] == (ROWS, seen)
    assert weights.sum(-1) == pytest.approx(1.0, abs=0.01)  # half precision
    assert (weights[..., np.triu(np.ones((ROWS, seen), dtype=bool), seen - ROWS + 1)] == 0).all()
    segments = torch.from_numpy(symbols[70 if memory else 90 : 100].astype(np.int64)).unsqueeze(0).split(LENGTH, dim=1)
    with torch.no_grad():
        whole = model.attention_maps(segments, Reach(memory))[:, 0, :, -ROWS:]
    assert weights == pytest.approx(whole.numpy(), abs=1e-3)


def test_a_reader_chooses_text_layer_and_head_and_sees_where_memory_ends(tmp_path):
    texts, _ = kept(tmp_path)
    write_kept(tmp_path / "attention.npz", texts)
    (figure,) = draw_kept(AttentionToText("xl", "Two places."), tmp_path, xl=tmp_path / "attention.npz")
    weights = texts[0]["weights"].astype(np.float32)
    layers, heads = weights.shape[:2]
    assert len(figure.maps) == len(texts) * layers * heads
    chosen = figure.maps[heads + 1]
    words = [str(word).replace("</s>", "¶") for word in texts[0]["symbols"]]
    assert chosen.choices == {"Model": "xl", "Text": "1", "Layer": "2", "Head": "2"}
    assert chosen.columns == [*words[:MEMORY], BORDER, *words[MEMORY:]]
    assert chosen.rows == words[-ROWS:]
    found = np.array(chosen.weights)
    assert (found[:, MEMORY] == 0).all()
    assert np.delete(found, MEMORY, axis=1) == pytest.approx(weights[1, 1])
    assert draw_kept(AttentionToText("xl", "."), tmp_path, xl=tmp_path / "none.npz") == []


class Spy(Toy):
    def __init__(self, vocabulary):
        super().__init__(ToyConfig(size=8), vocabulary)
        self.read = []

    def next_log_probs(self, inputs, memory=None):
        self.read.append((tuple(inputs.shape), None if memory is None else memory.reach))
        return super().next_log_probs(inputs, memory)


def writer(folder, tokenizer, samples, **evaluation):
    """A model, the prepared text, and the settings of evaluation."""
    unit, kind = TOKENIZERS[tokenizer]
    evaluation = {"length": 4, "reach": {"memory": 6}, "samples": samples} | evaluation
    config = run_config("language", {"tokenizer": kind, "unit": unit}, evaluation=evaluation)
    for split in ("train", "valid", "test"):
        (folder / f"{split}.text").write_text(TEXT, newline="\n")
    prepare(config.corpus, folder, folder)
    text = PreparedLanguage(folder)
    torch.manual_seed(0)
    return Spy(len(text.tokenizer)).eval(), text, config.evaluation


def written(model, text, evaluation):
    with torch.inference_mode():
        return write_on(model, text, "test", evaluation, evaluation.samples)


@pytest.mark.parametrize("tokenizer", ["characters", "bytes"])
def test_prompts_are_spread_over_the_text_and_go_on_as_it_does(tmp_path, tokenizer):
    found = written(*writer(tmp_path, tokenizer, {"prompts": 3, "prompt": 9, "length": 7}))
    for sample in found:
        assert sample["prompt"] + sample["true"] in TEXT
        assert (len(sample["prompt"]), len(sample["true"])) == (9, 7)
    assert len({sample["prompt"] for sample in found}) == len(found) == 3


def test_line_ends_stand_where_end_symbols_are(tmp_path):
    model, text, evaluation = writer(tmp_path, "words", {"prompts": 1, "prompt": 4, "length": 40, "top_k": 1})
    with torch.no_grad():
        model.out.weight.zero_()
        model.out.bias.fill_(0.0)[EOS] = 9.0
    (sample,) = written(model, text, evaluation)
    assert sample["text"] == "\n" * 40
    assert "on the mat\n\nthe dog was not there\n" in sample["true"]


def test_pieces_become_words(tmp_path):
    (sample,) = written(*writer(tmp_path, "pieces", {"prompts": 1, "prompt": 30, "length": 30}))
    assert "▁" not in "".join(sample.values())
    lines = TEXT.splitlines()
    assert all(line in lines for line in sample["true"].split("\n")[1:-1])
    assert all(any(line in whole for whole in lines) for line in sample["prompt"].split("\n"))


@pytest.mark.parametrize(("evaluation", "first", "later", "memory"), [
    ({"reach": {"memory": 5, "same_length": True, "clamp": 3}}, 9, 1, (5, True, 3)),
    ({"reach": {"memory": 0}}, 4, 4, None),
    *(({"reach": {"memory": 0}, "sliding": {"context": n}}, seen, seen, None) for n, seen in ((7, 7), (20, 9))),
])  # fmt: skip
def test_a_model_sees_as_much_as_it_is_judged_with(tmp_path, evaluation, first, later, memory):
    model, *case = writer(tmp_path, "characters", {"prompts": 2, "prompt": 9, "length": 3}, **evaluation)
    written(model, *case)
    assert model.read == [((2, first), memory), *[((2, later), memory)] * 2]


def test_a_seed_decides_the_text_and_a_short_text_is_refused(tmp_path):
    model, text, evaluation = writer(tmp_path, "characters", {"prompt": 9, "length": 40})
    first = written(model, text, evaluation)
    assert written(model, text, evaluation) == first
    assert len({sample["text"] for sample in first}) == 2
    prompt = torch.tensor([[5, 6]])
    one, other, again = (drawn(model, prompt, evaluation, evaluation.samples, seed) for seed in (1, 2, 1))
    assert one == again != other
    assert_refused(r"9 symbols and 5000 more", written, *writer(tmp_path, "characters", {"prompt": 9, "length": 5000}))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return load_results(build_runs(tmp_path_factory.mktemp("runs"), MODELS))


def test_samples_stand_beside_each_other_with_what_was_to_come(results, tmp_path):
    said, table = Samples(["xl", "never-run", "shaw", "lstm"]).draw(results, tmp_path)
    assert "at temperature 0.8, from the 40 likeliest." in said.text
    assert table.columns == ("Beginning", "Continued by xl", "Continued by shaw", "True continuation")
    assert table.rows[1] == ["In chapter 2 ¶ was | the", "word of xl. ¶ And so", "word of shaw. ¶ And so", "Word 2."]
    assert r"In chapter 1 ¶ was \| the" in render([said, table], "md", title="", folder=tmp_path)
