"""What a classifier's evaluation writes down of every text, against the same texts read one by one."""

import numpy as np
import pytest
import torch
from torch import nn

from shared.metrics.attention_rows import focus, redundancy
from shared.tasks.classification.corpus import Classified
from tests.tasks import in_process
from tests.tasks.in_process import judged, run_config, write_columns

WORDS = [f"w{i}" for i in range(9)]
ROWS = 3


class WordScores(nn.Module):
    """Weighs each word by what it is, in every row otherwise, and adds up what the words say of the classes.

    With ``seed`` another attention over the same words, but not another answer.
    """

    def __init__(self, vocabulary, classes, rows=ROWS, seed=0):
        super().__init__()
        generator = torch.Generator().manual_seed(7)
        self.votes = nn.Parameter(torch.randn(vocabulary, classes, generator=generator))
        self.scores = nn.Parameter(3 * torch.randn(vocabulary, rows, generator=generator.manual_seed(seed)))
        self.rows = rows

    def forward(self, texts, masks):
        assert all((text[~mask] == 0).all() for text, mask in zip(texts, masks, strict=True))
        logits = sum((self.votes[x] * mask.unsqueeze(-1)).sum(1) for x, mask in zip(texts, masks, strict=True))
        scores = (self.scores[x].where(mask.unsqueeze(-1), -torch.inf) for x, mask in zip(texts, masks, strict=True))
        return Classified(logits, tuple(of.softmax(1).transpose(1, 2) for of in scores) if self.rows else ())


def sentences(seed, count, shortest=1, longest=20):
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(WORDS, size=n)) for n in generator.integers(shortest, longest, count)]


def prepare(folder, *, texts=("text",), test=("test",), max_tokens=None, **columns):
    """Prepare random texts; ``columns`` are lines of test splits, by language, in the place of the random ones."""
    evidence = "evidence" if "evidence" in columns else None
    for number, split in enumerate(("train", "valid", *test)):
        lines = {text: sentences((number, side), 40) for side, text in enumerate(texts)}
        lines["label"] = [("no", "perhaps", "yes")[i % 3] for i in range(40)]
        if evidence:
            lines["evidence"] = [""] * 40
        if split in test:
            lines |= columns
        write_columns(folder, split, **lines)
    corpus = {"texts": list(texts), "test": list(test), "evidence": evidence, "max_tokens": max_tokens}
    corpus["tokenizer"] = {"kind": "words", "size": 50}
    return in_process.prepared("classification", corpus, folder, folder / "out")[1], corpus


def judge(prepared, out, *, evaluation=None, **options):
    """Metrics, examples and the model that was judged."""
    text, corpus = prepared
    model = WordScores(len(text.tokenizer), len(text.classes), **options).eval()
    return *judged(run_config("classification", corpus, evaluation=evaluation or {}), text, model, out), model


def alone(model, *texts):
    """What the model says of one example, by its symbols."""
    tensors = tuple(torch.from_numpy(np.array(text, dtype=np.int64)).unsqueeze(0) for text in texts)
    with torch.no_grad():
        return model(tensors, tuple(torch.ones_like(text, dtype=torch.bool) for text in tensors))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("texts") / "corpus")


def test_every_text_has_the_record_it_has_alone(prepared, tmp_path):
    text, _ = prepared
    metrics, examples, model = judge(prepared, tmp_path)
    encoded = text.split("test")
    assert [e["id"] for e in examples] == [f"test-{i}" for i in range(40)]
    for i, example in enumerate(examples):
        answer = alone(model, encoded.texts[0][i])
        logits, label = answer.logits[0].double(), int(encoded.labels[i])
        predicted = text.classes[int(logits.argmax())]
        assert (example["label"], example["predicted"]) == (text.classes[label], predicted)
        assert example["correct"] == (predicted == example["label"])
        assert example["cross_entropy"] == pytest.approx(-logits.log_softmax(0)[label].item(), abs=1e-6)
        assert example["length"] == len(text.lines("test")[0][i].split())
        rows = {name: of(answer.attention[0]).item() for name, of in (("redundancy", redundancy), ("focus", focus))}
        assert {name: example["rows"][name] for name in rows} == pytest.approx(rows, abs=1e-6)
    assert metrics["accuracy"] == pytest.approx(100 * np.mean([e["correct"] for e in examples]))
    assert metrics.keys() >= {"cross_entropy", "redundancy", "focus", "penalty", "deletion_effect"}
    assert "evidence_mass" not in metrics
    assert examples[0].keys().isdisjoint({"evidence"})


def test_a_model_that_does_not_attend_has_answers_only(prepared, tmp_path):
    metrics, examples, _ = judge(prepared, tmp_path, rows=0)
    assert metrics.keys() == {"accuracy", "cross_entropy"}
    assert examples[0].keys() == {"id", "split", "length", "label", "predicted", "correct", "cross_entropy"}
    assert [path.name for path in tmp_path.iterdir()] == ["examples.jsonl.gz"]


def test_the_most_important_words_are_taken_out(prepared, tmp_path):
    text, _ = prepared
    _, examples, model = judge(prepared, tmp_path, evaluation={"deletion": 0.3})
    encoded = text.split("test")
    changed = 0
    for i, example in enumerate(examples):
        symbols = encoded.texts[0][i].tolist()
        count = max(1, round(0.3 * len(symbols)))
        if count >= len(symbols):
            assert "deletion" not in example
            continue
        weights = alone(model, symbols).attention[0][0].double().mean(0).tolist()
        removed = sorted(range(len(symbols)), key=lambda place: -weights[place])[:count]
        left = [symbol for place, symbol in enumerate(symbols) if place not in removed]
        predicted = text.classes[int(alone(model, left).logits.argmax())]
        assert example["deletion"]["top"] == int(predicted == example["label"])
        changed += predicted != example["predicted"]
        assert example["deletion"]["random"] * 3 == pytest.approx(round(example["deletion"]["random"] * 3))
    assert changed > 3


def test_random_words_are_the_same_for_every_variant(prepared, tmp_path):
    examples = [judge(prepared, tmp_path / str(seed), seed=seed)[1] for seed in (0, 1)]
    tested = [[e["deletion"] for e in of if "deletion" in e] for of in examples]
    assert [e["random"] for e in tested[0]] == [e["random"] for e in tested[1]]
    assert [e["top"] for e in tested[0]] != [e["top"] for e in tested[1]]
    assert len({e["random"] for e in tested[0]}) > 2


def test_random_words_do_not_depend_on_the_other_texts(tmp_path):
    texts = sentences(5, 12, shortest=8)
    labels = [("no", "perhaps", "yes")[i % 3] for i in range(12)]
    found = []
    for name, count in (("few", 6), ("many", 12)):
        prepared = prepare(tmp_path / name, text=texts[:count], label=labels[:count])
        found.append([e["deletion"]["random"] for e in judge(prepared, tmp_path / f"{name}-out")[1]])
    assert found[0] == found[1][:6]


def test_attention_is_compared_with_the_evidence(tmp_path):
    texts = ["w1 w2 w3 w4 w5", "w6 w7", "w1 w1 w2", "w8 w3 w4 w5 w6 w7"]
    prepared = prepare(
        tmp_path / "corpus", max_tokens=5, text=texts, label=["no", "yes", "no", "yes"],
        evidence=["0 3", "", "1", "5"],
    )  # fmt: skip
    metrics, examples, model = judge(prepared, tmp_path)
    encoded = prepared[0].split("test")
    for i, gold in ((0, {0, 3}), (2, {1})):
        weights = alone(model, encoded.texts[0][i]).attention[0][0].double().mean(0).tolist()
        best = sorted(range(len(weights)), key=lambda place: -weights[place])[: len(gold)]
        expected = {"mass": sum(weights[place] for place in gold), "found": len(gold & set(best)),
                    "words": len(gold), "length": len(weights)}  # fmt: skip
        assert examples[i]["evidence"] == pytest.approx(expected, abs=1e-6)
    assert ["evidence" in example for example in examples] == [True, False, True, False]  # the last is cut off
    assert metrics["evidence_chance"] == pytest.approx((2 / 5 + 1 / 3) / 2)


def test_a_pair_is_judged_as_one(tmp_path):
    prepared = prepare(tmp_path / "corpus", texts=("premise", "hypothesis"), premise=["w1 w2 w3 w4 w5 w6", "w1 w2"],
                       hypothesis=["w7 w8 w0 w1", "w3"], label=["no", "yes"])  # fmt: skip
    _, examples, model = judge(prepared, tmp_path, evaluation={"deletion": 0.2})
    encoded = prepared[0].split("test")
    first, second = (text[0].tolist() for text in encoded.texts)
    answer = alone(model, first, second)
    assert [example["length"] for example in examples] == [10, 3]
    assert examples[0]["rows"]["focus"] == pytest.approx(np.mean([focus(a).item() for a in answer.attention]))
    weights = [w for a in answer.attention for w in a[0].double().mean(0).tolist()]
    removed = sorted(range(10), key=lambda place: -weights[place])[:2]
    left = [symbol for place, symbol in enumerate(first + second) if place not in removed]
    split = sum(place not in removed for place in range(6))
    predicted = prepared[0].classes[int(alone(model, left[:split], left[split:]).logits.argmax())]
    assert examples[0]["deletion"]["top"] == int(predicted == "no")
    assert "deletion" not in examples[1]  # the second text might have lost its only word
    with np.load(tmp_path / "attention.npz") as arrays:
        assert [" ".join(arrays[f"words_{i}"]) for i in (0, 1)] == ["w1 w2 w3 w4 w5 w6", "w7 w8 w0 w1"]
        assert [arrays[f"weights_{i}"].shape for i in (0, 1)] == [(ROWS, 6), (ROWS, 4)]
        assert {str(arrays[f"label_{i}"]) for i in (0, 1)} == {"no"}
        assert "words_2" not in arrays


def test_texts_of_middling_length_are_kept_for_figures(tmp_path):
    texts = ["w1 " * n + "unheard" for n in range(30)]
    prepared = prepare(tmp_path / "corpus", text=texts, label=["no"] * 30, evidence=["0"] * 30)
    _, examples, model = judge(prepared, tmp_path, evaluation={"heatmaps": 3, "longest_shown": 15})
    with np.load(tmp_path / "attention.npz") as arrays:
        words = [arrays[f"words_{i}"].tolist() for i in range(3)]
        assert [len(text) for text in words] == [6, 10, 15]
        for i, text in enumerate(words):
            assert text == texts[len(text) - 1].split()
            answer = alone(model, prepared[0].split("test").texts[0][len(text) - 1])
            np.testing.assert_allclose(arrays[f"weights_{i}"], answer.attention[0][0], rtol=1e-5)
            example = examples[len(text) - 1]
            assert (str(arrays[f"label_{i}"]), str(arrays[f"predicted_{i}"])) == ("no", example["predicted"])
            assert arrays[f"evidence_{i}"].tolist() == [0]
        assert "words_3" not in arrays
