"""The scale with the papers' own data has the papers' own settings, and claims quote the papers' own effects."""

import math
from functools import partial

import numpy as np
import pytest

from replications.performer.kernel_error import kernel_mse
from shared.claims.comparisons import Exact
from shared.claims.schema import Claim, load_claims
from shared.config import flat
from tests.replications.shipped_variants import REPLICATIONS, columns_of, scale_file_of

RADAM = {"training.optimizer.name": "radam", "training.optimizer.weight_decay": 0.01, "training.clip": 1.0}
FAVOR = {
    "training.optimizer.name": "adam", "training.optimizer.learning_rate": 1e-3, "training.optimizer.beta2": 0.98,
    "training.optimizer.epsilon": 1e-9, "training.clip": 0.5, "training.schedule.name": "constant",
    "model.dropout": 0.1, "model.features": 256,
}  # fmt: skip
# 1e-4 times the sum of squares is, in PyTorch's way, half of twice that.
LIN = {"training.optimizer.name": "sgd", "training.optimizer.learning_rate": 0.06,
       "training.optimizer.weight_decay": 2e-4, "training.clip": 0.5, "model.attention.penalty": 1.0}  # fmt: skip
XU = {"training.batch.sentences": 64, "training.batch.equal_lengths": True, "training.clip": None,
      "training.monitor": "bleu", "training.patience": 10, "model.penalty": 1.0, "model.hard.reinforce": 0.1,
      "model.hard.entropy": 0.002, "model.hard.coin": "image", "corpus.encoder.layer": "conv5_4"}  # fmt: skip
VASWANI = {"training.label_smoothing": 0.1, "training.smoothing_over": "others", "training.clip": None,
           "training.schedule.warmup": 4000, "decoding.beam": 4, "decoding.alpha": 0.6,
           "decoding.maximum_extra": 50, "training.optimizer.beta2": 0.98}  # fmt: skip


def dai(dropout, dropatt, warmup, updates, length, batch, segment, memory, clamp):
    """By the scripts: tgt_len is mem_len in training; the last three are of evaluation."""
    return {
        "training.optimizer.learning_rate": 2.5e-4, "training.clip": 0.25, "training.schedule.name": "cosine",
        "model.dropout": dropout, "model.dropatt": dropatt, "training.schedule.warmup": warmup,
        "training.updates": updates, "training.batch.length": length, "training.memory": length,
        "training.batch.sentences": batch, "evaluation.length": segment, "evaluation.reach.memory": memory,
        "evaluation.reach.clamp": clamp, "evaluation.reach.same_length": True, "training.validate_every": 4000,
    }  # fmt: skip


OWN = {
    "self_attentive.yelp-attention": {**LIN, "training.updates": 100 * 15_625, "training.batch.sentences": 32},
    "self_attentive.age-attention": {**LIN, "training.updates": 100 * 4_281, "training.batch.sentences": 16},
    "self_attentive.yelp-cnn": {"training.clip": None, "model.b": 3000},
    "self_attentive.snli-attention": {
        "training.optimizer.name": "adagrad", "training.optimizer.learning_rate": 0.01, "training.clip": None,
        "training.updates": 4 * 10_988, "model.attention.penalty": 0.3, "model.dropout": 0.0,
    },
    "show_attend_tell.flickr8k-soft": {
        **XU, "training.optimizer.name": "rmsprop", "training.optimizer.epsilon": 1e-4,
        "training.optimizer.momentum": 0.9, "training.updates": 100 * 469,
    },
    "show_attend_tell.coco-soft": {
        **XU, "training.optimizer.name": "adam", "training.optimizer.learning_rate": 2e-4,
        "training.updates": 50 * 6_468,
    },
    "transformer.corpus-base": {
        **VASWANI, "training.updates": 100_000, "training.average.last": 5, "training.average.every": 1_500
    },
    "transformer.corpus-big": {
        **VASWANI, "training.updates": 300_000, "training.average.last": 20, "training.average.every": 600,
        "model.p_drop": 0.3,
    },
    "transformer.french-big": {**VASWANI, "training.updates": 300_000, "model.p_drop": 0.1},
    "transformer.parsing-transformer": {"decoding.beam": 21, "decoding.alpha": 0.3, "decoding.maximum_extra": 300},
    "transformer_xl.enwik8-12l": dai(0.1, 0.0, 0, 400_000, 512, 22, 80, 2100, 820),
    "transformer_xl.enwik8-24l": dai(0.15, 0.15, 4000, 400_000, 768, 64, 128, 3800, 1000),
    "transformer_xl.text8-24l": dai(0.15, 0.15, 4000, 400_000, 768, 64, 128, 3800, 1000),
    "transformer_xl.wikitext103-base": dai(0.1, 0.0, 0, 200_000, 150, 60, 64, 640, 400),
    "transformer_xl.wikitext103-large": dai(0.2, 0.2, 16_000, 4_000_000, 384, 128, 128, 1600, 1000),
    "transformer_xl.lm1b-base": dai(0.0, 0.0, 20_000, 500_000, 32, 224, 32, 128, None),
    "transformer_xl.lm1b-large": dai(0.05, 0.05, 30_000, 1_200_000, 32, 512, 32, 128, None),
    "linear_transformer.copy-linear": {
        **RADAM, "training.updates": 10_000, "training.optimizer.learning_rate": 1e-3, "training.schedule.hold": 3000,
        "training.schedule.factor": 0.1, "training.batch.sentences": 64,
    },
    "linear_transformer.mnist-linear": {
        **RADAM, "training.updates": 250 * 5_500, "training.optimizer.learning_rate": 1e-4,
        "training.batch.sentences": 10,
    },
    "linear_transformer.cifar10-linear": {"training.updates": 100 * 11_250, "training.batch.sentences": 4},
    "linear_transformer.cifar10-softmax": {"training.updates": 100 * 45_000 // 3, "training.batch.sentences": 1},
    "performer.transformer": {**FAVOR, "corpus.length": 1024},
    "performer.masked-positive": FAVOR,
    "performer.concatenated-relu": {**FAVOR, "corpus.length": 8192},
}  # fmt: skip


@pytest.mark.parametrize("variant", OWN)
def test_the_papers_own_settings(variant: str) -> None:
    paper, _, name = variant.partition(".")
    run = scale_file_of(paper, "paper_scale").run(name)
    settings = flat(run.model_dump(exclude={"model"}) | {"model": dict(run.model)})
    assert {key: settings.get(key) for key in OWN[variant]} == OWN[variant]


@pytest.mark.parametrize("variant", ["base", "width-half", "width-2x", "big", "corpus-big", "parsing-transformer"])
def test_the_peak_of_the_transformers_rate_is_the_papers_formula(variant: str) -> None:
    run = scale_file_of("transformer", "paper_scale").run(variant)
    peak = run.model["d_model"] ** -0.5 * run.training.schedule.warmup**-0.5
    assert run.training.optimizer.learning_rate == pytest.approx(peak, rel=1e-5)
    assert (run.training.batch.tokens or 0) * run.training.accumulate == 25_000


def claims(paper: str, scale: str = "paper_scale") -> dict[str, Claim]:
    return {claim.id: claim for claim in load_claims(REPLICATIONS / paper / "claims.yaml", scale).claims}


def test_effects_that_claims_quote_are_those_of_the_papers_tables() -> None:
    quoted = {
        f"{paper} {name}": claim.primary.paper
        for paper in ("transformer_xl", "linear_transformer", "performer", "self_attentive")
        for name, claim in claims(paper).items() if claim.primary is not None and claim.primary.paper is not None
    }  # fmt: skip
    proteins = columns_of("performer", "t1")["accuracy"]
    digits, yelp = columns_of("linear_transformer", "t1")["bits"], columns_of("self_attentive", "t1-yelp")["yelp"]
    without = columns_of("self_attentive", "t3-yelp")["yelp"]
    of_tables = {
        "transformer_xl D19-C1": 29.02 / 26.77, "transformer_xl D19-C2": 27.1 / 25.2,
        "transformer_xl D19-C3": 27.94 / 26.77, "transformer_xl D19-C4": math.log2(23.35 / 23.09),
        "transformer_xl D19-C5": 700 / 128, "linear_transformer K20-C3": digits[-1] / digits[0],
        "performer C21-C7": proteins[7] - proteins[6], "self_attentive L17-C1": yelp[2] - yelp[0],
        "self_attentive L17-C2": without[0] - without[1],
    }  # fmt: skip
    assert {name: quoted[name] for name in of_tables} == pytest.approx(of_tables, abs=5.01e-3)


def test_tables_that_are_computed_follow_from_the_others() -> None:
    """Speed-ups of linear attention, and multiplications of FAVOR+ beside exact attention."""
    of = partial(columns_of, "linear_transformer")
    for pictures, throughput, latency in (("mnist", "t1", "t4"), ("cifar", "t2", "t5")):
        *others, linear = of(throughput)["images"]
        assert of("t6")[pictures] == pytest.approx([linear / other for other in others], rel=1e-3)
        for device in ("cpu", "gpu"):
            *others, linear = of(latency)[device]
            assert of("t6")[f"{pictures}_{device}"] == pytest.approx([o / linear for o in others], abs=5.01e-3)
    heads, hidden, width, features, shown = 8, 2048, 512, 256, columns_of("performer", "t7")
    for length, core, body in zip((512, 1024, 4096, 8192, 32768), shown["core"], shown["body"], strict=True):
        exact, rest = 2 * length**2 * width, 4 * length * width**2 + 2 * length * width * hidden
        favor = 4 * length * features * width + 2 * length * heads * features
        assert core == pytest.approx(exact / favor, rel=6e-3)
        assert body == pytest.approx((exact + rest) / (favor + rest), abs=5.01e-3)


@pytest.mark.parametrize("scale", ["quick", "paper_scale"])
def test_effects_of_lemma_2_that_claims_quote_are_its(scale: str) -> None:
    seen = set()
    for row in (row for claim in claims("performer", scale).values() for row in claim.rows()):
        subject, _, angle = row.metric.partition(".mse_ratio_a")
        if subject == "trigonometric_over_positive_iid" and not isinstance(row, Exact):
            radians = np.radians(float(angle))
            x, y = 0.7 * np.array([[1.0, 0.0], [np.cos(radians), np.sin(radians)]])
            over, under = (
                float(kernel_mse(x, y, projections=16, estimator=name, orthogonal=False))
                for name in ("trigonometric", "positive")
            )
            assert row.paper == pytest.approx((over / under) ** row.sign, rel=0.02)
            seen.add(angle)
    assert seen == {"150", "60"}
