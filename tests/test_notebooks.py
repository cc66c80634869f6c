"""The notebooks, which are run as scripts: each changes one thing of a model that comes with the project."""

import runpy

import pytest

from replications.linear_transformer import model as linear_transformer
from tests.test_house_rules import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))
PUBLISHED = ROOT / "pretrained" / "quick"


def test_each_model_that_comes_along_has_a_notebook_and_all_of_them_are_small():
    assert [path.stem for path in NOTEBOOKS] == sorted(folder.name for folder in PUBLISHED.iterdir())
    assert sum(file.stat().st_size for file in PUBLISHED.rglob("*.ckpt")) < 3e6


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_a_model_and_what_a_change_makes_of_it(path, tmp_path, monkeypatch, capsys):
    for folder in ("pretrained", "replications"):  # where nothing was trained or fetched
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    monkeypatch.setattr(linear_transformer, "ELU", linear_transformer.ELU)  # which its notebook changes
    runpy.run_path(str(path))
    printed = capsys.readouterr().out
    assert printed.count("The weights come with the project") >= 1
    assert "As it was trained" in printed
