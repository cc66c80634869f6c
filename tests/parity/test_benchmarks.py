"""The harness of benchmarks; outer products that public programs sum up, against our causal attention."""

import json
import subprocess
import sys

import pytest
import torch

from benchmarks import bahdanau, growth, page
from benchmarks.__main__ import NAMES, age, code_of, main, measure, peaks
from benchmarks.steps import summed_outer_products
from shared.attention.linear import chunkwise_linear_attention
from tests.checklist import F64, assert_alike


def test_ratios_are_those_of_the_processor_time():
    figures = measure({"one": lambda: sum(range(300_000)), "twice": lambda: sum(range(600_000))}, 7)
    assert figures["one"]["ratio"] == figures["one"]["from"] == figures["one"]["to"] == 1
    assert 1.3 < figures["twice"]["ratio"] < 3


def test_all_benchmarks_are_listed_with_their_comparisons(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "list"])
    main()
    said = capsys.readouterr().out
    assert len(NAMES) == 12
    assert all(f"\n{name}: " in f"\n{said}" for name in NAMES)
    assert "    training with input feeding\n" in said


def test_figures_are_written_with_what_they_depend_on(monkeypatch, tmp_path):
    monkeypatch.setattr(bahdanau, "COMPARISONS", {"sums": lambda: {"a": lambda: sum(range(999)), "b": lambda: None}})
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--out", str(tmp_path), "run", "bahdanau", "--turns", "7"])
    main()
    written = json.loads((tmp_path / "bahdanau.json").read_text())
    circumstances = {"date", "git_commit", "git_dirty", "code", "torch", "device", "cpu", "threads"}
    assert written.keys() == circumstances | {"turns", "comparisons"}
    assert written["comparisons"]["sums"].keys() == {"a", "b"}


def test_records_of_other_code_are_said_to_be_stale(tmp_path):
    assert age("luong", tmp_path) == "not measured"
    for code, stale in ((code_of("luong"), ""), ("that of other code", "; stale: the code has changed")):
        (tmp_path / "luong.json").write_text(json.dumps({"date": "2026-01-01", "code": code}))
        assert age("luong", tmp_path) == f"measured on 2026-01-01{stale}"


def test_memory_is_that_of_a_step_alone_and_the_page_shows_how_it_grows(monkeypatch, tmp_path):
    sizes = {str(size): lambda size=size: len(b"1" * size * 2**20) for size in (1, 2, 28)}
    for size in (31, 30):  # by the first, libc learns to hold what is freed for the next that asks
        assert len(b"1" * size * 2**20)
    monkeypatch.setattr(growth, "COMPARISONS", {"training": lambda: sizes})
    monkeypatch.setattr(growth, "AXES", {"training": "Words"})
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--out", str(tmp_path), "run", "growth", "--turns", "7"])
    main()
    record = json.loads((tmp_path / "growth.json").read_text())
    assert 24 < record["comparisons"]["training"]["28"]["megabytes"] < 36
    assert peaks(sizes | {"another process": lambda: subprocess.run(["true"], check=True)}) == {}
    page.write({"growth": growth}, {"growth": record}, {"growth": age("growth", tmp_path)}, tmp_path)
    shown = (tmp_path / "speed" / "README.md").read_text()
    assert "figures/growth_training.png" in shown
    assert "### Training" in shown
    assert f"Measured on {record['date']}, at " in shown


@pytest.mark.parametrize("arguments", [["run", "bahdanua"], ["run", "bahdanau", "--turns", "3"]])
def test_unknown_benchmarks_and_too_few_turns_are_refused(monkeypatch, arguments):
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    with pytest.raises(SystemExit):
        main()


@pytest.mark.parametrize("pieces", [1, 5, 128])
def test_values_and_gradients_are_those_of_the_outer_products(pieces):
    q, k = torch.rand(2, 2, 3, 70, 4, dtype=F64).add(0.1).requires_grad_().unbind()
    v = torch.randn(2, 3, 70, 5, dtype=F64, requires_grad=True)
    ours, _ = chunkwise_linear_attention(q, k, v, chunk=16)
    assert_alike(ours, summed_outer_products(q, k, v, pieces=pieces), (q, k, v), tolerance=1e-11)
