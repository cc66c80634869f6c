"""What stages and commands take, and how that grows with papers that DVC sees, and with the seeds of a report."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

from benchmarks.steps import Step, scratch
from shared.reports.curves import LearningCurves
from shared.reports.report import write_report
from shared.tasks.kinds import load_measures
from shared.tasks.translation.report import REPORT, ScoresByLength
from tests.made_claims import claim, compared, paper_folder
from tests.synthetic_runs import TRANSLATORS, build

ROOT = Path(__file__).parents[1]
ADOPT = 36
"""PR_SET_CHILD_SUBREAPER: servers of workers that outlive their command become this process's children."""


def stages() -> dict[str, Step]:
    """The commands of one paper at the smoke scale, with their workers: each makes its files anew, but for the last."""
    ctypes.CDLL(None).prctl(ADOPT, 1)
    subprocess.run(["git", "clone", "--quiet", ROOT, folder := scratch()], check=True)

    def run(folder: Path, *command: str, anew: str = "") -> None:
        if anew:
            shutil.rmtree(folder / "runs/smoke/bahdanau" / anew)
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        with suppress(ChildProcessError):
            while os.wait():
                pass

    def stage(*words: str, anew: str = "") -> Step:
        return partial(run, folder, sys.executable, "-m", "shared.pipeline", *words, "--scale", "smoke", anew=anew)

    repro = ("dvc", "repro", "--quiet", "report@bahdanau")
    run(folder, sys.executable, "-m", "shared.pipeline", "use", "smoke", "bahdanau")
    run(folder, *repro)
    done = shutil.copytree(folder, scratch() / "done", symlinks=True)
    return {
        "check": stage("check", "bahdanau"),
        "prepare": stage("prepare", "bahdanau.swaps"),
        "train, two seeds": stage("train", "bahdanau.rnnsearch-50", anew="rnnsearch-50/train"),
        "evaluate, two seeds": stage("evaluate", "bahdanau.rnnsearch-50", anew="rnnsearch-50/evaluation"),
        "report": stage("report", "bahdanau"),
        "dvc repro with nothing to do": partial(run, done, *repro),
    }


def papers(in_sight: tuple[str, ...] = ()) -> dict[str, Step]:
    """What dvc status --with-deps takes for one paper's report; DVC reads the quick pipelines that are in its sight."""

    def project(count: int) -> Path:
        folder = scratch()
        subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
        there = sorted(path.parent for path in (folder / "replications").glob("*/__init__.py"))
        for path in there[count:]:
            shutil.rmtree(path)
        for number in range(count - len(there)):
            name, origin = f"copy_{number}", there[number % len(there)]
            params = shutil.copytree(origin, folder / "replications" / name, symlinks=True) / "quick/params.yaml"
            params.write_text(params.read_text().replace(f"paper: {origin.name}\n", f"paper: {name}\n"))
        listed = "".join(f"- {path.parent.name}\n" for path in (folder / "replications").glob("*/__init__.py"))
        params = (folder / "params.yaml").read_text()
        (folder / "params.yaml").write_text(params.partition("papers:")[0] + f"papers:\n{listed}")
        subprocess.run([sys.executable, "-m", "shared.pipeline", "use", "quick", *in_sight], cwd=folder, check=True)
        return folder

    def status(folder: Path) -> None:
        subprocess.run(["dvc", "status", "--quiet", "--with-deps", "report@bahdanau"], cwd=folder, check=False)

    return {str(count): partial(status, project(count)) for count in (4, 8, 16, 32)}


def seeds() -> dict[str, Step]:
    """The report of three made-up models of translation with 60 test examples a seed, one claim and two figures."""
    load_measures("translation")
    first, second = "rnnsearch-50", "rnnencdec-50"
    folder = scratch()
    primary = compared("less", "nll_per_token", first, second)
    paper = paper_folder(folder / "papers/bahdanau", claim(primary=primary))

    def report(count: int) -> Step:
        runs = build(folder / "runs" / str(count), seeds=range(1, count + 1), examples=60)
        evidence, shown = dict.fromkeys(TRANSLATORS, "generated"), [ScoresByLength(), LearningCurves()]
        return partial(write_report, paper, runs, folder / "reports" / str(count), scale="quick", figures=shown,
                       kind=REPORT, evidence=evidence)  # fmt: skip

    return {str(count): report(count) for count in (5, 10, 20, 40)}


COMPARISONS = {"stages": stages, "all papers in sight": papers,
               "one paper in sight": partial(papers, ("bahdanau",)), "seeds": seeds}  # fmt: skip
AXES = {"all papers in sight": "Papers", "one paper in sight": "Papers", "seeds": "Seeds"}
