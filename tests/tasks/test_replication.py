"""What trains and judges a variant, what is checked of its model section, and where messages say that it stands."""

import importlib
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from replications.luong.model import EncoderDecoder
from shared.config import Strict, build
from shared.tasks.kinds import load_replication
from shared.tasks.replication import Study, runner_of
from shared.tasks.sequences.settings import SequenceRun
from shared.tasks.settings import BorrowedConfig, StudyConfig, check_model, find_route, routes_of
from shared.tasks.translation.corpus import PreparedText
from tests.refused import assert_refused
from tests.replications.small_sequences import SIZES
from tests.tasks import in_process
from tests.tasks.in_process import judge, paper, run_config, train, write_columns


class OwnConfig(Strict):
    size: int = Field(ge=1)
    layers: int
    dropout: float
    reverse: bool = True


class Count(Study):
    """Counts words, which needs no training."""

    def evaluate(self, config, *, prepared, trained, out):
        return {"words": float(sum(map(len, PreparedText(prepared).split("test").source)))}


REPLICATION = paper(
    "translation", OwnConfig, lambda config, source, target: None,
    routes={"paper": BorrowedConfig, "study": {"count": StudyConfig}}, runners={"study": {"count": Count()}},
)  # fmt: skip
LUONG = {"embedding_size": 6, "hidden_size": 5, "layers": 1, "reverse": False}
CORPUS = {"source": "a", "target": "b", "tokenizer": {"kind": "words", "size": 12}}
MODELS = {"rival": {"paper": "luong", "settings": LUONG}, "count": {"study": "count"}}


def config(model, **sections):
    """A variant whose own ``model`` section lies over the task's."""
    whole = {"size": 8, "layers": 3, "dropout": 0.5} | model
    run = run_config("translation", CORPUS, model=whole, decoding={"beam": 2}, seeds=[3], **sections)
    return run.at("toy/params.yaml", "rival", model)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    for split, count in {"train": 20, "valid": 5, "test": 5}.items():
        write_columns(folder, split, **{side: [f"{side}{i % 8} {side}{i % 3}" for i in range(count)] for side in "ab"})
    in_process.prepared("translation", CORPUS, folder, folder / "out")
    return folder / "out"


def test_a_borrowed_model_is_the_other_papers_with_its_own_settings_alone(prepared):
    lender, lent = runner_of(REPLICATION, config(MODELS["rival"]))
    text = PreparedText(prepared)
    model = lender.model(lent, text.sizes)
    assert isinstance(model, EncoderDecoder)
    assert model.embedding.weight.shape == (len(text.target), 6)
    assert model.dropout.p == 0  # and not the task's 0.5
    assert lent.model == LUONG
    assert (lent.corpus, lent.training, lent.decoding) == (config({}).corpus, config({}).training, config({}).decoding)


@pytest.mark.parametrize("variant", MODELS)
def test_it_is_trained_and_judged_on_the_data_of_this_paper(variant, prepared, tmp_path):
    """A rival by the weights that the evaluation names."""
    sections = {"training": {"average": {"last": 2, "every": 1}}, "evaluation": {"checkpoint": "average"}}
    run = config(MODELS[variant], **sections if variant == "rival" else {})
    ((record, _),) = train(REPLICATION, run, prepared, tmp_path)
    assert record.updates == (0 if variant == "count" else 2)
    assert (tmp_path / "seed3/checkpoints/average.ckpt").exists() == (variant == "rival")
    (metrics,) = judge(REPLICATION, run, prepared, tmp_path)
    assert metrics.keys() >= ({"words"} if variant == "count" else {"bleu", "perplexity"})
    if variant == "rival":
        last = config(MODELS[variant], **sections | {"evaluation": {"checkpoint": "last"}})
        (other,) = judge(REPLICATION, last, prepared, tmp_path)
        assert other["perplexity"] != metrics["perplexity"]


def test_a_borrowed_model_costs_what_it_costs_its_own_paper_and_a_study_nothing(prepared):
    lender, lent = runner_of(REPLICATION, config(MODELS["rival"]))
    parameters, seconds = lender.cost(lent, prepared)
    sizes = PreparedText(prepared).sizes
    assert parameters == sum(p.numel() for p in lender.model(lent, sizes).parameters())
    assert seconds > 0
    study, own = runner_of(REPLICATION, config({"study": "count"}))
    assert study.cost(own, prepared) is None
    assert runner_of(REPLICATION, config({"layers": 4}))[0] is REPLICATION


@pytest.mark.parametrize(("model", "message"), [
    ({"paper": "lung", "settings": {}}, r"there is no paper 'lung' \(did you mean 'luong'\?\)"),
    ({"paper": "luong", "settings": LUONG | {"hiden_size": 3}},
     r"model.settings, for a model of luong: unknown key 'hiden_size' \(did you mean 'hidden_size'\?\)"),
    ({"paper": "luong", "settings": LUONG, "study": "count"}, "it has 'paper' and 'study'; leave in one"),
    ({"study": "cuont"}, r"there is no study 'cuont' \(did you mean 'count'\?\)"),
    ({"paper": "performer", "settings": {}}, "performer has no model for tasks of kind"),
])  # fmt: skip
def test_a_wrong_section_is_refused_where_it_is(model, message):
    said = assert_refused(message, check_model, REPLICATION.settings, config(model))
    assert said.startswith("toy/params.yaml: variants.rival.model")
    check_model(REPLICATION.settings, config({"study": "count"}))  # the task's own layers are the networks'


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
