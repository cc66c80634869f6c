"""What evaluation keeps of language models for readers, and what reports show of it: attention to the text, samples."""

import numpy as np
import pytest
import torch

from replications.transformer_xl.texts import BORDER, AttentionToText, Samples
from shared.claims.results import load_results
from shared.config import build
from shared.data.storage import save_arrays
from shared.data.tokenizers import EOS, WordVocabulary
from shared.decoding.protocol import Reach
from shared.reports.page import render
from shared.tasks.examples import write_kept
from shared.tasks.language.corpus import PreparedLanguage, prepare
from shared.tasks.language.evaluation import ROWS, TEXTS, drawn, kept_texts, write_on
from shared.tasks.language.settings import LanguageEvaluation
from tests.refused import assert_refused
from tests.replications.small_transformer_xl import VOCABULARY, small
from tests.tasks.in_process import draw_kept, run_config
from tests.tasks.language.synthetic_language import MODELS
from tests.tasks.language.synthetic_language import build as build_runs
from tests.tasks.language.toy_language_models import Toy, ToyConfig

SIZE, LENGTH, MEMORY = 200, 10, 15
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
    arrays = {"symbols": np.random.default_rng(1).integers(EOS, VOCABULARY, SIZE)}
    if distances is not None:
        arrays["distances"] = np.array([distances.get(place, 0) for place in range(SIZE)], np.int32)
    save_arrays(folder / "test", arrays)
    text = PreparedLanguage(folder, WordVocabulary([f"w{i}" for i in range(VOCABULARY - 4)]), "word", {"test": SIZE})
    asked = {"length": LENGTH, "reach": {"memory": memory}, "columns": 1, "block": 50}
    with torch.inference_mode():
        found = kept_texts(model or small().eval(), text, "test", build(LanguageEvaluation, asked, where="test"))
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
    ends = [e for e in range(SEEN, SIZE) for t in texts if pieces(symbols[e - SEEN : e]) == t["symbols"].tolist()]
    assert ends == pytest.approx([30 + (SIZE - 31) / 3, 30 + 2 * (SIZE - 31) / 3], abs=1)


@pytest.mark.parametrize("memory", [MEMORY, 0])
def test_weights_are_those_of_the_model_and_never_on_what_comes_later(tmp_path, memory):
    model, seen = small().eval(), LENGTH + memory
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
    text = PreparedLanguage.load(folder)
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
