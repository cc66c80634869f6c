"""The notebooks, which are run as scripts: each changes one thing of a model that comes with the project."""

import runpy

import pytest

from replications.linear_transformer import model as linear_transformer
from tests.test_house_rules import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))
PUBLISHED = sorted(ROOT.glob("replications/*/pretrained/quick"))


def test_each_model_that_comes_along_has_a_notebook_and_all_of_them_are_small():
    assert {folder.parents[1].name for folder in PUBLISHED} == {path.stem for path in NOTEBOOKS}
    assert sum(file.stat().st_size for folder in PUBLISHED for file in folder.rglob("*.ckpt")) < 3e6


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: folder.parents[1].name)
def test_a_notebook_shows_a_model_and_what_a_change_makes_of_it(folder, tmp_path, monkeypatch, capsys):
    (tmp_path / "replications").symlink_to(ROOT / "replications")  # where nothing was trained or fetched
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    monkeypatch.setattr(linear_transformer, "ELU", linear_transformer.ELU)  # which its notebook changes
    runpy.run_path(str(ROOT / "notebooks" / f"{folder.parents[1].name}.py"))
    printed = capsys.readouterr().out
    assert printed.count("The weights come with the project") >= 1
    assert "As it was trained" in printed
