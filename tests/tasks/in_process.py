"""Variants trained and judged in the process of the test, without a project around them."""

import gzip
import json
from types import SimpleNamespace

from pydantic import Field

from shared.config import Strict, build
from shared.tasks.kinds import open_data, part_of
from shared.tasks.replication import Replication, runner_of


class ToyConfig(Strict):
    """The settings of a small network."""

    size: int = Field(ge=1)


class Trained:
    """Stands for a replication whose models are trained already."""

    def __init__(self, *models):
        self.models = [model.eval() for model in models]

    def trained_models(self, *_):
        return self.models


def run_config(kind, corpus, **sections):
    """A variant of a kind with this corpus and these sections; of all else nothing matters."""
    batch = {"sentences": 2, "length": 4} if kind == "language" else {"sentences": 2}
    whole = {
        "task": "toy", "model": {}, "seeds": [1], "corpus": {"dataset": "toy"} | corpus,
        "training": {
            "updates": 2, "batch": batch, "validate_every": 1, "optimizer": {"name": "adam", "learning_rate": 0.1},
        },
    } | {
        "translation": {"decoding": {"beam": 1}},
        "language": {"evaluation": {"length": 8, "reach": {"memory": 4}, "columns": 2}},
    }.get(kind, {})  # fmt: skip
    for section, values in sections.items():
        whole[section] = whole.get(section, {}) | values if isinstance(values, dict) else values
    return build(part_of(kind, "settings").RUN, whole, where="test")


def prepared(kind, corpus, dataset, out):
    """What preparing a fetched folder says, also in a file, and the task that it leaves in ``out``."""
    config = run_config(kind, corpus)
    out.mkdir(parents=True, exist_ok=True)
    summary = part_of(kind, "corpus").prepare(config.corpus, dataset, out)
    assert json.loads((out / "summary.json").read_text()) == json.loads(json.dumps(summary))
    return summary, open_data(config, out)


def judged(config, data, model, out):
    """Metrics and examples of a model that is trained already."""
    metrics = part_of(config.kind, "evaluation").evaluate(Trained(model), config, data, [out], out)
    return metrics, read_examples(out)


def read_examples(folder):
    with gzip.open(folder / "examples.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write_columns(folder, split, **columns):
    """Write ``<split>.<name>`` with the lines of every column."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in columns.items():
        (folder / f"{split}.{name}").write_text("".join(f"{line}\n" for line in lines))


def paper(kind, model, build_model, routes=(), runners=(), **settings):
    """A replication of toys: ``model`` checks the settings of networks."""
    module = SimpleNamespace(KIND=kind, ModelConfig=model, ROUTES=dict(routes), **settings)
    return Replication(module, build_model, dict(runners))


def train(replication, config, prepared, folder):
    """Train every seed in ``folder/seed<k>``; returns what each run's record and number of parameters are."""
    runner, config = runner_of(replication, config)
    given = {"prepared": prepared, "fingerprint": "", "label": "toy"}
    return [runner.train(config, folder=folder / f"seed{seed}", seed=seed, **given) for seed in config.seeds]


def judge(replication, config, prepared, folder):
    """Judge every trained seed; returns the metrics of each."""
    runner, config = runner_of(replication, config)
    places = [(folder / f"seed{seed}", folder / f"judged{seed}") for seed in config.seeds]
    return [runner.evaluate(config, prepared=prepared, trained=[run], out=out) for run, out in places]


def run(replication, config, prepared, folder):
    """Train and judge."""
    train(replication, config, prepared, folder)
    return judge(replication, config, prepared, folder)


def examples_of(folder, seed):
    return read_examples(folder / f"judged{seed}")


def draw_kept(exhibit, folder, **sources):
    """What an exhibit draws into ``folder``, of variants by name and the path of what their first seed has kept."""
    results = {}
    for name, path in sources.items():
        results[name] = SimpleNamespace(variant=name, seeds=(1,), attention=lambda seed, path=path: path)
    return list(exhibit.draw(results, folder))
