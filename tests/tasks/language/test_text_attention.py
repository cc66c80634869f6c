"""Attention of language models to the text before a word: what is kept, and how it is shown."""

import numpy as np
import pytest
import torch
from matplotlib.image import imread
from torch import nn

from shared.claims.results import load_results
from shared.config import build
from shared.data.tokenizers import EOS, SPECIAL, WordVocabulary
from shared.reports.explorer import gather_maps
from shared.reports.page import render
from shared.tasks.language.attention_figures import BORDER, draw_attention, maps_of_texts, read_kept
from shared.tasks.language.attention_maps import ROWS, TEXTS, save_attention_maps
from shared.tasks.language.corpus import PreparedLanguage
from shared.tasks.language.figures import AttentionToText
from shared.tasks.language.settings import LanguageEvaluation
from shared.tasks.language.streams import Stream
from tests.replications.small_transformer_xl import VOCABULARY, small
from tests.tasks.language.synthetic_language import MODELS
from tests.tasks.language.synthetic_language import build as build_runs

SIZE, LENGTH, MEMORY = 200, 10, 15
SEEN = LENGTH + MEMORY


def prepared(folder, distances=None):
    (folder / "test").mkdir(parents=True)
    symbols = np.random.default_rng(1).integers(EOS, VOCABULARY, SIZE)
    Stream(symbols, distances).save(folder / "test")
    return PreparedLanguage(folder, WordVocabulary([f"w{i}" for i in range(VOCABULARY - 4)]), "word", {"test": SIZE})


def recalls(distances):
    """A text in which some symbols repeat one that stood so far before."""
    found = np.zeros(SIZE, dtype=np.int32)
    for place, distance in distances.items():
        found[place] = distance
    return found


def settings(**changed):
    evaluation = {"length": LENGTH, "reach": {"memory": MEMORY}, "columns": 1, "block": 50}
    return build(LanguageEvaluation, evaluation | changed, where="test")


def kept(folder, distances=None, model=None, **changed):
    text, path = prepared(folder / "text", distances), folder / "attention.npz"
    save_attention_maps(path, small().eval() if model is None else model, text, "test", settings(**changed))
    return read_kept(path), text.split("test").symbols


def words(symbols):
    return ["¶" if symbol == EOS else f"w{symbol - 4}" for symbol in symbols]


def test_parts_end_before_the_symbols_that_repeat_the_furthest_one_in_sight(tmp_path):
    places = {20: 11, 90: SEEN, 120: SEEN + 1, 150: 24, 170: 3}  # the first is too early, the third too far
    texts, symbols = kept(tmp_path, recalls(places))
    assert len(texts) == TEXTS
    for text, end in zip(texts, (90, 150), strict=True):
        assert text.words == words(symbols[end - SEEN : end])
        assert text.follows == words([symbols[end]])[0]
        assert text.memory == MEMORY


def test_a_text_without_repetitions_in_sight_has_no_parts(tmp_path):
    assert kept(tmp_path, recalls({120: SEEN + 1}))[0] == []


def test_where_repetitions_are_not_known_parts_are_evenly_spread(tmp_path):
    texts, symbols = kept(tmp_path)
    ends = [end for end in range(SEEN, SIZE) for text in texts if words(symbols[end - SEEN : end]) == text.words]
    assert ends == pytest.approx([30 + (SIZE - 31) / 3, 30 + 2 * (SIZE - 31) / 3], abs=1)


@pytest.mark.parametrize("memory", [MEMORY, 0])
def test_weights_are_those_of_the_model_and_never_on_what_comes_later(tmp_path, memory):
    model = small().eval()
    (text, *_), symbols = kept(tmp_path, recalls({100: 5}), model, reach={"memory": memory})
    seen = LENGTH + memory
    assert text.weights.shape[2:] == (ROWS, seen)
    assert text.weights.sum(-1) == pytest.approx(1.0, abs=0.01)  # half precision
    later = np.triu(np.ones((ROWS, seen), dtype=bool), seen - ROWS + 1)
    assert (text.weights[..., later] == 0).all()
    segments = torch.from_numpy(symbols[70 if memory else 90 : 100].astype(np.int64)).unsqueeze(0).split(LENGTH, dim=1)
    with torch.no_grad():
        whole = model.attention_maps(segments, settings(reach={"memory": memory}).reach.reach)[:, 0, :, -ROWS:]
    assert text.weights == pytest.approx(whole.numpy(), abs=1e-3)


def test_the_last_state_is_that_of_evaluation(tmp_path):
    """Attention is read by the equations; what is judged runs on their quick twin."""
    model, reach = small().eval(), settings().reach.reach
    segments = torch.randint(EOS, VOCABULARY, (1, 3 * LENGTH)).split(LENGTH, dim=1)
    memory = model.memory(1, reach)
    with torch.no_grad():
        judged = [model.next_log_probs(segment, memory) for segment in segments][-1]
        model.fused, memory = False, None
        memory = model.memory(1, reach)
        read = [model.next_log_probs(segment, memory) for segment in segments][-1]
    torch.testing.assert_close(judged, read)


def test_a_model_without_attention_leaves_nothing(tmp_path):
    assert kept(tmp_path, model=nn.Linear(1, 1))[0] == []
    assert not (tmp_path / "attention.npz").exists()


def test_a_reader_chooses_text_layer_and_head_and_sees_where_memory_ends(tmp_path):
    (text, other), _ = kept(tmp_path)
    maps = maps_of_texts("xl", [text, other])
    layers, heads = text.weights.shape[:2]
    assert len(maps) == 2 * layers * heads
    first = maps[heads + 1]
    assert first.choices == {"Model": "xl", "Text": "1", "Layer": "2", "Head": "2"}
    assert first.columns == [*text.words[:MEMORY], BORDER, *text.words[MEMORY:]]
    assert first.rows == text.words[-ROWS:]
    found = np.array(first.weights)
    assert (found[:, MEMORY] == 0).all()
    assert np.delete(found, MEMORY, axis=1) == pytest.approx(text.weights[1, 1])


@pytest.mark.parametrize("memory", [MEMORY, 140])
def test_the_picture_is_as_wide_as_all_and_the_same_twice(tmp_path, memory):
    (text, *_), _ = kept(tmp_path, reach={"memory": memory})
    for name in ("one.png", "two.png"):
        draw_attention(text, tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    assert imread(tmp_path / "one.png").shape[1] == 1400


def test_the_report_has_the_figure_where_attention_was_kept(tmp_path):
    results = load_results(build_runs(tmp_path / "runs", {name: MODELS[name] for name in ("xl", "lstm")}))
    place = results["xl"].attention(results["xl"].seeds[0])
    save_attention_maps(place, small().eval(), prepared(tmp_path / "text"), "test", settings())
    (figure,) = AttentionToText("xl", "Two places.").draw(results, tmp_path)
    assert figure.path.exists()
    assert figure.caption.startswith("Two places. Weights of each head")
    assert len(figure.maps) > TEXTS
    page = render(gather_maps({"": [figure]})[1], "html", title="", folder=tmp_path)
    assert '"choices": {"Model": "xl", "Text": "1", "Layer": "1", "Head": "1"}' in page  # readers choose in this order
    assert AttentionToText("lstm", "Two places.").draw(results, tmp_path) == ()
    assert AttentionToText("never-run", "Two places.").draw(results, tmp_path) == ()


def test_the_end_of_a_line_has_its_sign(tmp_path):
    texts, symbols = kept(tmp_path)
    assert EOS in symbols
    assert all(SPECIAL[EOS] not in text.words for text in texts)
