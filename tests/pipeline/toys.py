"""A project of toy papers, one of each kind of task, made of files as real papers are: workers import them."""

import contextlib
import gzip
import json
import multiprocessing
import os
import shutil
import signal
import sys
from dataclasses import dataclass
from functools import partial
from multiprocessing import forkserver
from pathlib import Path

import pytest
import torch
import yaml

from shared.data.cards import load_card
from shared.data.fetch import MANIFEST, Manifest, _record
from shared.errors import ReplicationError
from shared.pipeline.__main__ import main
from shared.tasks.captioning import corpus as captioned
from shared.tasks.replication import Replication
from shared.training.pool import ONE_THREAD, PRELOAD
from tests.pipeline.scratch import ROOT, change_yaml, refusal
from tests.tasks.captioning import squares
from tests.tasks.language import toy_language_models
from tests.tasks.sequences import toy_sequence_models
from tests.tasks.sets import toy_sets

UPDATES, EVERY, SEEDS = 40, 20, [3, 4]
BREAKS = Path("breaks.yaml")
"""What goes wrong in the project: ``seed`` at batch ``batch``, which is an ``error`` or has the worker ``killed``."""
LEFT_OUT = "it would show nothing new"
CANNOT_RUN = "this machine has no such package"
SMOKE = ["--scale", "smoke"]
SERVERS: list[int] = []
"""Processes that have served workers to toy projects; the last one does, if it lives."""


class Breaking(Replication):
    """One seed breaks as :data:`BREAKS` says, and ``elsewhere`` runs on no machine."""

    def cannot_run(self, config):
        return CANNOT_RUN if ".elsewhere." in config.where else None

    def open(self, config, prepared):
        data = super().open(config, prepared)
        if BREAKS.exists():
            object.__setattr__(data, "batches", partial(broken_batches, data.batches))
        return data


def broken_batches(batches, training, seed):
    """The batches of training, of which one breaks."""
    breaks = yaml.safe_load(BREAKS.read_text())
    if breaks["seed"] != seed:
        return batches(training, seed)

    def broken(start):
        for number, batch in enumerate(batches(training, seed)(start), start):
            if number == breaks["batch"]:
                if breaks["how"] == "killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise ReplicationError("the toy breaks")
            yield batch

    return broken


@dataclass(frozen=True)
class Toy:
    """A toy paper.

    Attributes:
        models: the module of its ``Toy`` and ``ToyConfig``.
        task: sections of its task.
        card: of its data set, without what all cards have; None where the data are written as if fetched.
        metric: of its claim, the less the better.
        token: what one is.
        otherwise: an evaluation that must not change training or which examples there are.
        reprepared: settings of the corpus with which other data would be prepared.
        count: of the examples of the splits in ``corpus.test``.
        after: the stage before preparation.
    """

    models: str
    task: dict
    card: dict | None
    metric: str
    token: str
    otherwise: dict
    reprepared: dict
    count: dict[str, int] | None
    after: str = "fetched"


def _task(corpus, rate, batch, evaluation, *, more=None, **training):
    """The sections of a task, whose training these settings change."""
    training = {"updates": UPDATES, "batch": batch, "validate_every": EVERY} | training
    training["optimizer"] = {"name": "adam", "learning_rate": rate}
    return {"corpus": corpus, "training": training, "evaluation": evaluation} | (more or {})


def _generated(task, languages, splits, **parameters):
    counts = {name: {"buckets": [bucket], "per_bucket": count} for name, (bucket, count) in splits.items()}
    source = {"kind": "generated", "task": task, "parameters": {**parameters, "splits": counts}}
    return {"languages": languages, "sources": [source], "splits": dict.fromkeys(splits, "made up")}


def _words(size):
    return {"kind": "words", "size": size}


TOYS = {
    "translation": Toy(
        "tests.tasks.translation.toy_translator",
        _task({"source": "source", "target": "target", "tokenizer": _words(16), "test": ["test", "test_long"]},
              0.02, {"sentences": 20}, {"bleu": "none"}, more={"decoding": {"beam": 2}}),
        _generated(
            "adjacent_swap", {"source": "made-up words", "target": "their translations"},
            {"test": ([3, 6], 12), "test_long": ([7, 9], 6), "valid": ([3, 6], 10), "train": ([3, 6], 80)},
            seed=1, nouns=4, adjectives=3, others=3,
        ),
        "nll_per_token", "word", {"heatmaps": 1}, {"max_words": 5}, {"test": 12, "test_long": 6},
    ),
    "classification": Toy(
        "tests.tasks.classification.toy_classifiers",
        _task({"tokenizer": _words(40), "evidence": "evidence", "test": ["test", "test_hard"]},
              0.05, {"sentences": 10}, {"heatmaps": 2}),
        _generated(
            "tally", {"text": "made-up words", "label": "a value", "evidence": "places"},
            {"test": ([8, 12], 15), "test_hard": ([13, 16], 5), "valid": ([8, 12], 12), "train": ([8, 12], 80)},
            seed=1, keys=1, decoys=1, values=2, key_forms=1, value_forms=2, fillers=6, gap=1, votes=[1, 2],
            distractors=[0, 1],
        ) | {"compared": ["text"]},
        "cross_entropy", "text", {"heatmaps": 1}, {"max_tokens": 9}, {"test": 15, "test_hard": 5},
    ),
    "captioning": Toy(
        "tests.tasks.captioning.squares",
        _task({"encoder": {"name": "efficientnet-lite0", "layer": "block15"}, "tokenizer": _words(40),
               "test": ["test", "pairs"], "images": {"train": 24}},
              0.03, {"sentences": 12}, {"heatmaps": 2, "metrics": ["bleu"]}),
        None, "nll_per_token", "word", {"beam": 2}, {"max_words": 9},
        {name: squares.SPLITS[name] for name in ("test", "pairs")}, after="features",
    ),
    "language": Toy(
        "tests.tasks.language.toy_reader",
        _task({"recalls": "recall", "tokenizer": _words(20), "test": ["test", "test_other"]},
              0.02, {"sentences": 6, "length": 8},
              {"length": 10, "reach": {"memory": 10}, "columns": 3, "block": 50, "memories": [0, 20],
               "samples": {"prompt": 12, "length": 9}}, memory=8),
        toy_language_models.CARD, "word_perplexity", "word", {"length": 7}, {"test": ["test"]}, None,
    ),
    "sequences": Toy(
        "tests.tasks.sequences.toy_sequence_models",
        _task({"of": "copies", "shortest": 2, "longest": 4, "test": ["test", "test_other"],
               "sequences": {"train": 90, "valid": 20, "test": 15, "test_other": 10}},
              0.03, {"sentences": 10}, {"tokens": 60}),
        toy_sequence_models.CARD, "perplexity", "symbol", {"tokens": 11}, {"shortest": 3},
        {"test": 15, "test_other": 10},
    ),
    "sets": Toy(
        "tests.tasks.sets.toy_sets",
        _task({"asked": "number", "numbers": 1, "sizes": [1, 6], "test": ["test", "test_other"]},
              0.03, {"sentences": 10}, {}),
        toy_sets.CARD, "absolute_error", "set", {"batch": 4}, {"sizes": [1, 7]}, {"test": 15, "test_other": 10},
    ),
}  # fmt: skip


def write_project(folder: Path) -> Path:
    """Write ``params.yaml``, the data sets' cards and one paper of each kind, ``toy_<kind>``."""
    serve_workers()
    (folder / "replications").mkdir(parents=True)
    (folder / "replications" / "__init__.py").touch()
    (folder / "shared").symlink_to(ROOT / "shared")
    (folder / ".gitignore").write_text("__pycache__/\n")  # or an import would leave a clean commit behind
    write_yaml(folder / "params.yaml", {"scale": "smoke", "workers": 2, "papers": [f"toy_{kind}" for kind in TOYS]})
    for kind, toy in TOYS.items():
        write_data(folder / "data", kind, toy)
        write_paper(folder / "replications" / f"toy_{kind}", kind, toy)
    return folder


def serve_workers() -> None:
    """Start the server from which the workers of all toy projects are forked; it has imported no project's papers."""
    if forkserver._forkserver._forkserver_pid in SERVERS:
        return
    forkserver._forkserver._stop()  # another's, which has
    multiprocessing.get_context("forkserver").set_forkserver_preload([*PRELOAD, "shared.pipeline.runs", __name__])
    os.environ.update(ONE_THREAD)
    with contextlib.chdir(ROOT):  # where this module is found
        forkserver.ensure_running()
    SERVERS.append(forkserver._forkserver._forkserver_pid)


def write_data(data: Path, kind: str, toy: Toy) -> None:
    """The card of a toy's data set; where nothing can fetch it, also its files as if they had been fetched."""
    name = f"toy_{kind}"
    common = {"title": "A toy", "licence": "none", "citation": "none", "needs_bytes": 1000, "traps": ["none"]}
    pictures = {
        "languages": dict.fromkeys(("captions", "mentions", "boxes", "scene"), "JSON"), "compared": ["scene"],
        "sources": [{"kind": "mirror", "folder": "nowhere"}], "reader": {"name": "scenes"},
        "raw": {"svg/": {"sha256": "0" * 64}}, "splits": dict.fromkeys(("train", "valid", "test"), "scenes"),
    }  # fmt: skip
    write_yaml(data / f"{name}.yaml", common | (pictures if toy.card is None else toy.card) | {"id": name})
    if toy.card is None:
        squares.write_dataset(data / name)
        manifest = Manifest(
            dataset=name, card_sha256=load_card(name, data).fingerprint, source="made by a test", raw={},
            files={path.name: _record(path) for path in sorted((data / name).iterdir())}, dropped={},
        )  # fmt: skip
        (data / name / MANIFEST).write_text(manifest.model_dump_json())


def write_paper(home: Path, kind: str, toy: Toy) -> None:
    """The files of a paper, at the smoke scale alone."""
    home.mkdir()
    (home / "__init__.py").touch()
    (home / "settings.py").write_text(
        f"from {toy.models} import ToyConfig as ModelConfig\n\nKIND = {kind!r}\nROUTES = {{}}\n"
    )
    (home / "replication.py").write_text(
        f"from replications.{home.name} import settings\nfrom {toy.models} import Toy\n"
        "from tests.pipeline.toys import Breaking\n\nREPLICATION = Breaking(settings, Toy)\n"
    )
    (home / "report.py").write_text("FIGURES = ()\n")
    facts = {"short": "Toy", "title": "T", "authors": ["A"], "venue": "V", "year": 2019, "url": "https://example.org"}
    write_yaml(home / "paper.yaml", facts)
    primary = {"kind": "less", "metric": toy.metric, "variants": ["long", "short"], "scale": "log", "relevant": 1.05}
    write_yaml(home / "claims.yaml", {"claims": [{
        "id": "T-C1", "statement": "Longer training helps.", "where": "nowhere", "in_paper": {"text": "none"},
        "primary": primary | {"because": "a test"},
    }]})  # fmt: skip
    short = {"task": "task", "training": {"updates": 2, "validate_every": 1}}
    names = ("long", "short", "elsewhere", "unread")
    write_yaml(home / "variants.yaml", {"kind": kind, "variants": {name: {} for name in names}})
    corpus = {"dataset": home.name, **toy.task["corpus"]}
    write_yaml(home / "smoke" / "params.yaml", {
        "paper": home.name, "scale": "smoke", "deviations": ["It is a toy."],
        "features": ["task"] if toy.after == "features" else [],
        "tasks": {"task": {"after": toy.after, **toy.task, "corpus": corpus, "model": {"size": 12}, "seeds": SEEDS}},
        "variants": {"long": {"task": "task"}, "short": short, "elsewhere": dict(short)},
        "others": [], "left_out": {"reasons": [{"because": LEFT_OUT, "variants": ["unread"]}]},
    })  # fmt: skip


def write_yaml(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content, sort_keys=False))


class Paper:
    """A toy paper in its project, which is the current folder."""

    def __init__(self, kind, root):
        self.kind, self.toy, self.name = kind, TOYS[kind], f"toy_{kind}"
        self.root, self.runs = root, root / "runs" / "smoke" / self.name
        self.settings = root / "replications" / self.name / "smoke" / "params.yaml"
        self.prepared = self.runs / "tasks" / "task"

    def stage(self, stage, *names, status=0):
        for name in names:
            assert main([stage, f"{self.name}.{name}", *SMOKE]) == status

    def prepare(self):
        stages = ["fetch", "prepare"] if self.toy.after == "fetched" else ["fetch", "features", "prepare"]
        for stage in stages:
            self.stage(stage, "task")

    def change(self, section, **values):
        change_yaml(self.settings, lambda content: content["tasks"]["task"][section].update(values))

    def change_variant(self, variant, **sections):
        change_yaml(self.settings, lambda content: content["variants"][variant].update(sections))

    def breaks(self, how, seed, batch=EVERY + 5):
        write_yaml(self.root / BREAKS, {"how": how, "seed": seed, "batch": batch})

    def json(self, path):
        return json.loads((self.runs / path).read_text())

    def weights(self, seed, variant="long"):
        checkpoint = self.runs / variant / "train" / f"seed{seed}" / "checkpoints" / "last.ckpt"
        return torch.load(checkpoint, weights_only=True)["state_dict"]

    def examples(self, seed, variant="long"):
        with gzip.open(self.runs / variant / "evaluation" / f"seed{seed}" / "examples.jsonl.gz", "rt") as lines:
            return [json.loads(line) for line in lines]

    def error(self, capsys, stage, name, *options):
        said = refusal(capsys, stage, f"{self.name}.{name}", *SMOKE, *options)
        return said.splitlines()[-1].removeprefix("error: ")


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def enter(root, patch):
    """Make the project the current one, also for imports of its papers here and in workers."""
    for name in [each for each in sys.modules if each.startswith("replications.toy_")]:
        patch.delitem(sys.modules, name)  # another project's paper of the same name
    patch.chdir(root)
    patch.syspath_prepend(str(root))
    patch.setattr("replications.__path__", [str(root / "replications")])
    patch.setattr(captioned, "fetch", lambda dataset, **_: None)  # the weights of an encoder that has none
    patch.setattr(captioned, "build_encoder", lambda config, **_: squares.Colours())


def copy(kind, project, folder, patch):
    """A paper in a copy of its project, in which a test may change what it wants."""
    root = shutil.copytree(project, folder, symlinks=True)
    enter(root, patch)
    return Paper(kind, root)


def make(kind, folder):
    """Write a project in which the paper of a kind is prepared, trained and judged."""
    root = write_project(folder)
    with pytest.MonkeyPatch.context() as patch:
        enter(root, patch)
        paper = Paper(kind, root)
        paper.prepare()
        for stage in ("train", "evaluate"):
            paper.stage(stage, "long", "short", "elsewhere")
    return root
