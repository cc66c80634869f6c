"""Every variant of every scale is what its name says, and as large as the sizes say."""

from functools import partial

import pytest

from replications.show_attend_tell.attention import HardAttention, MeanVector, NoGlimpse, SoftAttention
from replications.show_attend_tell.replication import build_model
from replications.show_attend_tell.settings import ModelConfig
from shared.tasks.captioning.settings import CaptioningRun
from shared.vision.features import Grid
from shared.vision.settings import LAYERS
from tests.replications.shipped_variants import scale_file_of, shipped

pytestmark = pytest.mark.usefixtures("shapes_alone")
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
    assert (model.penalty, model.supervision) == (config.penalty, config.supervision)
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
