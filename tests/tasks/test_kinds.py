"""The kinds of task: loaded when asked for, and each with what reports, checks and evaluation need of it."""

import subprocess
import sys

import pytest
import torch

from shared.tasks.captioning.corpus import CaptionBatch, ImageBatch
from shared.tasks.classification.corpus import ClassifiedBatch
from shared.tasks.kinds import KINDS, part_of
from shared.tasks.language.corpus import LanguageBatch
from shared.tasks.sequences.batches import SequenceBatch
from shared.tasks.sets.corpus import SetBatch
from shared.tasks.translation.corpus import TranslationBatch
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


SYMBOLS = torch.tensor([[1, 2, 3], [4, 5, 0]])
READ = SYMBOLS != 0
FEATURES = torch.zeros(2, 4, 5)
BATCHES = [
    (TranslationBatch(SYMBOLS, SYMBOLS, SYMBOLS), 5),
    (ClassifiedBatch((SYMBOLS, SYMBOLS), torch.tensor([1, 0])), 10),
    (CaptionBatch(FEATURES, SYMBOLS, torch.zeros(2, 3, 4)), 5),
    (CaptionBatch(FEATURES, SYMBOLS), 5),
    (ImageBatch(FEATURES, (("a cat", "the cat"), ("a dog",))), 2),
    (LanguageBatch(SYMBOLS, SYMBOLS, torch.where(READ, SYMBOLS, -1), reset=True), 5),
    (SequenceBatch(SYMBOLS, SYMBOLS + 1, READ, READ), 5),
    (SequenceBatch(SYMBOLS, SYMBOLS + 1, READ), 5),
    (SetBatch(FEATURES[:, :3], READ, torch.ones(2, 1)), 5),
]


@pytest.mark.parametrize(("batch", "tokens"), BATCHES)
def test_a_batch_moves_as_a_whole_and_stays_what_it_is(batch, tokens):
    def parts(of):
        values = [part for value in vars(of).values() for part in (value if isinstance(value, tuple) else (value,))]
        return [part for part in values if isinstance(part, torch.Tensor)], [
            part for part in values if not isinstance(part, torch.Tensor)
        ]

    assert batch.tokens == tokens
    moved, rest = parts(batch.to("meta"))
    assert {part.device.type for part in moved} == {"meta"}
    assert [part.shape for part in moved] == [part.shape for part in parts(batch)[0]]
    assert rest == parts(batch)[1]
    assert all(map(torch.equal, *(parts(each)[0] for each in (batch, batch.to("cpu")))))
