"""Variants of other kinds: models of other papers on this paper's data, and studies."""

import json
import random
from pathlib import Path

import pytest
import torch
from pydantic import Field

from replications.bahdanau.model import RNNencdec
from replications.luong.model import EncoderDecoder
from shared.config import Strict, build
from shared.errors import ReplicationError
from shared.pipeline import stages
from shared.pipeline.code import evaluation_code, training_code
from shared.pipeline.config import ScaleFile
from shared.tasks.routed import Routed
from shared.tasks.sections import RouteSection, StudyConfig
from shared.tasks.studies import Study, study_route
from shared.tasks.translation.aligners import AlignerRunner, aligner_route
from shared.tasks.translation.borrowed import borrowed_route
from shared.tasks.translation.corpus import PreparedText
from shared.tasks.translation.settings import AlignerConfig, BorrowedConfig, ParallelCorpusConfig, TranslationRun
from shared.tasks.translation.task import Translation
from tests.pipeline.scratch import toy_project

ROOT = Path(__file__).resolve().parents[3]


class OwnConfig(Strict):
    size: int = Field(ge=1)
    layers: int
    dropout: float
    reverse: bool = True


class Count(Study):
    """Counts words, which needs no training."""

    def evaluate(self, config, *, prepared, trained, out):
        return {"words": float(sum(map(len, PreparedText.load(prepared).split("test").source)))}


OWN = Translation(OwnConfig, lambda config, source, target: None)
REPLICATION = Routed(OWN, routes={
    "aligner": aligner_route, "paper": borrowed_route, "study": study_route({"count": Count()}),
}, sections={"aligner": AlignerConfig, "paper": BorrowedConfig, "study": {"count": StudyConfig}})  # fmt: skip
LUONG = {"embedding_size": 6, "hidden_size": 5, "layers": 1, "reverse": False}
BAHDANAU = {"kind": "rnnencdec", "embedding_size": 6, "hidden_size": 5, "maxout_size": 4}
TASK = {
    "corpus": {"dataset": "toy", "source": "a", "target": "b", "tokenizer": {"kind": "words", "size": 12}},
    "model": {"size": 8, "layers": 3, "dropout": 0.5},
    "training": {"updates": 2, "batch": {"sentences": 4}, "optimizer": {"name": "adam", "learning_rate": 0.01},
                 "validate_every": 1},
    "decoding": {"beam": 2},
    "seeds": [3],
}  # fmt: skip
VARIANTS = {
    "own": {"task": "words"},
    "rival": {"task": "words", "model": {"paper": "luong", "settings": LUONG}},
    "other": {"task": "words", "model": {"paper": "bahdanau", "settings": BAHDANAU}},
    "later": {"task": "words", "model": {"paper": "elsewhere", "settings": {}}, "not_run": "of its length"},
    "count": {"task": "words", "model": {"study": "count"}},
}


def config(model):
    """A variant whose own ``model`` section lies over the task's."""
    value = {"task": "words", **TASK, "model": TASK["model"] | model}
    return build(TranslationRun, value, where="test").at("toy/smoke.yaml", "rival", model)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    choose = random.Random(1)
    for split, count in {"train": 20, "valid": 5, "test": 5}.items():
        lines = [[choose.randrange(8) for _ in range(choose.choice((2, 4)))] for _ in range(count)]
        for side in "ab":
            (folder / f"{split}.{side}").write_text(
                "".join(" ".join(f"{side}{n}" for n in line) + "\n" for line in lines)
            )
    out = folder / "out"
    out.mkdir()
    REPLICATION.prepare(build(ParallelCorpusConfig, TASK["corpus"], where="test"), folder, out)
    return out


@pytest.fixture
def project(prepared, tmp_path, monkeypatch):
    """A project with one prepared task, this paper, and the papers that it borrows from."""
    runs = toy_project(tmp_path, REPLICATION, monkeypatch, "words", TASK, VARIANTS, prepared)
    papers = tmp_path / "replications"
    for paper in ("luong", "bahdanau"):
        (papers / paper).symlink_to(ROOT / "replications" / paper)
    (tmp_path / "shared").symlink_to(ROOT / "shared")
    (papers / "toy" / "replication.py").write_text("from shared.layers import deferred\n")
    return runs


@pytest.mark.parametrize(
    ("variant", "kind", "parameter"),
    [("rival", EncoderDecoder, "encoder.embedding.weight"), ("other", RNNencdec, "embedding.weight")],
)
def test_a_borrowed_model_is_the_other_papers_with_its_own_settings_alone(variant, kind, parameter, prepared):
    lender, lent = borrowed_route(config({}).model_copy(update={"model": VARIANTS[variant]["model"]}))
    text = PreparedText.load(prepared)
    model = lender.model(lent, text)
    assert isinstance(model, kind)
    assert model.get_parameter(parameter).shape == (len(text.target), 6)
    assert model.dropout.p == 0  # and not the task's 0.5
    assert lent.model == VARIANTS[variant]["model"]["settings"]
    assert (lent.corpus, lent.training, lent.decoding) == (config({}).corpus, config({}).training, config({}).decoding)


@pytest.mark.parametrize("variant", ["rival", "other", "count"])
def test_it_goes_through_the_stages_of_this_paper(variant, project, capsys):
    for stage in (stages.train_stage, stages.evaluate_stage, stages.train_stage):
        stage(f"toy.{variant}", "smoke")
    assert f"toy.{variant} seed 3: finished before, kept." in capsys.readouterr().out
    metrics = json.loads((project / variant / "metrics.json").read_text())
    assert metrics["mean"].keys() >= ({"words"} if variant == "count" else {"bleu", "perplexity"})
    record = json.loads((project / variant / "train" / "seed3" / "run.json").read_text())
    assert record["updates"] == (0 if variant == "count" else 2)
    assert record["parameters"]["model"] == TASK["model"] | VARIANTS[variant]["model"]


def test_a_borrowed_model_is_rehearsed_and_a_study_is_not():
    parameters, seconds = REPLICATION.rehearse(config(VARIANTS["rival"]["model"]))
    assert parameters == sum(p.numel() for p in EncoderDecoder(
        source_vocabulary=12, target_vocabulary=12, attention=None, dropout=0.0, **LUONG
    ).parameters())  # fmt: skip
    assert seconds > 0
    with pytest.raises(ReplicationError, match="nothing to rehearse"):
        REPLICATION.rehearse(config({"study": "count"}))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"paper": "lung", "settings": {}}, r"there is no paper 'lung' \(did you mean 'luong'\?\)"),
        ({"paper": "../luong", "settings": {}}, "there is no paper '../luong'"),
        ({"paper": 3, "settings": {}}, "'paper': input should be a valid string, got 3"),
        ({"paper": "luong"}, "'settings': field required"),
        ({"paper": "luong", "setting": LUONG}, r"unknown key 'setting' \(did you mean 'settings'\?\)"),
        ({"paper": "luong", "settings": LUONG | {"hiden_size": 3}},
         r"model.settings, for a model of luong: unknown key 'hiden_size' \(did you mean 'hidden_size'\?\)"),
        ({"paper": "luong", "settings": {"aligner": "ibm1"}}, "for a model of luong: .*unknown key 'aligner'"),
        ({"paper": "luong", "settings": LUONG, "study": "count"}, "it has 'paper' and 'study'; leave in one"),
        ({"study": "cuont"}, r"there is no study 'cuont' \(did you mean 'count'\?\)"),
        ({"study": "count", "words": 3}, "unknown key 'words'"),
        ({"stduy": "count"}, "unknown key 'stduy'"),
    ],
)  # fmt: skip
def test_a_wrong_section_is_refused_where_it_is(model, message):
    with pytest.raises(ReplicationError, match=message) as error:
        REPLICATION.check(config(model))
    assert str(error.value).startswith("toy/smoke.yaml: variants.rival.model")


def test_a_paper_without_models_that_translate_lends_none():
    with pytest.raises(ReplicationError, match=r"variants\.rival\.model: performer has no model that translates"):
        REPLICATION.check(config({"paper": "performer", "settings": {}}))


def test_the_settings_of_the_tasks_networks_do_not_reach_a_route():
    seen = []
    routed = Routed(
        OWN, routes={"kind": lambda variant: (seen.append(variant.model), (Count(), variant))[1]},
        sections={"kind": RouteSection},
    )  # fmt: skip
    assert routed.descriptions(config({"kind": "x", "layers": 9, "more": 1}), Path()) == {}
    assert seen == [{"kind": "x", "layers": 9, "more": 1}]  # its own, which the route refuses if it does not know them


def test_a_setting_that_a_study_does_not_read_is_refused():
    with pytest.raises(ReplicationError, match="unknown key 'layers'"):
        REPLICATION.check(config({"study": "count", "layers": 9}))
    REPLICATION.check(config({"study": "count"}))  # the task's own layers are the networks'


def test_every_route_has_a_section():
    with pytest.raises(ValueError, match=r"routes \['aligner'\] do not fit the sections \[\]"):
        Routed(OWN, routes={"aligner": aligner_route}, sections={})


def test_without_a_routes_key_a_variant_is_the_papers_own():
    runner, same = REPLICATION._runner(config({"layers": 4}))
    assert runner is OWN
    assert same.model["layers"] == 4
    assert isinstance(REPLICATION._runner(config({"aligner": "ibm1"}))[0], AlignerRunner)


def test_a_lenders_code_is_the_borrowers(project):
    """The stage writes it for the whole paper; a checkpoint belongs to the code of its own variant."""
    settings = ScaleFile("toy", "smoke")
    assert settings.lenders(settings.variants) == {"luong", "bahdanau"}  # 'later' is not run here
    assert settings.lenders(["own", "count"]) == set()
    stages.code_stage("toy", "smoke")
    written = [json.loads((project / "code" / f"{name}.json").read_text()) for name in ("training", "evaluation")]
    assert written == [training_code("toy", "luong", "bahdanau"), evaluation_code("toy", "luong", "bahdanau")]
    assert written[0].keys() - training_code("toy").keys() >= {
        "replications/luong/model.py", "replications/bahdanau/model.py", "shared/attention/additive.py",
        "shared/attention/alignments.py",
    }  # fmt: skip
    assert "shared/decoding/beam.py" in written[1]


def test_an_average_is_judged_only_where_one_is_made():
    value = {"task": "words", **TASK, "evaluation": {"checkpoint": "average"}}
    with pytest.raises(ReplicationError, match=r"evaluation\.checkpoint 'average' needs training\.average"):
        build(TranslationRun, value, where="test")
    value["training"] = TASK["training"] | {"average": {"last": 2, "every": 1}}
    assert build(TranslationRun, value, where="test").training.average.last == 2


def test_the_average_of_a_borrowed_model_is_judged(project):
    home = Path("replications") / "toy" / "smoke.yaml"
    content = json.loads(home.read_text())
    content["tasks"]["words"]["training"]["average"] = {"last": 2, "every": 1}
    content["tasks"]["words"]["evaluation"] = {"checkpoint": "average"}
    home.write_text(json.dumps(content))
    for stage in (stages.train_stage, stages.evaluate_stage):
        stage("toy.rival", "smoke")
    folder = project / "rival" / "train" / "seed3"
    record = json.loads((folder / "run.json").read_text())
    assert record["checkpoints"] == ["average.ckpt", "best.ckpt", "last.ckpt"]
    average = folder / "checkpoints" / "average.ckpt"
    before = torch.load(average, weights_only=True)["state_dict"]
    average.unlink()
    stages.train_stage("toy.rival", "smoke")  # which sees that it is gone
    again = torch.load(average, weights_only=True)["state_dict"]
    assert all(torch.equal(again[name], value) for name, value in before.items())
