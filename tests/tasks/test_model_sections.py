"""What is checked of a model section, and where messages say that it stands."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from shared.config import build
from shared.tasks.kinds import load_replication
from shared.tasks.replication import Study
from shared.tasks.sequences.settings import SequenceRun
from shared.tasks.settings import check_model, find_route, routes_of
from tests.refused import assert_refused
from tests.replications.small_sequences import SIZES
from tests.tasks.in_process import run_config

PAPERS = sorted(path.parent.name for path in Path("replications").glob("*/settings.py"))


def paper(name: str) -> Any:
    return importlib.import_module(f"replications.{name}.settings")


def run(own: dict[str, Any], **changes: Any) -> SequenceRun:
    """A variant whose section lies over that of its task."""
    sections = {"model": SIZES | {"attention": "positive"} | own} | changes
    config: SequenceRun = run_config("sequences", {"of": "proteins", "length": 9}, **sections)
    return config.at("quick.yaml", "fast", own)


@pytest.mark.parametrize("name", PAPERS)
def test_settings_are_those_that_the_replication_is_bound_to(name: str) -> None:
    settings, replication = paper(name), load_replication(name)
    assert replication.settings is settings
    assert replication.runners.keys() == routes_of(settings).keys() - {"paper"}
    for key, runner in replication.runners.items():
        assert isinstance(runner, Study) or runner.keys() == routes_of(settings)[key].keys()


@pytest.mark.parametrize(("own", "changes", "message"), [
    ({"swap_at": 5}, {}, r"quick\.yaml: variants\.fast\.model: swap_at 5 is not before the last of 2"),
    ({}, {"evaluation": {"swapped": {"late": {"swap_at": 9}}}},
     r"quick\.yaml: variants\.fast\.model, changed by evaluation\.swapped\.late: swap_at 9"),
    ({"study": "kernel"}, {}, r"variants\.fast\.model: there is no study 'kernel' \(did you mean 'kernels'\?\)"),
    ({"study": "depth", "network": {"heads": 3, "width": 4, "hidden": 4}}, {},
     r"fast\.model, for a network of the study: .*multiple of the heads"),
])  # fmt: skip
def test_a_wrong_section_is_refused_with_its_place(own: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    assert_refused(message, check_model, paper("performer"), run(own, **changes))


def test_a_study_that_builds_the_tasks_network_reads_its_settings_and_refuses_others() -> None:
    settings = paper("linear_transformer")
    sizes = SIZES | {"attention": "linear", "max_length": 9}
    own = {"study": "exactness", "lengths": [2, 4]}
    exact = run(own, model=sizes | own)
    check_model(settings, exact)
    assert find_route(exact, settings)[1].model["width"] == SIZES["width"]
    own["lenght"] = 3  # type: ignore[assignment]
    assert_refused(r"unknown key 'lenght' \(did you mean", check_model, settings, run(own, model=sizes | own))


def test_the_place_outlives_a_copy_and_is_no_setting() -> None:
    here = run({"study": "kernels"})
    copy = here.with_model({"study": "kernels", "draws": 3})
    assert copy.where == "quick.yaml: variants.fast.model"
    assert copy.own_model == {"study": "kernels", "draws": 3}
    assert here.own_model == {"study": "kernels"}
    assert here.model_dump() == build(SequenceRun, here.model_dump(), where="test").model_dump()
