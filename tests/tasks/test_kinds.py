"""The kinds of task: loaded when asked for, and each with what reports, checks and evaluation need of it."""

import subprocess
import sys

import pytest

from shared.tasks.kinds import KINDS, part_of
from tests.refused import assert_refused

LIGHT = """
import importlib, sys
from shared.tasks.kinds import KINDS, load_measures, papers, part_of
load_measures()
for kind in KINDS:
    part_of(kind, "settings")
for paper in papers():
    importlib.import_module(f"replications.{paper}.settings")
    for exhibit in importlib.import_module(f"replications.{paper}.report").FIGURES:
        exhibit.variants(), exhibit.measures()
print(sorted({"torch", "lightning", "matplotlib", "scipy", "PIL"} & sys.modules.keys()))
"""


def test_settings_measures_and_figures_are_known_without_what_is_slow_to_import(root):
    done = subprocess.run([sys.executable, "-c", LIGHT], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_figures_for_papers_that_list_none(kind):
    assert part_of(kind, "report").REPORT.figures


def test_an_unknown_kind_is_refused():
    assert_refused("no kind of task 'poetry'; there are captioning, classification", part_of, "poetry", "report")
