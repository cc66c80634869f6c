"""What stages write, and what they do not wait for; what they promise of every kind is in ``test_contract.py``."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shared.pipeline.__main__ import main
from shared.pipeline.files import made_anew, write_json
from shared.pipeline.runs import means
from tests.pipeline.scratch import copy_files, environment
from tests.refused import assert_refused


@pytest.mark.parametrize(("arguments", "status"), [
    (["fetch", "bahdanau.swaps", "--scale", "smoke"], 0),
    (["summarize"], 0),
    (["reference"], 0),
    (["train", "bahdanau.nothing"], 2),
    (["train", "bahdanau"], 2),
    (["train", "nobody.nothing"], 2),
    (["report", "bahdanau", "--scale", "bench"], 2),
])  # fmt: skip
def test_what_needs_no_torch_does_not_wait_for_it(arguments, status, project):
    program = (
        "import sys; from shared.pipeline.__main__ import main; status = main(sys.argv[1:]); "
        "sys.exit(9 if 'torch' in sys.modules else status)"
    )
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=project, env=environment(), capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    assert (done.stderr.startswith("error: ") and done.stderr.count("\n") == 1) == (status == 2)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", [["list", "bahdanau"], ["check", "bahdanau"]], ids=("tables", "lines"))
def test_a_command_whose_output_nobody_reads_ends_without_a_word(command, unbuffered, project):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "shared.pipeline", *command], cwd=project, stdout=writer, stderr=subprocess.PIPE,
        env=environment() | {"PYTHONUNBUFFERED": unbuffered}, text=True,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_another_pipe_that_breaks_is_no_reader_that_has_left(monkeypatch, capfd):
    def breaks():
        raise BrokenPipeError

    monkeypatch.setattr("shared.pipeline.report.summarize_stage", breaks)
    with pytest.raises(BrokenPipeError):
        main(["summarize"])


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return copy_files(tmp_path_factory.mktemp("stages") / "project")


@pytest.mark.usefixtures("toys")
def test_a_report_passes_over_a_variant_that_is_no_more():
    for variant, reason in {"long": "a machine without memory", "gone": "a machine without a core"}.items():
        metrics = {"variant": variant, "task": "task", "not_run": reason}
        write_json(Path(f"runs/smoke/toy_classification/{variant}/metrics.json"), metrics)
    assert main(["report", "toy_classification", "--scale", "smoke"]) == 0
    page = Path("reports/smoke/toy_classification/README.md").read_text()
    assert "a machine without memory" in page
    assert "a machine without a core" not in page


def test_json_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a" / "b.json"
    write_json(path, {"x": 1})
    with pytest.raises(TypeError):
        write_json(path, {"x": object()})
    assert json.loads(path.read_text()) == {"x": 1}
    assert [p.name for p in path.parent.iterdir()] == ["b.json"]


def make_with(final, name):
    with made_anew(final) as partial:
        assert list(partial.iterdir()) == []
        (partial / name).touch()


def test_a_folder_is_made_whole_or_stays_as_it_was(tmp_path):
    final = tmp_path / "folder"
    make_with(final, "first")
    with pytest.raises(FileNotFoundError):
        make_with(final, "no folder/second")
    assert list(tmp_path.iterdir()) == [final]
    assert [path.name for path in final.iterdir()] == ["first"]
    make_with(final, "third")
    assert [path.name for path in final.iterdir()] == ["third"]


def test_an_old_folder_that_cannot_be_removed_does_not_keep_the_new_one_out(tmp_path, monkeypatch):
    final = tmp_path / "folder"
    make_with(final, "first")

    def refuse(folder, ignore_errors=False):
        if not ignore_errors:
            raise OSError(errno.EBUSY, "Device or resource busy", str(folder))

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", refuse)
        make_with(final, "second")
        assert [path.name for path in final.iterdir()] == ["second"]
        with pytest.raises(OSError, match=r"Device or resource busy: .*folder\.old\.partial"):
            make_with(final, "third")
    assert [path.name for path in final.iterdir()] == ["second"]
    make_with(final, "third")
    assert list(tmp_path.rglob("*")) == [final, final / "third"]


@pytest.mark.parametrize("source", ["folder", "folder.partial"])
def test_a_folder_that_cannot_be_renamed_leaves_the_old_one_in_place(tmp_path, monkeypatch, source):
    final, rename = tmp_path / "folder", Path.rename
    make_with(final, "first")

    def refuse(path, target):
        if path.name == source:
            raise OSError(errno.EBUSY, "Device or resource busy", str(path))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    assert_refused(r"folder cannot be put in place \(Device or resource busy\); see that", make_with, final, "second")
    assert list(tmp_path.rglob("*")) == [final, final / "first"]


def test_a_folder_that_a_killed_process_has_put_aside_is_not_lost(tmp_path):
    final = tmp_path / "folder"
    make_with(final, "first")
    final.rename(tmp_path / "folder.old.partial")
    with pytest.raises(FileNotFoundError):
        make_with(final, "no folder/second")
    assert list(tmp_path.rglob("*")) == [final, final / "first"]


def test_a_mean_is_of_what_every_seed_has():
    runs = [{"slope": 1.0, "crossover": 64.0, "tiny": 1e-13}, {"tiny": 3e-13, "slope": 2.0}]
    assert means(runs) == {"slope": 1.5, "tiny": 2e-13}
