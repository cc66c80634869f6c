"""How many of the project's files a reader passes who follows one variant from its data to its report."""

import importlib
import sys
from contextlib import contextmanager

import pytest

from shared.pipeline import runs
from shared.pipeline.__main__ import main
from tests.pipeline.scratch import ROOT, copy_files

VARIANT, TASK, PAPER = "bahdanau.rnnsearch-50", "bahdanau.swaps", "bahdanau"
STAGES = {"check": PAPER, "fetch": TASK, "prepare": TASK, "train": VARIANT, "evaluate": VARIANT, "report": PAPER}
MOST = {"check": 28, "fetch": 16, "prepare": 22, "train": 38, "evaluate": 50, "report": 50, "all": 92}
"""What they may be at most; they fall with the code, to 20 for training and 60 in all."""
CODE = sorted(path for folder in ("shared", "replications") for path in (ROOT / folder).rglob("*.py"))


@contextmanager
def entered():
    """The files of which a function is called meanwhile in this thread."""
    names = {str(path): path.relative_to(ROOT).as_posix() for path in CODE}
    found = set()

    def note(frame, event, argument):
        if event == "call" and (name := names.get(frame.f_code.co_filename)):
            found.add(name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(before)


@pytest.mark.slow
def test_a_variant_passes_few_files_on_its_way_to_a_report(tmp_path, monkeypatch):
    for path in CODE:  # so that importing a file does not count as entering it
        importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    monkeypatch.chdir(copy_files(tmp_path / "project"))
    monkeypatch.setattr(runs, "run_jobs", lambda jobs, **_: [job.function(*job.arguments) for job in jobs])
    files = {}
    for stage, name in STAGES.items():
        with entered() as files[stage]:
            assert main([stage, name, "--scale", "smoke"]) == 0
    files["all"] = set().union(*files.values())
    for stage, found in files.items():
        print(f"{stage}: {len(found)} of at most {MOST[stage]}", *sorted(found), sep="\n  ")
    too_many = {stage: len(found) for stage, found in files.items() if len(found) > MOST[stage]}
    assert not too_many
