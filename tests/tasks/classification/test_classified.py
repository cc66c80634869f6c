"""What a classifier reads, and what its evaluation writes down of every text, against texts read one by one."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from shared.data.ragged import RaggedArray
from shared.data.tokenizers import PAD, UNK
from shared.metrics.attention_rows import focus, redundancy
from shared.tasks.classification.corpus import Classified, ClassifiedText
from tests.refused import assert_refused
from tests.tasks import in_process
from tests.tasks.in_process import judged, run_config, write_columns

symbols = st.lists(st.integers(4, 90), min_size=1, max_size=6)


@st.composite
def rows(draw):
    """Texts of one language or pairs of two, each with a class."""
    sides = draw(st.integers(1, 2))
    return draw(st.lists(st.tuples(st.tuples(*[symbols] * sides), st.integers(0, 4)), min_size=1, max_size=8))


def text_of(rows):
    sides = zip(*(texts for texts, _ in rows), strict=True)
    return ClassifiedText(tuple(map(RaggedArray.pack, sides)), np.array([label for _, label in rows]))


@given(rows(), st.randoms())
def test_a_batch_is_what_padding_row_by_row_gives(rows, random):
    order = random.sample(range(len(rows)), random.randint(1, len(rows)))
    text = text_of(rows)
    batch = text.batch(np.array(order))
    for side, (padded, mask) in enumerate(zip(batch.texts, batch.masks, strict=True)):
        chosen = [rows[i][0][side] for i in order]
        width = max(map(len, chosen))
        assert padded.tolist() == [line + [PAD] * (width - len(line)) for line in chosen]
        assert [row[kept].tolist() for row, kept in zip(padded, mask, strict=True)] == chosen
        assert [text.lengths[side][i] for i in order] == [len(line) for line in chosen]
    assert padded.dtype == batch.labels.dtype == torch.int64
    assert batch.labels.tolist() == [rows[i][1] for i in order]
    assert batch.tokens == sum(len(line) for i in order for line in rows[i][0])


@pytest.fixture
def dataset(tmp_path):
    folder = tmp_path / "made"
    write_columns(folder, "train", text=[f"w{i % 7} w{i % 5} the" for i in range(30)], label=["b", "a", "c"] * 10)
    write_columns(folder, "valid", text=["w1 w2", "w3"], label=["a", "c"])
    write_columns(folder, "test", text=["The new w1", "", "w2 w3 w4 w5"], label=["a", "b", "a"])
    return folder


def prepare(dataset, **changes):
    corpus = {"dataset": "made", "tokenizer": {"kind": "words", "size": 50}} | changes
    return in_process.prepared("classification", corpus, dataset, dataset.with_name("out"))


def test_preparing_learns_from_training_texts_alone_and_keeps_the_others(dataset):
    summary, task = prepare(dataset)
    assert task.classes == ("a", "b", "c")
    assert task.split("train").labels.tolist() == [1, 0, 2] * 10
    assert task.split("test").labels.tolist() == [0, 1, 0]
    assert task.lines("test") == (["The new w1", "", "w2 w3 w4 w5"],)
    assert task.lines("valid") == (["w1 w2", "w3"],)
    assert task.evidence("test") is None
    first, empty, last = (task.split("test").texts[0][i].tolist() for i in range(3))
    assert first == [UNK, UNK, task.tokenizer.encode(["w1"])[0][0]]
    assert empty == [UNK]
    assert task.tokenizer.decode([last]) == ["w2 w3 w4 w5"]
    assert summary["test"] == {
        "texts": 3, "symbols": 8, "unknown_share": 3 / 8, "cut_share": 0.0, "classes": {"a": 2, "b": 1, "c": 0},
    }  # fmt: skip


def test_texts_can_be_lower_cased_and_cut_in_every_split(dataset):
    summary, task = prepare(dataset, lower=True, max_tokens=2)
    assert {task.split(name).texts[0].lengths.max() for name in ("train", "valid", "test")} == {2}
    assert task.lines("test")[0][0] == "the new w1"
    assert task.split("test").texts[0][0].tolist() == [*task.tokenizer.encode(["the"])[0], UNK]
    assert (summary["train"]["cut_share"], summary["valid"]["cut_share"]) == (1.0, 0.0)
    assert summary["test"]["cut_share"] == pytest.approx(2 / 3)


def test_fewer_training_texts_are_a_fixed_choice_in_their_order(dataset):
    write_columns(dataset, "train", text=[f"only{i}" for i in range(30)])
    _, task = prepare(dataset, train_texts=12)
    train = task.split("train")
    (words,) = task.tokenizer.decode([train.texts[0].flat])
    chosen = [int(word.removeprefix("only")) for word in words.split()]
    assert chosen == sorted({*chosen}) != list(range(12))
    assert train.labels.tolist() == [(1, 0, 2)[i % 3] for i in chosen]
    assert len(task.tokenizer) == 4 + 12
    assert np.array_equal(prepare(dataset, train_texts=12)[1].split("train").texts[0].flat, train.texts[0].flat)
    assert len(prepare(dataset, train_texts=99)[1].split("train")) == 30


def test_a_class_that_the_choice_of_training_texts_misses_is_still_a_class(dataset):
    assert sorted(prepare(dataset, train_texts=1)[0]["train"]["classes"].values()) == [0, 0, 1]


def test_the_two_texts_of_a_pair_share_a_tokenizer(dataset):
    write_columns(dataset, "train", hypothesis=[f"v{i % 3}" for i in range(30)])
    write_columns(dataset, "valid", hypothesis=["v1", "w1 v2"])
    write_columns(dataset, "test", hypothesis=["v0", "w6", ""])
    summary, task = prepare(dataset, texts=["text", "hypothesis"], max_tokens=3)
    assert task.lines("valid") == (["w1 w2", "w3"], ["v1", "w1 v2"])
    first, second = task.split("valid").texts
    assert second[1].tolist() == task.tokenizer.encode(["w1 v2"])[0]
    assert first[0][0] == second[1][0]
    assert summary["test"]["symbols"] == 3 + 1 + 3 + 1 + 1 + 1
    assert summary["test"]["cut_share"] == pytest.approx(1 / 3)
    assert summary["vocabulary"] == 4 + 7 + 1 + 3


def test_evidence_beyond_the_cut_is_dropped(dataset):
    for split, lines in {"train": ["0"] * 30, "valid": ["1 0", "0"], "test": ["2", "", "3 1 1 0"]}.items():
        write_columns(dataset, split, why=lines)
    assert prepare(dataset, evidence="why")[1].evidence("test") == [[2], [], [0, 1, 3]]
    _, task = prepare(dataset, evidence="why", max_tokens=2)
    assert task.evidence("test") == [[], [], [0, 1]]


@pytest.mark.parametrize(("changes", "files", "message"), [
    *(
        ({"evidence": "why"},
         {"train": {"why": ["0"] * 30}, "valid": {"why": ["", ""]}, "test": {"why": [wrong, "", ""]}},
         rf"test\.why, line 1: '{wrong}' must be .* of 3 words")
        for wrong in ("3", "-1", "1.0", "w1", "0 7")
    ),
    ({}, {"test": {"text": ["w1", "w2"], "label": ["a", "d"]}},
     r"test\.label, line 2: the class 'd' is none of a, b, c"),
    ({"classes": ["a", "b"]}, {}, r"train\.label, line 3: the class 'c' is none of a, b"),
    ({}, {"train": {"label": ["a"] * 30}}, "do not have two classes to choose from; check that 'label'"),
    ({"label": "stars"}, {}, r"train\.stars does not exist; run the fetch stage"),
    ({"test": ["test", "test_long"]}, {}, r"test_long\.text does not exist"),
    ({}, {"valid": {"label": ["a"]}}, r"split 'valid' in .* differ in length; fetch made again"),
    ({}, {"valid": {"text": [], "label": []}}, "no texts are left in split 'valid'"),
])  # fmt: skip
def test_what_cannot_be_prepared_is_named(dataset, changes, files, message):
    for split, columns in files.items():
        write_columns(dataset, split, **columns)
    assert_refused(message, prepare, dataset, **changes)


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


def prepare_texts(folder, *, texts=("text",), test=("test",), max_tokens=None, **columns):
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
    return prepare_texts(tmp_path_factory.mktemp("texts") / "corpus")


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
        prepared = prepare_texts(tmp_path / name, text=texts[:count], label=labels[:count])
        found.append([e["deletion"]["random"] for e in judge(prepared, tmp_path / f"{name}-out")[1]])
    assert found[0] == found[1][:6]


def test_attention_is_compared_with_the_evidence(tmp_path):
    texts = ["w1 w2 w3 w4 w5", "w6 w7", "w1 w1 w2", "w8 w3 w4 w5 w6 w7"]
    prepared = prepare_texts(
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
    sides = {"premise": ["w1 w2 w3 w4 w5 w6", "w1 w2"], "hypothesis": ["w7 w8 w0 w1", "w3"]}
    prepared = prepare_texts(tmp_path / "corpus", texts=tuple(sides), **sides, label=["no", "yes"])
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
    prepared = prepare_texts(tmp_path / "corpus", text=texts, label=["no"] * 30, evidence=["0"] * 30)
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
