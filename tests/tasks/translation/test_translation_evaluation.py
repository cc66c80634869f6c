"""What is judged of translations, what is kept of attention, and operations of the batches that training saw."""

from itertools import islice

import numpy as np
import pytest
import torch
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from torch import nn

from replications.bahdanau.replication import REPLICATION
from replications.transformer.figures import SAID
from shared.data.batching import endless_batches
from shared.data.ragged import RaggedArray
from shared.data.tokenizers import EOS, UNK
from shared.decoding.protocol import select_beams, select_sources
from shared.metrics.operations import count_operations
from shared.tasks.examples import write_kept
from shared.tasks.translation.corpus import ParallelText
from shared.tasks.translation.evaluation import SAMPLED, attention_maps, describe, training_operations
from tests.refused import assert_refused
from tests.tasks import in_process
from tests.tasks.in_process import judge, judged, run_config, train, write_columns

TEST = [
    ("rare k1 k2 k3 k0", "Rare K1 K2 K3 K0"),  # in the dictionary, not in the vocabulary
    ("k0 Anna k1 k1 k2", "K0 Anna K1 K1 K2"),  # a name that no text has shown: copied
    ("k3 k2 k1, k0 k3", "K3 K2 K1, K0 K3"),
]
WORDS = (3, 12, 9, 30, 11)  # of test sentences whose attention is kept; targets have one word more


class WordForWord(nn.Module):
    """Translates the i-th word by the i-th step and attends to it, or to nothing at all."""

    def __init__(self, words, attends=True):
        super().__init__()
        self.words = nn.Parameter(words, requires_grad=False)  # (source vocabulary,) target symbols
        self.attends = attends

    def _predict(self, source, steps):
        places = steps.clamp(max=source.size(1) - 1)
        symbols = self.words[source.gather(1, places)]
        log_probs = torch.log_softmax(9.0 * nn.functional.one_hot(symbols, int(self.words.max()) + 1), dim=-1)
        return log_probs, nn.functional.one_hot(places, source.size(1)).float() if self.attends else None

    def forward(self, source, source_mask, target):
        return self._predict(source, torch.arange(target.size(1)).expand_as(target))

    def start(self, source, mask):
        return source, torch.zeros(len(source), 1, dtype=torch.long)

    def step(self, tokens, state):
        source, steps = state
        return *self._predict(source, steps), (source, steps + 1)

    def reorder(self, state, sources, beams):
        return select_sources(state[0], sources), select_beams(state[1], sources, beams)


class Endless(WordForWord):
    """Predicts every symbol sooner than the end symbol, and attends to nothing."""

    def __init__(self, vocabulary):
        super().__init__(torch.arange(vocabulary), attends=False)
        self.logits = nn.Parameter(-torch.arange(float(vocabulary)))
        with torch.no_grad():
            self.logits[EOS] = -1e3

    def _predict(self, source, steps):
        return self.logits.log_softmax(0).expand(*steps.shape, -1).clone(), None


class Headed(nn.Linear):
    """Three layers of two heads; each weight says which layer, head, query and key it is of."""

    def attention_maps(self, source, source_mask, target):
        assert source_mask.all(), "a sentence of its own has no padding"
        assert source.shape[0] == target.shape[0] == 1
        sizes = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
        return {kind: numbered(rows.size(1), columns.size(1)) for kind, (rows, columns) in sizes.items()}


def numbered(rows, columns):
    return torch.arange(3 * 2 * rows * columns).view(3, 1, 2, rows, columns) / 2048


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    lines = [f"k{i % 4} k{(i * i + 1) % 4}" for i in range(12)] + ["k0 rare", "k1 rare"]
    train = [(line, line.replace("k", "K").replace("rare", "Rare")) for line in lines]
    return prepare(tmp_path_factory.mktemp("words") / "text", train, TEST)


def prepare(folder, train, test, size=8):
    for split, pairs in {"train": train, "valid": train, "test": test}.items():
        write_columns(folder, split, **dict(zip("ab", zip(*pairs, strict=True), strict=True)))
    return in_process.prepared("translation", corpus(size=size), folder, folder / "out")[1]


def corpus(size=8):
    return {"source": "a", "target": "b", "dictionary": True, "tokenizer": {"kind": "words", "size": size}}


def config(**changes):
    return run_config("translation", corpus(), **{"decoding": {"beam": 2, "replace_unknown": True}} | changes)


def model(text, **options):
    names = text.source.pieces(range(len(text.source)))
    known = {name: i for i, name in enumerate(text.target.pieces(range(len(text.target))))}
    words = [known.get(name.replace("k", "K"), known.get(name)) for name in names]
    return WordForWord(torch.tensor(words), **options).eval()


def test_unknown_words_are_looked_up_or_copied_and_the_translation_stays(prepared, tmp_path):
    assert prepared.source.encode(["rare Anna k1,"]) == [[UNK, UNK, UNK]]
    metrics, examples = judged(config(), prepared, model(prepared), tmp_path / "with")
    assert [e["hypothesis"].count("<unk>") for e in examples] == [1, 1, 1]
    replaced = [e["hypothesis_replaced"] for e in examples]
    assert replaced == ["Rare K1 K2 K3 K0", "K0 Anna K1 K1 K2", "K3 K2 k1, K0 K3"]
    assert metrics["bleu"] < metrics["bleu_replaced"] < 100
    assert np.shape([e["bleu_replaced"] for e in examples]) == (3, 10)
    without, _ = judged(config(decoding={"beam": 2}), prepared, model(prepared), tmp_path / "without")
    assert without == {name: value for name, value in metrics.items() if name != "bleu_replaced"}


def test_replacement_asks_for_attention(prepared, tmp_path):
    assert_refused("needs a model with attention", judged, config(), prepared, model(prepared, attends=False), tmp_path)


@pytest.mark.parametrize(("limits", "expected"), [
    ({"maximum_ratio": 1.0, "maximum_extra": 50}, [52, 54, 56]),  # the paper's input + 50, end symbols included
    ({"maximum_ratio": 1.5}, [3, 6, 9]),  # of 2, 4 and 6 source symbols
    ({"maximum_ratio": 0.25, "minimum_ratio": 0.0, "maximum_extra": 2}, [2, 3, 3]),
    ({"maximum_ratio": 0.1, "minimum_ratio": 0.0}, [1, 1, 1]),  # never nothing
])  # fmt: skip
def test_the_source_counts_its_end_symbol_and_the_extra_is_added(tmp_path, limits, expected):
    lines = [(line, line) for line in ("a", "a b c", "b c a b c")]
    text, run = prepare(tmp_path / "text", lines, lines), config(decoding={"beam": 2} | limits)
    _, examples = judged(run, text, Endless(len(text.target)), tmp_path)
    assert [len(example["hypothesis"].split()) for example in examples] == expected


def test_lowercase_bleu_is_that_of_sacrebleu(prepared, tmp_path):
    train = [("k0 k1 k2 k3", "K0 K1 K2 K3")] * 3
    text = prepare(tmp_path / "text", train, [("k0 k1 k2 k3", "k0 K1 k2 K3"), ("k3 k2 k1 k0", "K3 K2 K1 K0")])
    run = config(decoding={"beam": 2}, evaluation={"bleu": "13a"})
    metrics, examples = judged(run, text, model(text), tmp_path)
    lines = [[example[side] for example in examples] for side in ("hypothesis", "reference")]
    theirs = BLEU(tokenize="13a", lowercase=True)
    assert metrics["bleu_lowercase"] == pytest.approx(theirs.corpus_score(lines[0], [lines[1]]).score)
    assert metrics["bleu_lowercase"] > metrics["bleu"] + 10
    assert metrics["chrf"] == pytest.approx(CHRF().corpus_score(lines[0], [lines[1]]).score)
    assert metrics["length_ratio"] == sum(len(line.split()) for line in lines[0]) / 8
    assert describe(run)["signatures"]["bleu_lowercase"] == str(theirs.get_signature())
    assert "bleu_lowercase" not in describe(config(evaluation={"bleu": "none"}))["signatures"]  # generated words


def test_bleu_of_moses_words_and_of_compounds_stand_beside_the_other(prepared, tmp_path):
    evaluation = {"bleu": "13a", "moses": "de", "compounds": True}
    metrics, examples = judged(config(evaluation=evaluation), prepared, model(prepared), tmp_path)
    # The third reference has six words to Moses, the third hypothesis "K3 K2 <unk> K0 K3" five.
    assert [e["bleu_tokenized"][:2] for e in examples] == [[5, 5], [5, 5], [5, 6]]
    assert 0 < metrics["bleu_tokenized"] < 100
    assert metrics["bleu_compounds"] == metrics["bleu_tokenized"]  # no compound is in the text
    found = describe(config(evaluation=evaluation))["signatures"]
    said = {"bleu": "tok:13a", "bleu_tokenized": "tok:moses-de", "bleu_compounds": "-compounds"}
    assert all(part in found[name] for name, part in said.items())


def test_brackets_of_trees_are_scored(tmp_path):
    def words(tree):
        kinds = {"(": "open", ")": "close", "X": "word"}
        return " ".join(kinds[token[0]] + token[-1] for token in tree.split())

    trees = ["(S (N X )N (V X )V )S", "(S X (N X )N )S", "(S X )S"]
    text = prepare(tmp_path / "text", [(words(tree), tree) for tree in trees], [
        (words(trees[0]), trees[0]), (words("(S (N X X )N )S"), "(S (N X )N X )S"),
    ], size=20)  # fmt: skip
    names = {name: i for i, name in enumerate(text.target.pieces(range(len(text.target))))}
    sources = text.source.pieces(range(len(text.source)))
    known = {words(name): i for name, i in names.items() if name[0] in "()X"}
    parser = WordForWord(torch.tensor([known.get(name, names.get(name)) for name in sources])).eval()
    run = config(decoding={"beam": 2}, evaluation={"bleu": "none", "brackets": True})
    metrics, examples = judged(run, text, parser, tmp_path)
    assert [example["brackets"] for example in examples] == [[3, 3, 3], [1, 2, 2]]
    assert {metrics[f"bracket_{kind}"] for kind in ("f1", "precision", "recall")} == {80}


def test_of_two_sentences_of_middling_length_every_head_is_kept(tmp_path):
    """Those with 10 and 12 target words are nearest to 10; layers come before heads, and queries before keys."""
    lines = [(" ".join("ab"[k % 2] for k in range(n)), " ".join(["C"] * (n + 1))) for n in WORDS]
    text, path = prepare(tmp_path / "text", [("a b c", "A B C")], lines), tmp_path / "heads.npz"
    assert attention_maps(nn.Linear(1, 1), text, text.split("test")) == []  # of a model that cannot tell
    write_kept(path, attention_maps(Headed(1, 1), text, text.split("test")))
    with np.load(path) as arrays:
        assert [len(arrays[f"source_{i}"]) for i in (0, 1)] == [9 + 1, 11 + 1]
        assert sorted(arrays) == sorted(f"{name}_{i}" for name in ("source", "target", *SAID) for i in (0, 1))
        s, t = 10, 11
        assert list(arrays["source_0"]) == [*"ababababa", "</s>"]
        for kind, shape in {"encoder": (s, s), "decoder": (t, t), "cross": (t, s)}.items():
            weights = arrays[f"{kind}_0"]
            assert weights.dtype == np.float16
            assert np.array_equal(weights, numbered(*shape)[:, 0].numpy().astype(np.float16))


class Bigrams(nn.Module):
    """B·T·D·V multiply-adds."""

    def __init__(self):
        super().__init__()
        self.embedding, self.output = nn.Embedding(50, 8), nn.Linear(8, 50)

    def forward(self, source, source_mask, target):
        return self.output(self.embedding(target)), None


def text(lengths):
    lines = RaggedArray.pack([[4] * length for length in lengths])
    return ParallelText(lines, lines, lines.lengths)


def order(of):
    return endless_batches((of.target.lengths + 1, of.source.lengths + 1), pool=4, seed=1, sentences=5)


def test_an_ensemble_has_cost_what_its_members_have():
    of = text(range(1, 31))
    one, two = (training_operations(Bigrams(), of, order(of), updates=each, accumulate=1) for each in ([4], [4, 2]))
    assert two["training_operations"] == pytest.approx(1.5 * one["training_operations"], rel=1e-12)


def test_of_many_some_are_counted_from_the_shortest_to_the_longest():
    seen = []

    class Spy(Bigrams):
        def forward(self, source, source_mask, target):
            seen.append(target.size(1) - 1)
            return super().forward(source, source_mask, target)

    of = text(range(200))
    each = (np.array([i]) for i in np.random.default_rng(1).permutation(200))
    found = training_operations(Spy(), of, each, updates=[200], accumulate=1)
    assert len(seen) == SAMPLED
    assert 0 < seen[0] < 200 / SAMPLED
    assert max(np.diff(seen)) - min(np.diff(seen)) <= 1
    assert 200 - 200 / SAMPLED < seen[-1] < 199
    assert found["training_operations"] == pytest.approx(6 * 200 * 100.5 * 8 * 50)
    assert found["forward_multiply_adds_per_label"] == pytest.approx(8 * 50)


@pytest.mark.parametrize("updates", [90, 97, 104])
def test_few_of_many_are_enough_though_their_lengths_vary(updates):
    """Costs that grow faster than the length, and pools whose batches are of like sentences each."""

    class Pairs(nn.Module):
        def forward(self, source, source_mask, target):
            x, y = (torch.ones(1, symbols.size(1), 4) for symbols in (source, target))
            return y @ torch.ones(4, 6), y @ x.mT

    of = text([4 + i * i % 23 for i in range(400)])
    batches = [of.batch(indices) for indices in islice(order(of), updates)]
    shapes = [(len(batch.target), batch.source.size(1), batch.target.size(1)) for batch in batches]
    forward = sum(rows * (4 * 6 * t + 4 * s * t) for rows, s, t in shapes)
    found = training_operations(Pairs(), of, order(of), updates=[updates], accumulate=1)
    assert found["training_operations"] == pytest.approx(6 * forward, rel=0.02)


def test_evaluation_counts_the_batches_of_training(tmp_path):
    corpus = {"source": "a", "target": "b", "tokenizer": {"kind": "words", "size": 20}}
    config = run_config(
        "translation", corpus, seeds=[7], evaluation={"operations": True},
        model={"kind": "rnnsearch", "embedding_size": 4, "hidden_size": 6, "alignment_size": 5, "maxout_size": 4},
        training={"updates": 3, "batch": {"tokens": 12}, "accumulate": 2, "max_words": 6},
    )  # fmt: skip
    for split in ("train", "valid", "test"):
        for side, length in (("a", 2), ("b", 3)):
            lines = (" ".join(f"w{i + j}" for j in range(1 + (i * length) % 7)) for i in range(12))
            write_columns(tmp_path, split, **{side: lines})
    _, text = in_process.prepared("translation", corpus, tmp_path, tmp_path / "out")
    train(REPLICATION, config, text.folder, tmp_path)
    (metrics,) = judge(REPLICATION, config, text.folder, tmp_path)
    model, pairs = REPLICATION.model(config, text.sizes), text.split("train").up_to(6)
    lengths, forward = (pairs.target.lengths + 1, pairs.source.lengths + 1), 0
    for batch in map(pairs.batch, islice(endless_batches(lengths, pool=400, seed=7, tokens=12), 3 * 2)):
        forward += count_operations(model, batch.source, batch.source_mask, batch.target)
    assert metrics["training_operations"] == pytest.approx(6 * forward, rel=1e-12)
