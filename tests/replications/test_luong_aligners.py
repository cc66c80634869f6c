"""Statistical aligners as variants: the stages of a network, judged by their links."""

import gzip
import json
import random
import shutil
import sys

import pytest
from pydantic import Field

from replications.luong.aligners import Aligning, word_pairs
from replications.luong.fast_align import FastAlign
from replications.luong.settings import AlignerConfig
from shared.config import Strict
from shared.errors import ReplicationError
from shared.tasks.settings import check_model
from shared.tasks.translation.corpus import PreparedText
from tests.tasks import in_process
from tests.tasks.in_process import judge, paper, train


class NetworkConfig(Strict):
    size: int = Field(ge=1)


ALIGNER = Aligning()
REPLICATION = paper(
    "translation", NetworkConfig, lambda config, source, target: None, routes={"aligner": AlignerConfig},
    runners={"aligner": ALIGNER},
)  # fmt: skip
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
        for name, column in zip(names, zip(*rows, strict=True), strict=False):
            (folder / f"{split}.{name}").write_text("".join(f"{line}\n" for line in column))
    settings = CORPUS | ({"tokenizer": tokenizer} if tokenizer else {})
    in_process.prepared("translation", settings, folder, folder / "out")
    return folder / "out"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return corpus(tmp_path_factory.mktemp("toy"))


def config(model, corpus=CORPUS, **sections):
    return in_process.run_config("translation", corpus, model=model, seeds=[3], **sections)


def run(model, prepared, folder):
    """Train and judge one seed."""
    record, parameters = ALIGNER.train(
        config(model), prepared=prepared, folder=folder, seed=1, fingerprint="", label="toy"
    )
    metrics = ALIGNER.evaluate(config(model), prepared=prepared, trained=[folder], out=folder / "out")
    with gzip.open(folder / "out" / "examples.jsonl.gz", "rt") as lines:
        return record, parameters, metrics, [json.loads(line) for line in lines]


def test_model_1_finds_a_permuted_lexicon(prepared, tmp_path):
    record, parameters, metrics, examples = run({"aligner": "ibm1"}, prepared, tmp_path)
    assert metrics == {
        "alignment_accuracy": 1.0, "alignment_precision": 1.0, "alignment_recall": 1.0, "aer": 0.0,
    }  # fmt: skip
    assert parameters == 21 * 20  # every word and the empty one has stood with every other
    assert record.updates == record.best_update == 5
    assert 0 < record.best_valid_loss < 3
    assert [e["id"] for e in examples[:31:30]] == ["test-0", "test_other-0"]
    assert examples[0].keys() == {
        "id", "split", "source", "reference", "source_length", "reference_length", "alignment",
    }  # fmt: skip
    assert examples[0]["alignment"]["offsets"] == {"0": examples[0]["reference_length"]}
    assert "alignment" not in examples[30]


def test_fast_align_finds_it_too(prepared, tmp_path):
    pytest.importorskip("systran_align")
    record, _, metrics, _ = run({"aligner": "fast_align"}, prepared, tmp_path)
    assert metrics["aer"] < 0.02
    assert record.best_valid_loss > 0
    again = ALIGNER.evaluate(
        config({"aligner": "fast_align"}), prepared=prepared, trained=[tmp_path], out=tmp_path / "again"
    )
    assert again == metrics


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
    assert {name: table.tobytes() for name, table in first.items()} == {
        name: table.tobytes() for name, table in second.items()
    }


def test_fast_align_that_fails_says_so():
    pytest.importorskip("systran_align")
    with pytest.raises(ReplicationError, match="fast_align failed: ValueError"):
        FastAlign.train([(["a"], ["A"])], iterations="many")
    with pytest.raises(ReplicationError, match="there are none"):
        FastAlign.train([([], []), (["a"], [])])


def test_pieces_are_put_together_to_the_words_that_gold_links_number(tmp_path):
    prepared = PreparedText.load(corpus(tmp_path, {"kind": "sentencepiece", "size": 20}))
    assert prepared.target.unit == "piece"
    pairs = list(word_pairs(prepared, prepared.split("test")))
    sources, references = prepared.lines("test")
    words = [tuple([word.strip("▁") for word in side] for side in pair) for pair in pairs]
    assert words == [(s.split(), r.split()) for s, r in zip(sources, references, strict=True)]


def test_other_variants_are_networks(prepared, tmp_path):
    check_model(REPLICATION.settings, config({"size": 8}))
    assert REPLICATION.cannot_run(config({"size": 8})) is None
    with pytest.raises(ReplicationError, match="unknown key 'sise'"):
        check_model(REPLICATION.settings, config({"sise": 8}))
    assert REPLICATION.descriptions(config({"size": 8}))["signatures"]
    assert ALIGNER.descriptions(config({"aligner": "ibm1"})) == {"signatures": {}, "token": "word"}


def test_an_aligner_costs_no_training():
    assert ALIGNER.cost(config({"aligner": "ibm1"}), None) is None


def test_without_gold_alignments_there_is_nothing_to_judge(prepared, tmp_path):
    one, without = config({"aligner": "ibm1"}, corpus=CORPUS | {"test": ["test"]}), tmp_path / "without"
    shutil.copytree(prepared, without)
    (without / "test" / "align.txt").unlink()
    ALIGNER.train(one, prepared=without, folder=tmp_path, seed=1, fingerprint="", label="toy")
    with pytest.raises(ReplicationError, match="no gold alignments"):
        ALIGNER.evaluate(one, prepared=without, trained=[tmp_path], out=tmp_path / "out")


@pytest.mark.parametrize("checkpoint", ["best", "last"])
def test_an_aligner_is_trained_and_judged_as_a_network_is(checkpoint, prepared, tmp_path):
    aligner = config({"aligner": "ibm1", "iterations": 4}, evaluation={"checkpoint": checkpoint})
    ((record, parameters),) = train(REPLICATION, aligner, prepared, tmp_path)
    assert (record.updates, parameters) == (4, 420)
    assert {path.name for path in (tmp_path / "seed3" / "checkpoints").iterdir()} >= {"best.ckpt", "last.ckpt"}
    assert judge(REPLICATION, aligner, prepared, tmp_path)[0]["aer"] == 0


def test_where_the_package_is_missing_fast_align_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "systran_align", None)
    assert "systran-align" in ALIGNER.cannot_run(config({"aligner": "fast_align"}))
    assert ALIGNER.cannot_run(config({"aligner": "ibm1"})) is None
