"""What evaluation makes of attention: unknown words replaced; and further kinds of BLEU, and brackets of trees."""

import gzip
import json

import numpy as np
import pytest
import torch
from sacrebleu.metrics.bleu import BLEU
from torch import nn

from shared.config import build
from shared.data.tokenizers import UNK
from shared.decoding.protocol import select_beams, select_sources
from shared.errors import ReplicationError
from shared.metrics.translation import bleu_statistics, corpus_bleu
from shared.tasks.translation.corpus import PreparedText, prepare_parallel
from shared.tasks.translation.evaluation import evaluate_translation, lowercased, signatures
from shared.tasks.translation.settings import TranslationRun

TEST = [
    ("rare k1 k2 k3 k0", "Rare K1 K2 K3 K0"),  # in the dictionary, not in the vocabulary
    ("k0 Anna k1 k1 k2", "K0 Anna K1 K1 K2"),  # a name that no text has shown: copied
    ("k3 k2 k1, k0 k3", "K3 K2 K1, K0 K3"),
]


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


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    lines = [f"k{i % 4} k{(i * i + 1) % 4}" for i in range(12)] + ["k0 rare", "k1 rare"]
    train = [(line, line.replace("k", "K").replace("rare", "Rare")) for line in lines]
    return prepare(tmp_path_factory.mktemp("words"), train, TEST)


def prepare(folder, train, test, size=8):
    for split, pairs in {"train": train, "valid": train, "test": test}.items():
        for language, column in zip(("a", "b"), zip(*pairs, strict=True), strict=True):
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in column))
    (folder / "out").mkdir()
    prepare_parallel(config(size=size).corpus, folder, folder / "out")
    return PreparedText.load(folder / "out")


def config(kind="words", size=8, **changes):
    sections = {
        "task": "toy", "model": {}, "seeds": [1],
        "corpus": {"dataset": "toy", "source": "a", "target": "b", "dictionary": kind == "words",
                   "tokenizer": {"kind": kind, "size": size}},
        "training": {"updates": 1, "batch": {"sentences": 2}, "optimizer": {"name": "adam", "learning_rate": 0.1},
                     "schedule": {"name": "constant"}, "validate_every": 1},
        "decoding": {"beam": 2, "replace_unknown": True},
    }  # fmt: skip
    return build(TranslationRun, sections | changes, where="test")


def model(text, **options):
    names = text.source.pieces(range(len(text.source)))
    known = {name: i for i, name in enumerate(text.target.pieces(range(len(text.target))))}
    words = [known.get(name.replace("k", "K"), known.get(name)) for name in names]
    return WordForWord(torch.tensor(words), **options).eval()


def judged(text, config, out):
    metrics = evaluate_translation(model(text), text, config, out)
    with gzip.open(out / "examples.jsonl.gz", "rt", encoding="utf-8") as lines:
        return metrics, [json.loads(line) for line in lines]


def test_unknown_words_are_looked_up_or_copied(prepared, tmp_path):
    assert prepared.source.encode(["rare Anna k1,"]) == [[UNK, UNK, UNK]]
    metrics, examples = judged(prepared, config(), tmp_path)
    assert [e["hypothesis"].count("<unk>") for e in examples] == [1, 1, 1]
    replaced = [e["hypothesis_replaced"] for e in examples]
    assert replaced == ["Rare K1 K2 K3 K0", "K0 Anna K1 K1 K2", "K3 K2 k1, K0 K3"]
    assert metrics["bleu"] < metrics["bleu_replaced"] < 100
    assert np.shape([e["bleu_replaced"] for e in examples]) == (3, 10)


def test_replacement_leaves_the_translation_as_it_is(prepared, tmp_path):
    with_it, examples = judged(prepared, config(), tmp_path / "with")
    without, plain = judged(prepared, config(decoding={"beam": 2}), tmp_path / "without")
    assert without == {name: value for name, value in with_it.items() if name != "bleu_replaced"}
    kept = [{k: v for k, v in e.items() if not k.endswith("_replaced")} for e in examples]
    assert plain == kept


def test_replacement_asks_for_attention(prepared, tmp_path):
    with pytest.raises(ReplicationError, match="needs a model with attention"):
        evaluate_translation(model(prepared, attends=False), prepared, config(), tmp_path)


def test_replacement_asks_for_words():
    with pytest.raises(ReplicationError, match="replace_unknown needs a tokenizer of kind 'words'"):
        config("sentencepiece", size=50)


def test_lowercase_bleu_is_that_of_sacrebleu(prepared, tmp_path):
    metrics, examples = judged(prepared, config(evaluation={"bleu": "13a"}), tmp_path)
    lines = [[example[side] for example in examples] for side in ("hypothesis", "reference")]
    theirs = BLEU(tokenize="13a", lowercase=True)
    assert metrics["bleu_lowercase"] == pytest.approx(theirs.corpus_score(lines[0], [lines[1]]).score)
    assert signatures(config(evaluation={"bleu": "13a"}).evaluation)["bleu_lowercase"] == str(theirs.get_signature())


def test_lowercase_bleu_does_not_ask_for_capitals():
    said, meant = ["ein hund läuft über Gras", "Zwei Kinder"], ["Ein Hund läuft über GRAS .", "zwei kinder spielen"]
    counts = bleu_statistics(lowercased(said), lowercased(meant))
    theirs = BLEU(tokenize="13a", lowercase=True).corpus_score(said, [meant]).score
    assert corpus_bleu(counts.sum(axis=0)) == pytest.approx(theirs)
    assert theirs > corpus_bleu(bleu_statistics(said, meant).sum(axis=0)) + 10


def test_generated_words_have_no_lowercase_bleu(prepared, tmp_path):
    metrics, _ = judged(prepared, config(evaluation={"bleu": "none"}), tmp_path)
    assert "bleu_lowercase" not in metrics | signatures(config(evaluation={"bleu": "none"}).evaluation)


def test_moses_bleu_stands_beside_the_other(prepared, tmp_path):
    evaluation = {"bleu": "13a", "moses": "de"}
    metrics, examples = judged(prepared, config(evaluation=evaluation), tmp_path)
    # The third reference has six words to Moses, the third hypothesis "K3 K2 <unk> K0 K3" five.
    assert [e["bleu_tokenized"][:2] for e in examples] == [[5, 5], [5, 5], [5, 6]]
    assert 0 < metrics["bleu_tokenized"] < 100
    found = signatures(config(evaluation=evaluation).evaluation)
    assert "tok:moses-de" in found["bleu_tokenized"]
    assert "tok:13a" in found["bleu"]
    assert "bleu_tokenized" not in signatures(config().evaluation)


def test_compound_bleu_stands_beside_both(prepared, tmp_path):
    evaluation = {"bleu": "13a", "moses": "de", "compounds": True}
    metrics, examples = judged(prepared, config(evaluation=evaluation), tmp_path)
    names = ("", "_lowercase", "_tokenized", "_compounds")
    kinds = {f"bleu{kind}{of}" for kind in names for of in ("", "_replaced")}
    assert {key for key in examples[0] if key.startswith("bleu")} == kinds
    assert metrics["bleu_compounds"] == metrics["bleu_tokenized"]  # no compound is in the text
    assert "-compounds" in signatures(config(evaluation=evaluation).evaluation)["bleu_compounds"]


def test_compounds_ask_for_a_language():
    with pytest.raises(ReplicationError, match="compounds needs moses"):
        config(evaluation={"compounds": True})


def test_brackets_of_trees_are_scored(tmp_path):
    def words(tree):
        kinds = {"(": "open", ")": "close", "X": "word"}
        return " ".join(kinds[token[0]] + token[-1] for token in tree.split())

    (tmp_path / "text").mkdir()
    trees = ["(S (N X )N (V X )V )S", "(S X (N X )N )S", "(S X )S"]
    text = prepare(tmp_path / "text", [(words(tree), tree) for tree in trees], [
        (words(trees[0]), trees[0]), (words("(S (N X X )N )S"), "(S (N X )N X )S"),
    ], size=20)  # fmt: skip
    names = {name: i for i, name in enumerate(text.target.pieces(range(len(text.target))))}
    sources = text.source.pieces(range(len(text.source)))
    known = {words(name): i for name, i in names.items() if name[0] in "()X"}
    model = WordForWord(torch.tensor([known.get(name, names.get(name)) for name in sources])).eval()
    evaluation = {"bleu": "none", "brackets": True}
    metrics = evaluate_translation(model, text, config(decoding={"beam": 2}, evaluation=evaluation), tmp_path)
    with gzip.open(tmp_path / "examples.jsonl.gz", "rt", encoding="utf-8") as lines:
        examples = [json.loads(line) for line in lines]
    assert [example["brackets"] for example in examples] == [[3, 3, 3], [1, 2, 2]]
    assert {metrics[f"bracket_{kind}"] for kind in ("f1", "precision", "recall")} == {80}


def test_a_language_that_is_no_code_is_refused():
    with pytest.raises(ReplicationError, match=r"evaluation\.moses"):
        config(evaluation={"moses": "German"})
