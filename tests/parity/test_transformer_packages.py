"""The Transformer against packages that implement it, the caches of keys and values, and a published program."""

import pytest
import torch

from benchmarks.steps import Recomputing
from replications.transformer.model import Transformer
from shared.data.tokenizers import BOS, EOS
from shared.decoding.beam import beam_search
from shared.decoding.sampling import greedy_search
from shared.layers.positions import LearnedPositions, NoPositions, SinusoidalPositions
from shared.training.loss import smoothed_loss
from tests.parity import copied_transformer
from tests.parity.transformer_case import F64, TOLERANCES, VOCABULARY, WIDTH, batch, limits, transformer

WHY = "the optional group parity is not installed: pip install -e '.[parity]'"
MAXIMUM = 12
LENGTHS = (7, 6, 5, 4, 6, 3, 2, 7)  # of the sources to translate, end symbols included


@pytest.fixture(scope="module")
def trained():
    """A model that half knows how to turn a sentence round, so that translations differ, end and are not certain."""
    torch.manual_seed(1)
    width = 16
    model = Transformer(
        vocabulary=VOCABULARY, width=width, layers=1, heads=2, key_size=8, value_size=8, hidden_size=32, dropout=0.0,
        positions=SinusoidalPositions(width=width),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(200):
        words = torch.randint(4, VOCABULARY, (32, int(torch.randint(1, 7, ()))))
        ends, begins = torch.full((32, 1), EOS), torch.full((32, 1), BOS)
        source, backwards = torch.cat((words, ends), 1), words.flip(1)
        logits, _ = model(source, source > 0, torch.cat((begins, backwards), 1))
        smoothed_loss(logits, torch.cat((backwards, ends), 1), 0.1).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()


def search(model, source, mask, beam):
    """What our search finds, without length normalisation."""
    state, constraints = model.start(source, mask), limits(len(source), 0, MAXIMUM)
    if beam == 1:
        return greedy_search(model, state, constraints)
    return beam_search(model, state, constraints, beam=beam)


def in_lists(source, mask):
    return [row[:length] for row, length in zip(source.tolist(), mask.sum(1).tolist(), strict=True)]


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES)
@pytest.mark.parametrize("layers", [1, 3])
def test_logits_are_those_of_hugging_faces_marian(dtype, tolerance, layers):
    pytest.importorskip("transformers", reason=WHY)
    ours = transformer(layers=layers).to(dtype).eval()
    source, mask, target = batch()
    theirs = copied_transformer.marian(ours)(input_ids=source, attention_mask=mask.long(), decoder_input_ids=target)
    torch.testing.assert_close(ours(source, mask, target)[0], theirs.logits, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("beam", [1, 4])
@torch.no_grad()
def test_hugging_faces_search_finds_the_same(trained, beam):
    pytest.importorskip("transformers", reason=WHY)
    source, mask, _ = batch(LENGTHS)
    found = search(trained, source, mask, beam)
    marian = copied_transformer.marian(trained)
    theirs = copied_transformer.generate(marian, source, mask, beam=beam, minimum=0, maximum=MAXIMUM)
    assert found.best() == theirs
    assert len({tuple(row) for row in theirs}) == len(LENGTHS)
    assert found.finished.all()


@torch.no_grad()
def test_scores_are_those_of_ctranslate2(trained, tmp_path):
    pytest.importorskip("ctranslate2", reason=WHY)
    translator = copied_transformer.translator(trained, tmp_path)
    source, mask, target = batch()
    ends = torch.full((len(target), 1), EOS)
    labels = torch.cat((target[:, 1:], ends), 1)
    log_probs = trained(source, mask, target)[0].log_softmax(-1).gather(2, labels.unsqueeze(2)).squeeze(2)
    theirs = copied_transformer.score(translator, in_lists(source, mask), target[:, 1:].tolist())
    torch.testing.assert_close(log_probs, torch.tensor(theirs), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("beam", [1, 4])
@torch.no_grad()
def test_ctranslate2s_search_finds_the_same(trained, tmp_path, beam):
    pytest.importorskip("ctranslate2", reason=WHY)
    source, mask, _ = batch(LENGTHS)
    found = search(trained, source, mask, beam)
    translator, sources = copied_transformer.translator(trained, tmp_path), in_lists(source, mask)
    theirs = copied_transformer.translate(translator, sources, beam=beam, minimum=0, maximum=MAXIMUM)
    assert found.best() == theirs
    totals = [sum(row) for row in copied_transformer.score(translator, sources, theirs)]
    torch.testing.assert_close(found.log_probs[:, 0], torch.tensor(totals), atol=1e-5, rtol=1e-5)


VARIANTS = {
    "base": {},
    "one head": {"heads": 1, "key_size": 8, "value_size": 8},
    "narrow keys": {"heads": 4, "key_size": 1, "value_size": 3},
    "one layer": {"layers": 1},
    "unscaled": {"scaled": False},
    "learned positions": {"positions": LearnedPositions(count=16, width=WIDTH)},
    "no positions": {"positions": NoPositions()},
}
variants = pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)


def both(changes):
    ours = transformer(**changes).to(F64).eval()
    return ours, Recomputing(ours)


def assert_same_hypotheses(found, expected):
    assert torch.equal(found.tokens, expected.tokens)
    torch.testing.assert_close(found.log_probs, expected.log_probs, atol=1e-5, rtol=0)
    if found.attention is not None:
        torch.testing.assert_close(found.attention, expected.attention, atol=1e-10, rtol=0)


@variants
def test_searches_with_caches_find_what_recomputing_finds(changes):
    source, mask, _ = batch()
    searches = [
        lambda model, state: greedy_search(model, state, limits(3, 0, 15), attention=True),
        lambda model, state: beam_search(model, state, limits(3, 2, 15), beam=4, n_best=3, attention=True),
        lambda model, state: beam_search(model, state, limits(3, 15, 15), beam=5, normalisation="gnmt"),
    ]
    with torch.no_grad():
        for search in searches:
            found, expected = (search(model, model.start(source, mask)) for model in both(changes))
            assert_same_hypotheses(found, expected)


def test_caches_grow_beyond_what_they_begin_with():
    ours, plain = both({})
    source, mask, _ = batch()
    with torch.no_grad():
        found, expected = (
            beam_search(model, model.start(source, mask), limits(3, 40, 40), beam=4) for model in (ours, plain)
        )
    assert found.tokens.size(2) * 4 > 2 * 64
    assert_same_hypotheses(found, expected)
