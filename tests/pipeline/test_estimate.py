"""What an estimate says of runs on record, of updates that are timed, and of what is not known; damaged records."""

import datetime
import json
import shutil

import pytest

from shared.pipeline.__main__ import main
from shared.pipeline.config import ScaleFile
from shared.pipeline.costs import Cost, described, estimate, summed
from tests.pipeline.scratch import ROOT, change_yaml

NETWORK = Cost(5, 5, "those of 5 finished runs", "", 1000, 130.0, 20.0, 300.0)
STUDY = Cost(3, 3, "those of 3 finished runs", "", 0, 0.0, 30.0, 200.0)
BEGIN = datetime.datetime(2026, 11, 23, 12, tzinfo=datetime.UTC)
VARIANT = "corpus-rnnencdec"


@pytest.mark.parametrize(("workers", "rounds"), [(1, 5), (2, 3), (5, 1), (64, 1)])
def test_seeds_are_side_by_side_and_stages_follow_each_other(workers, rounds):
    assert pytest.approx(3600 * NETWORK.hours()) == 5 * (130 + 20)
    assert pytest.approx(3600 * NETWORK.hours(workers)) == rounds * (130 + 20)


def test_the_sum_says_what_is_included_what_is_missing_and_when_it_is_done():
    first, included, *more = summed([NETWORK, STUDY], 2, BEGIN).split("\n")
    hours = (3 * 150 + 2 * 30) / 3600
    assert first.startswith("together 0.23 processor hours; 2 at once take 0.14 hours")
    assert f"until about {BEGIN + datetime.timedelta(hours=hours):%Y-%m-%d %H:%M}; 300 MiB" in first
    assert "training, validation and judging of all seeds; not included:" in included
    assert more == []
    unknown = NETWORK._replace(missing="judging: nobody knows")
    assert described(unknown).endswith("WITHOUT judging: nobody knows: 0.21 processor hours")
    assert "of 1 of 2 variants a part is unknown" in summed([STUDY, unknown], 1, BEGIN).split("\n")[-1]


@pytest.fixture
def project(root, tmp_path, monkeypatch):
    """The project with the archive of one paper's runs, and without any runs or prepared data."""
    for name in ("replications", "data", "shared", "params.yaml"):
        (tmp_path / name).symlink_to(root / name)
    (tmp_path / "runs/bench").mkdir(parents=True)
    (tmp_path / "runs/bench/bahdanau.tar.xz").symlink_to(root / "runs/bench/bahdanau.tar.xz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_runs_that_git_keeps_or_that_were_unpacked_tell_what_more_of_them_cost(project):
    packed = estimate(settings := ScaleFile("bahdanau", "bench"), VARIANT)
    runs = len(settings.variants[VARIANT].seeds)
    assert (packed.parameters, packed.seeds, packed.judged, packed.missing) == (2363072, runs, runs, "")
    assert packed.source.startswith(f"those of {runs} finished runs")
    assert min(packed.training, packed.judging, packed.memory) > 0
    assert main(["unpack", "bahdanau", "--scale", "bench"]) == 0
    (project / "runs/bench/bahdanau.tar.xz").unlink()
    assert estimate(settings, VARIANT) == packed
    runs = project / f"runs/bench/bahdanau/{VARIANT}/train"
    for folder, whole in zip(sorted(runs.iterdir()), (2000.0, 4000.0), strict=False):
        record = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps(record | {"process_seconds": whole, "cpu": "another"}))
    for folder in sorted(runs.iterdir())[2:]:
        shutil.rmtree(folder)
    own = estimate(settings, VARIANT)
    assert (own.training, own.source) == (3000.0, "those of 2 finished runs on another")


def test_runs_of_other_settings_tell_nothing_and_it_is_said_what_to_run(project, capsys):
    def change(content):
        content["variants"][VARIANT].setdefault("training", {})["clip"] = 0.5

    (project / "replications").unlink()
    shutil.copytree(ROOT / "replications", project / "replications", ignore=shutil.ignore_patterns("__pycache__"))
    change_yaml(project / "replications/bahdanau/bench/params.yaml", change)
    assert main(["estimate", f"bahdanau.{VARIANT}", "--scale", "bench"]) == 0
    printed = capsys.readouterr().out
    assert "WITHOUT its cost: no runs are on record, and its task is not prepared" in printed
    assert "fetch bahdanau.corpus --scale bench && python -m shared.pipeline prepare bahdanau.corpus" in printed
