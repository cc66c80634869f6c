"""Statistical aligners as variants: the stages of a network, judged by their links."""

import random
import shutil
import sys

import pytest

from replications.luong.aligners import word_pairs
from replications.luong.fast_align import FastAlign
from replications.luong.replication import REPLICATION
from shared.tasks.translation.corpus import PreparedText
from tests.refused import assert_refused
from tests.tasks import in_process
from tests.tasks.in_process import examples_of, judge, train, write_columns

ALIGNER = REPLICATION.runners["aligner"]
LEXICON = {f"s{i}": f"t{i * 7 % 20}" for i in range(20)}
CORPUS = {
    "source": "a", "target": "b", "tokenizer": {"kind": "words", "size": 24}, "test": ["test", "test_other"],
}  # fmt: skip


def corpus(folder, tokenizer=None):
    """Write sentences whose words swap places in pairs, with their links, and encode them into ``folder/out``."""
    choose = random.Random(2)
    for split, count in {"train": 300, "valid": 20, "test": 30, "test_other": 10}.items():
        rows = []
        for _ in range(count):
            source = choose.sample(sorted(LEXICON), choose.choice((4, 6)))
            order = [i ^ 1 for i in range(len(source))]
            target = [LEXICON[source[i]] for i in order]
            rows.append((" ".join(source), " ".join(target), " ".join(f"{i}-{t}" for t, i in enumerate(order))))
        names = ("a", "b", "align") if split == "test" else ("a", "b")
        write_columns(folder, split, **dict(zip(names, zip(*rows, strict=True), strict=False)))
    settings = CORPUS | ({"tokenizer": tokenizer} if tokenizer else {})
    in_process.prepared("translation", settings, folder, folder / "out")
    return folder / "out"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return corpus(tmp_path_factory.mktemp("toy"))


def config(model, corpus=CORPUS, **sections):
    return in_process.run_config("translation", corpus, model=model, seeds=[3], **sections)


def test_model_1_finds_a_permuted_lexicon_by_either_checkpoint(prepared, tmp_path):
    best, last = (config({"aligner": "ibm1"}, evaluation={"checkpoint": name}) for name in ("best", "last"))
    ((record, parameters),) = train(REPLICATION, best, prepared, tmp_path)
    expected = {"alignment_accuracy": 1.0, "alignment_precision": 1.0, "alignment_recall": 1.0, "aer": 0.0}
    assert judge(REPLICATION, best, prepared, tmp_path) == judge(REPLICATION, last, prepared, tmp_path) == [expected]
    assert parameters == 21 * 20  # every word and the empty one has stood with every other
    assert record.updates == record.best_update == 5
    assert 0 < record.best_valid_loss < 3
    examples = examples_of(tmp_path, 3)
    assert [e["id"] for e in examples[:31:30]] == ["test-0", "test_other-0"]
    assert examples[0]["alignment"]["offsets"] == {"0": examples[0]["reference_length"]}
    assert "alignment" not in examples[30]


def test_fast_align_finds_it_too(prepared, tmp_path):
    pytest.importorskip("systran_align")
    aligner = config({"aligner": "fast_align"})
    ((record, _),) = train(REPLICATION, aligner, prepared, tmp_path)
    first, again = (judge(REPLICATION, aligner, prepared, tmp_path) for _ in range(2))
    assert again == first
    assert first[0]["aer"] < 0.02
    assert record.best_valid_loss > 0


def test_fast_align_bears_what_its_input_does_not():
    pytest.importorskip("systran_align")
    aligner = FastAlign.train([(["a", "|||"], ["A", "x|||y"]), ([], ["B"]), (["b"], []), (["b"], ["B"])] * 9)
    assert aligner.links(["b"], ["B"]).tolist() == [[0, 0]]
    assert aligner.links(["a", "|||"], ["x|||y"]).shape[1] == 2
    assert aligner.links([], ["B"]).shape == (0, 2)


def test_fast_align_learns_the_same_again():
    pytest.importorskip("systran_align")
    choose = random.Random(3)
    lines = [choose.choices(sorted(LEXICON), k=9) for _ in range(400)]
    pairs = [(line, [LEXICON[word] for word in line[::-1]]) for line in lines]
    first, second = (FastAlign.train(pairs).state() for _ in range(2))
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)


def test_fast_align_that_fails_says_so():
    pytest.importorskip("systran_align")
    assert_refused("fast_align failed: ValueError", FastAlign.train, [(["a"], ["A"])], iterations="many")


def test_pieces_are_put_together_to_the_words_that_gold_links_number(tmp_path):
    prepared = PreparedText(corpus(tmp_path, {"kind": "sentencepiece", "size": 20}))
    assert prepared.target.unit == "piece"
    pairs = list(word_pairs(prepared, prepared.split("test")))
    sources, references = prepared.lines("test")
    words = [tuple([word.strip("▁") for word in side] for side in pair) for pair in pairs]
    assert words == [(s.split(), r.split()) for s, r in zip(sources, references, strict=True)]


def test_an_aligner_costs_no_training_and_scores_no_translations():
    assert ALIGNER.cost(config({"aligner": "ibm1"}), None) is None
    assert ALIGNER.descriptions(config({"aligner": "ibm1"})) == {"signatures": {}, "token": "word"}


def test_without_gold_alignments_there_is_nothing_to_judge(prepared, tmp_path):
    one, without = config({"aligner": "ibm1"}, corpus=CORPUS | {"test": ["test"]}), tmp_path / "without"
    shutil.copytree(prepared, without)
    (without / "test" / "align.txt").unlink()
    train(REPLICATION, one, without, tmp_path)
    assert_refused("no gold alignments", judge, REPLICATION, one, without, tmp_path)


def test_where_the_package_is_missing_fast_align_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "systran_align", None)
    assert "systran-align" in ALIGNER.cannot_run(config({"aligner": "fast_align"}))
    assert ALIGNER.cannot_run(config({"aligner": "ibm1"})) is None
