"""The kinds of task: loaded when asked for, and each with what reports, checks and evaluation need of it."""

import subprocess
import sys

import pytest

from shared.errors import ReplicationError
from shared.tasks.kinds import KINDS, kind_report

LIGHT = """
import importlib, sys
from pathlib import Path
from shared.tasks.kinds import load_measures
load_measures()
for path in sorted(Path("replications").glob("*/report.py")):
    for shows in importlib.import_module(f"replications.{path.parent.name}.report").FIGURES:
        shows.exhibit.variants(), shows.exhibit.measures(), shows.exhibit.columns()
print(sorted({"torch", "lightning", "matplotlib", "scipy", "PIL"} & sys.modules.keys()))
"""
EVALUATIONS = """
import importlib, sys
from shared.tasks.kinds import KINDS
for kind in KINDS:
    importlib.import_module(f"shared.tasks.{kind}.evaluation")
print([kind for kind in KINDS if f"shared.tasks.{kind}.measures" not in sys.modules])
"""


def run(program, root):
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


def test_measures_and_figures_of_all_papers_are_known_without_what_is_slow_to_import(root):
    assert run(LIGHT, root) == "[]"


def test_evaluation_registers_the_measures_of_its_kind(root):
    assert run(EVALUATIONS, root) == "[]"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_figures_for_papers_that_list_none(kind):
    assert kind_report(kind).figures


def test_an_unknown_kind_is_refused():
    with pytest.raises(ReplicationError, match="no kind of task 'poetry'; there are captioning, classification"):
        kind_report("poetry")
