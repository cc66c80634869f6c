"""What is said of Xu et al. (2015): its tables and sizes as printed, its own settings, and figures in the claims."""

import math
from functools import partial

import pytest

from replications.show_attend_tell.attention import HardAttention, MeanVector, NoGlimpse, SoftAttention
from replications.show_attend_tell.model import CaptionGenerator
from replications.show_attend_tell.replication import build_model
from replications.show_attend_tell.settings import ModelConfig
from shared.pipeline.config import ScaleFile
from shared.tasks.captioning.settings import CaptioningRun
from shared.vision.features import Grid
from shared.vision.settings import LAYERS
from tests.replications.shipped_variants import facts, parameters, scale_file_of, shipped

pytestmark = pytest.mark.usefixtures("shapes_alone")
PRINTED = {
    "t1-flickr8k": {
        "Google NIC": [63.0, 41.0, 27.0, None, None],
        "Log Bilinear": [65.6, 42.4, 27.7, 17.7, 17.31],
        "Soft-Attention": [67.0, 44.8, 29.9, 19.5, 18.93],
        "Hard-Attention": [67.0, 45.7, 31.4, 21.3, 20.30],
    },
    "t1-flickr30k": {
        "Google NIC": [66.3, 42.3, 27.7, 18.3, None],
        "Log Bilinear": [60.0, 38.0, 25.4, 17.1, 16.88],
        "Soft-Attention": [66.7, 43.4, 28.8, 19.1, 18.49],
        "Hard-Attention": [66.9, 43.9, 29.6, 19.9, 18.46],
    },
    "t1-coco": {
        "CMU/MS Research": [None, None, None, None, 20.41],
        "MS Research": [None, None, None, None, 20.71],
        "BRNN": [64.2, 45.1, 30.4, 20.3, None],
        "Google NIC": [66.6, 46.1, 32.9, 24.6, None],
        "Log Bilinear": [70.8, 48.9, 34.4, 24.3, 20.03],
        "Soft-Attention": [70.7, 49.2, 34.4, 24.3, 23.90],
        "Hard-Attention": [71.8, 50.4, 35.7, 25.0, 23.04],
    },
}
"""Table 1: BLEU-1 to BLEU-4 and METEOR."""

COCO = {
    "attention": "soft", "m": 512, "n": 1800, "a": 512, "attention_layers": 2, "initial_layers": 2, "gate": True,
    "penalty": 1.0, "dropout": 0.5, "tanh_output": True,
}  # fmt: skip
"""evaluate_coco.py."""

ADAM = {"name": "adam", "learning_rate": 2e-4, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
RMSPROP = {"name": "rmsprop", "learning_rate": 1e-4, "decay": 0.95, "momentum": 0.9, "epsilon": 1e-4}
HARD = {"reinforce": 0.1, "entropy": 0.002, "sampling": 0.5, "coin": "image", "pathwise": True}
EPOCHS = {"flickr8k": (6_000, 100), "flickr30k": (29_000, 50), "coco": (82_783, 50)}
"""Training images, of five captions each, and how often they are read at most."""


def parts(model: CaptionGenerator) -> list[int]:
    """In the order of paper.yaml."""
    decoder = model.decoder
    assert decoder.f_beta is not None
    return [
        parameters(model.embedding),
        parameters(model.initial),
        parameters(decoder.from_y) + decoder.from_h.numel() + decoder.from_z.numel(),
        parameters(decoder.glimpse) + decoder.w_d.numel(),
        parameters(decoder.f_beta),
        parameters(model.output),
    ]


@pytest.mark.parametrize(
    ("column", "n", "layers", "total"), [("COCO", 1800, 2, 35_333_450), ("one layer", 1000, 1, 20_927_338)]
)
def test_the_parts_in_paper_yaml_are_those_of_the_modules(column: str, n: int, layers: int, total: int) -> None:
    counts = facts("show_attend_tell").parameter_counts
    assert counts is not None
    model = CaptionGenerator(
        vocabulary=10_000, embedding_size=512, hidden_size=n, annotation_size=512,
        glimpse=SoftAttention(annotation_size=512, attention_size=512, layers=layers),
        gate=True, initial_layers=layers, dropout=0.5, tanh=True,
    )  # fmt: skip
    assert parts(model) == [part[column] for part in counts.parts]
    assert parameters(model) == counts.totals[column] == total


def test_the_tables_are_printed_as_in_the_paper() -> None:
    tables = {table.id: table for table in facts("show_attend_tell").tables}
    assert tables.keys() == PRINTED.keys()
    for name, rows in PRINTED.items():
        table = tables[name]
        printed = [[row[column.key] for column in table.columns] for row in table.rows]
        assert printed == list(rows.values())
        for number, system in enumerate(rows):
            assert str(table.rows[number]["label"]).startswith(system)
            assert bool(table.variants(number)) == system.endswith("-Attention")
        assert {column.metric for column in table.columns} == {"bleu1", "bleu2", "bleu3", "bleu4", "meteor"}


@pytest.mark.parametrize("task", EPOCHS)
def test_the_papers_own_settings(task: str) -> None:
    settings = ScaleFile("show_attend_tell", "paper_scale")
    run = settings.run(f"{task}-soft")
    smaller = {"n": 1000, "attention_layers": 1, "initial_layers": 1} if task == "flickr8k" else {}
    sizes = COCO | smaller
    assert {name: run.model[name] for name in sizes} == sizes
    assert run.model["supervision"] == 0.0
    assert run.training.optimizer.model_dump(exclude={"weight_decay", "decoupled"}) == (
        RMSPROP if task == "flickr8k" else ADAM
    )
    assert run.training.batch.model_dump(include={"sentences", "equal_lengths"}) == {
        "sentences": 64, "equal_lengths": True
    }  # fmt: skip
    assert (run.training.clip, run.training.loss_per, run.training.monitor) == (None, "sentence", "bleu")
    assert (run.training.validate_every, run.training.patience) == (1000 if task == "flickr8k" else 2000, 10)
    images, epochs = EPOCHS[task]
    assert run.training.updates == pytest.approx(epochs * math.ceil(5 * images / 64), rel=1e-3)
    corpus = run.corpus.model_dump()
    assert (corpus["tokenizer"]["size"], corpus["max_words"]) == (10_000, 100)
    assert corpus["encoder"] == {
        "name": "vgg19", "layer": "conv5_4", "side": 224, "pool": 1, "standardise": False,
    }  # fmt: skip
    hard = settings.run(f"{task}-hard").model
    assert hard == run.model | {"attention": "hard", "penalty": 0.0, "hard": HARD}


GLIMPSES = {
    "soft": SoftAttention,
    "supervised": SoftAttention,
    "hard": HardAttention,
    "mean": MeanVector,
    "initial": NoGlimpse,
}
NAMED = {
    "soft": {},
    "soft-penalty-0": {"penalty": 0.0},
    "soft-penalty-tenth": {"penalty": 0.1},
    "soft-penalty-code": {"penalty": 1.0, "penalty_mean": "places"},
    "soft-no-gate": {"gate": False},
    "soft-likelihood": {},
    "supervised": {"penalty": 0.0, "supervision": 1.0},
    "hard": {"attention": "hard", "penalty": 0.0},
    "hard-sampled": {"attention": "hard", "penalty": 0.0},
    "mean": {"attention": "mean", "penalty": 0.0},
    "soft-twice": {},
    "mean-twice": {"attention": "mean", "penalty": 0.0},
    "initial": {"attention": "initial", "penalty": 0.0, "gate": False},
}
"""What of the model a variant's name announces, beside soft attention with the paper's λ = 1 and a gate."""


scale_file = partial(scale_file_of, "show_attend_tell")


def run_of(scale: str, variant: str) -> CaptioningRun:
    run = scale_file(scale).run(variant)
    assert isinstance(run, CaptioningRun)
    return run


def grid_of(run: CaptioningRun) -> Grid:
    encoder = run.corpus.encoder
    layer = LAYERS[encoder.name][encoder.layer]
    side = encoder.side // layer.stride // encoder.pool
    return Grid(side, side, layer.size)


def closed_formula(config: ModelConfig, vocabulary: int, d: int) -> int:
    """Parameters by section 3.1.2's matrices and the biases of the code."""
    m, n, a = config.m, config.n, config.a
    attends, seen = config.attention in ("soft", "hard"), 0 if config.attention == "initial" else d
    initial = (config.initial_layers - 1) * (d * d + d) + 2 * (d * n + n)
    lstm = 4 * n * (m + n + seen + 1)
    attention = (d * a + a) + (config.attention_layers - 1) * (a * a + a) + n * a + a + 1
    output = n * m + m + (seen * m + m if seen else 0) + m * vocabulary + vocabulary
    return vocabulary * m + initial + lstm + attends * attention + (config.gate and seen > 0) * (n + 1) + output


@shipped("show_attend_tell")
def test_every_variant_is_what_its_name_says(scale: str, variant: str) -> None:
    run = run_of(scale, variant)
    name = variant.removeprefix(f"{run.task}-")
    config, grid = ModelConfig.model_validate(run.model), grid_of(run)
    assert {field: getattr(config, field) for field in NAMED[name]} == NAMED[name]
    model = build_model(config, 300, grid)
    glimpse = model.decoder.glimpse
    assert type(glimpse) is GLIMPSES[name.split("-")[0]]
    assert (model.decoder.f_beta is not None) == config.gate
    assert (model.reinforce is not None) == (config.attention == "hard")
    assert (model.penalty, model.penalty_mean) == (config.penalty, config.penalty_mean)
    assert (config.penalty_mean == "places") == (name == "soft-penalty-code")
    assert model.supervision == config.supervision
    if name.startswith("soft"):
        assert config.penalty == NAMED[name].get("penalty", 1.0)
    if model.reinforce is not None:
        assert model.reinforce.sampling == (1.0 if name == "hard-sampled" else 0.5)
    # On its own a captioner's weights are chosen by BLEU.
    assert (run.training.monitor or "bleu") == ("loss" if name == "soft-likelihood" else "bleu")
    assert sum(p.numel() for p in model.parameters()) == closed_formula(config, 300, grid.size)


def usual(task: str) -> str:
    """The variant of a task which the others are changes of."""
    return "soft" if task == "scenes" else f"{task}-soft"


OWN_SEEDS = {
    ("bench", "flickr8k-soft-penalty-0"): [*range(31, 43)],
    ("bench", "flickr8k-hard"): [1, 2, 3, 4, 5],
    ("bench", "flickr8k-mean"): [1, 2, 3, 4, 5],
}
"""Seeds of variants that are not trained with all those of soft attention, which has two sets."""


@shipped("show_attend_tell")
def test_networks_of_a_task_differ_in_nothing_but_what_they_are_named_for(scale: str, variant: str) -> None:
    run = run_of(scale, variant)
    soft = run_of(scale, usual(run.task))
    twice = variant.endswith("-twice")
    seeds = OWN_SEEDS.get((scale, variant), soft.seeds[:3] if twice else soft.seeds)
    assert (run.corpus, run.evaluation, run.seeds) == (soft.corpus, soft.evaluation, seeds)
    assert set(run.seeds) <= set(soft.seeds), "each has a pair"
    changes = {"updates": 2 * soft.training.updates} if twice else {}
    assert run.training.model_dump(exclude={"monitor"}) == soft.training.model_dump(exclude={"monitor"}) | changes
    named: set[str] = {*NAMED[variant.removeprefix(f"{run.task}-")], "gate", "hard"}
    ours, theirs = (ModelConfig.model_validate(each.model).model_dump(exclude=named) for each in (run, soft))
    assert ours == theirs
    if "hard" not in variant:  # a scale may leave the gate to soft attention, as the text does
        assert run.model.get("gate", True) == NAMED[variant.removeprefix(f"{run.task}-")].get("gate", True)
