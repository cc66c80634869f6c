"""What is said of Xu et al. (2015): its tables and sizes as printed, its own settings, and figures in the claims."""

import math

import pytest

from replications.show_attend_tell.attention import SoftAttention
from replications.show_attend_tell.model import CaptionGenerator
from shared.config import load_yaml
from shared.data.cards import load_card
from shared.pipeline.config import ScaleFile
from tests.replications.shipped_variants import REPLICATIONS, facts, parameters

pytestmark = pytest.mark.usefixtures("shapes_alone")
FOLDER = REPLICATIONS / "show_attend_tell"
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


def test_what_matters_of_attention_is_twice_chance() -> None:
    """The share of a scene that a box has, which is what even attention gets, is measured in the data's card."""
    assert "6.1 % of a scene on average" in " ".join(" ".join(load_card("emoji_scenes").traps).split())
    (claim,) = (each for each in load_yaml(FOLDER / "claims.yaml")["claims"] if each["id"] == "X15-C4")
    assert claim["primary"]["relevant"] == 0.06


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
