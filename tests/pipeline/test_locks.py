"""Committed locks are current: who pulls trains nothing that has been trained with the same code and settings."""

import hashlib
import json
from functools import reduce

import pytest
from ruamel.yaml import YAML

from shared.pipeline.check import write_code
from shared.pipeline.config import ScaleFile
from shared.tasks.kinds import papers
from tests.pipeline.scratch import ROOT


@pytest.mark.parametrize("paper", papers())
def test_the_lock_of_quick_has_the_code_and_the_settings_of_today(paper, tmp_path, monkeypatch):
    for name in ("shared", "replications", "data", "params.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    write_code(ScaleFile(paper, "quick"))
    lock = YAML(typ="safe").load((tmp_path / "replications" / paper / "quick" / "dvc.lock").read_text())
    stale = set()
    for name, stage in lock["stages"].items():
        for dep in [each for each in stage.get("deps", []) if "/code/" in each["path"]]:
            if hashlib.md5((tmp_path / dep["path"]).read_bytes(), usedforsecurity=False).hexdigest() != dep["md5"]:
                stale.add(name)
        for path, settings in stage.get("params", {}).items():
            today = YAML(typ="safe").load((tmp_path / path).read_text())
            for keys, value in settings.items():
                if json.dumps(reduce(dict.__getitem__, keys.split("."), today)) != json.dumps(value):
                    stale.add(name)
    assert not stale
