"""Bring committed dvc.lock files up to date after a change of code or settings that leaves all results as they are.

    python .ci/renew_locks.py quick bahdanau luong

Only what the stages depend on is written anew: the records of their code, the settings, and the small results that git
has. That the results are the same is for you to know, for instance by comparing the fingerprints of a seed that was
trained again. Afterwards ``dvc repro --dry --allow-missing report@<paper>`` says what DVC would still run.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

from dvc.repo import Repo
from dvc.utils.serialize import modify_yaml


def renew(scale: str, paper: str) -> None:
    """Renew the lock of one paper at the scale in use."""
    folder = Path("replications") / paper / scale
    subprocess.run([sys.executable, "-m", "shared.pipeline", "check", paper, "--scale", scale], check=True)
    with Repo() as repo, modify_yaml(folder / "dvc.lock") as lock:
        stages = {stage.name: stage for stage in repo.stage.collect(f"{folder}/dvc.yaml")}
        lock["stages"] = {name: entry for name, entry in lock["stages"].items() if name in stages}
        for name, entry in lock["stages"].items():
            known = {part["path"]: part for part in entry.get("deps", []) + entry.get("outs", [])}
            for kind, parts in (("deps", stages[name].deps), ("outs", stages[name].outs)):
                files = [part.def_path for part in parts if part.def_path and not hasattr(part, "read_params")]
                found = [known.get(file, {}) | _state(file) for file in sorted(set(files))]
                entry[kind] = [each for each in found if "md5" in each]
            settings = {
                dep.def_path: {key: dep.read_params()[key] for key in sorted(dep.params)}
                for dep in sorted(stages[name].deps, key=lambda dep: dep.def_path)
                if hasattr(dep, "read_params")
            }
            entry.pop("params", None)
            if settings:
                entry["params"] = settings
            entry["outs"] = entry.pop("outs")  # DVC's order


def _state(file: str) -> dict:
    """What DVC notes of a file that is here; of what is not, or is a folder, nothing new."""
    path = Path(file)
    if not path.is_file():
        return {}
    content = path.read_bytes()
    digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
    return {"path": file, "hash": "md5", "md5": digest, "size": len(content)}


if __name__ == "__main__":
    for name in sys.argv[2:]:
        renew(sys.argv[1], name)
