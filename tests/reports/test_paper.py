"""paper.yaml: the shipped ones, and what is refused."""

from importlib import import_module
from pathlib import Path

import pytest
import yaml

from shared.reports.paper import Paper
from tests.refused import assert_refused

ROOT = Path(__file__).parents[2]
PAPERS = sorted(ROOT.glob("replications/*/paper.yaml"))
BAHDANAU = ROOT / "replications/bahdanau/paper.yaml"

PROGRAM = {"item": "i", "program": "p", "file": "owner/name@44781ed/a/file.py", "here": "h", "known": "read"}


def changed(path, change):
    content = yaml.safe_load(BAHDANAU.read_text(encoding="utf-8"))
    change(content)
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.parent.name)
def test_every_shipped_file_loads(path):
    paper = Paper.load(path)
    assert paper.tables
    assert paper.hyperparameters
    for attention in paper.attentions:
        file, _, name = attention.code.partition(":")
        module = import_module(file.removesuffix(".py").replace("/", "."))
        assert isinstance(getattr(module, name), type)
    assert paper.attentions


def test_the_training_set_of_bahdanau_is_one_and_the_same():
    """80 sentences an update: all five rows of Table 2 give 10.5 to 10.7 million pairs per epoch."""
    table = next(table for table in Paper.load(BAHDANAU).tables if table.id == "t2")
    pairs = [float(row.updates_1e5) * 1e5 * 80 / float(row.epochs) for row in table.rows]
    assert len(pairs) == 5
    assert all(10.4e6 < count < 10.8e6 for count in pairs)


def test_the_claimed_differences_are_those_of_table_1():
    table = next(table for table in Paper.load(BAHDANAU).tables if table.id == "t1")
    scores = {row.label: (row.all, row.no_unk) for row in table.rows}

    def gain(first, second):
        return tuple(round(a - b, 2) for a, b in zip(scores[first], scores[second], strict=True))

    assert gain("RNNsearch-50", "RNNencdec-50") == (8.93, 7.45)
    assert gain("RNNsearch-30", "RNNencdec-30") == (7.57, 7.25)
    assert gain("RNNsearch-30", "RNNencdec-50") == (3.68, 4.73)
    assert gain("RNNsearch-50*", "RNNsearch-50") == (1.70, 1.99)
    assert gain("RNNsearch-50*", "Moses") == (-4.85, 0.52)


@pytest.mark.parametrize(("change", "message"), [
    (lambda c: c["tables"][0]["rows"][0].pop("all"), "RNNencdec-30"),
    (lambda c: c["parameter_counts"]["totals"].update(RNNsearch=1), "add up to 80401000"),
    (lambda c: c["parameter_counts"]["parts"][0].update(more=7), "must have exactly the keys part, "),
    (lambda c: c["tables"][0]["rows"][0].update(metrics={"some": "chrf"}), "has no column 'some'"),
    (lambda c: c.update(program=[PROGRAM | {"file": "owner/repository/file.py"}]), "program.0.file"),
])  # fmt: skip
def test_wrong_facts_are_refused(tmp_path, change, message):
    assert_refused(message, Paper.load, changed(tmp_path / "paper.yaml", change))
