"""What is said of Choromanski et al. (2021): its tables and sizes, its own settings, and figures in the claims."""

from collections.abc import Iterator
from functools import cache, partial
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch

from replications.performer.kernel_error import kernel_mse
from replications.performer.replication import LAYERS, REPLICATION, build_model
from replications.performer.settings import ModelConfig
from shared.claims.comparisons import Exact, Row
from shared.claims.scales import SCALES
from shared.claims.schema import Claim, load_claims
from shared.metrics.registry import known
from shared.pipeline.config import ScaleFile
from shared.tasks.replication import runner_of
from shared.tasks.sequences.scaling import Scaling
from tests.replications.shipped_variants import REPLICATIONS, columns_of, facts

columns = partial(columns_of, "performer")
scales = pytest.mark.parametrize("scale", SCALES)
learned = pytest.mark.parametrize("scale", ["quick", "bench", "paper_scale"])
SIZES = {
    "regular": (8, 6, 2048, 512), "proteins": (8, 36, 1024, 512), "small": (1, 6, 64, 64),
    "Transformer, concatenated": (8, 3, 256, 256),
}  # fmt: skip
"""Heads, layers, d_ff and d, as the paper has them."""
TABLE_2 = {
    "accuracy": [9.92, 30.80, 31.58, 9.07, 19.70, 18.44, 33.32, 36.09, 33.00, 25.07, 24.10, 23.48],
    "perplexity": [17.80, 9.37, 9.17, 17.93, 13.20, 13.63, 9.22, 8.36, 9.24, 12.09, 12.26, 12.41],
}
SMALL = {
    "kernels": {"draws": 8, "length": 16, "samples": 2},
    "depth": {"network": {"heads": 2, "width": 8, "hidden": 8}, "draws": 2, "length": 4},
    "scaling": {
        "width": 8, "heads": 2, "features": 4, "feed_forward": 8, "lengths": [4, 8], "longest": {}, "repeats": 1,
    },
}  # fmt: skip
"""What makes the studies quick and leaves the names of what claims ask for."""


@pytest.fixture(autouse=True)
def _in_the_project(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)


def claim_of(scale: str, number: int) -> Claim:
    (found,) = (each for each in claims(scale) if each.id == f"C21-C{number}")
    return found


def claims(scale: str) -> tuple[Claim, ...]:
    return load_claims(REPLICATIONS / "performer" / "claims.yaml", scale).claims


def rows(scale: str) -> Iterator[Row]:
    return (row for claim in claims(scale) for row in claim.rows())


@cache
def measured(scale: str, variant: str) -> frozenset[str]:
    """The names of all numbers of a study."""
    run = ScaleFile("performer", scale).run(variant)
    run = run.with_model({**run.own_model, **SMALL[variant]})
    study, config = runner_of(REPLICATION, run)
    if variant == "scaling":
        study = Scaling(LAYERS, clock=partial(next, count()))
    return frozenset(study.evaluate(config, prepared=Path(), trained=[Path("seed1")], out=Path()))


def test_table_2_is_as_printed() -> None:
    shown = columns("t1")
    assert {name: shown[name] for name in TABLE_2} == TABLE_2
    labels = [label.split(":")[0] for label in shown["label"]]
    assert labels == ["UNI, Test"] * 3 + ["UNI, OOD"] * 3 + ["BID, Test"] * 3 + ["BID, OOD"] * 3


def test_the_concatenated_pieces_are_the_sequences_of_train_and_their_end_symbols() -> None:
    shown = columns("t5")
    symbols = shown["count"][0] * (shown["mean"][0] + 1)
    assert shown["count"][4] * 8192 == pytest.approx(symbols, rel=2e-4)
    for key, value in {"least": 8192, "most": 8192, "mean": 8192, "deviation": 0, "median": 8192}.items():
        assert shown[key][4:] == [value, value]  # the cells span both rows


def test_multiplications_are_those_of_the_formulas() -> None:
    heads, _, hidden, width = SIZES["regular"]
    features, shown = 256, columns("t7")
    for length, core, body in zip((512, 1024, 4096, 8192, 32768), shown["core"], shown["body"], strict=True):
        exact = 2 * length**2 * width
        favor = 4 * length * features * width + 2 * length * heads * features
        rest = 4 * length * width**2 + 2 * length * width * hidden
        assert core == pytest.approx(exact / favor, rel=6e-3)
        assert body == pytest.approx((exact + rest) / (favor + rest), abs=5.01e-3)


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("attention", ["softmax", "relu", "positive", "trigonometric"])
def test_the_sizes_in_paper_yaml_are_those_of_the_modules(name: str, attention: str) -> None:
    counts = facts("performer").parameter_counts
    assert counts is not None
    heads, layers, hidden, width = SIZES[name]
    sizes = {"heads": heads, "layers": layers, "hidden": hidden, "width": width, "attention": attention}
    with torch.device("meta"):
        model = build_model(ModelConfig.model_validate(sizes), 30, True)
    found = {"attention": 0, "feed_forward": 0, "norm": 0}
    for place, parameter in model.layers.named_parameters():
        found["norm" if "norm" in place else place.split(".")[1]] += parameter.numel()
    assert list(found.values()) == [part[name] for part in counts.parts]
    assert counts.totals[name] == sum(found.values())


@scales
def test_effects_of_the_paper_in_the_claims_are_those_of_table_2(scale: str) -> None:
    """All are points of accuracy, or at the bench scale ratios of perplexities, whatever direction the claim is in."""
    names = ("transformer", "relu", "masked-transformer", "masked-relu")
    test, apart = ({"accuracy": dict[str, float](), "perplexity": dict[str, float]()} for _ in range(2))
    for found, rows_of in ((test, (1, 2, 6, 7)), (apart, (4, 5, 9, 10))):
        for column, values in found.items():
            values.update(zip(names, (TABLE_2[column][row] for row in rows_of), strict=True))
    claim = claim_of(scale, 7)
    assert claim.primary is not None
    for row in claim.rows():
        assert not isinstance(row, Exact)
        first, second = row.compared()
        if row.name.startswith("unseen families of all sizes"):  # of which the paper has none
            assert row.paper is None
            continue
        table = apart if row.name.startswith("large families apart") else test
        values = table[row.metric.removeprefix("token_")]
        if row.scale == "log":
            assert scale == "bench"
            assert row.paper == pytest.approx((values[first] / values[second]) ** row.sign, abs=5.01e-4), row.name
        else:
            assert row.paper == pytest.approx(row.sign * (values[first] - values[second]), abs=1e-9), row.name
    assert claim.in_paper.effect == pytest.approx(test["accuracy"]["relu"] - test["accuracy"]["transformer"])
    if scale != "bench":
        assert claim.primary.relevant == pytest.approx(claim.primary.paper / 2, abs=0.05)


def test_half_of_the_lead_in_perplexity_is_a_tenth_of_what_the_transformer_knows_beyond_frequencies() -> None:
    """Of masked proteins; who knows frequencies alone, and sees a tenth of the letters, has 15.2 where we have 18.1."""
    baseline, transformer, performer = (TABLE_2["perplexity"][row] for row in (0, 6, 7))
    known_beyond = np.log(baseline / transformer) - np.log(18.1 / 15.2)
    assert np.log(transformer / performer) / 2 / known_beyond == pytest.approx(0.1, abs=0.005)
    primary, floor = claim_of("bench", 7).primary, 14.6
    assert primary is not None
    assert np.log(primary.relevant) == pytest.approx(0.1 * np.log(15.2 / floor), abs=5e-4)


@learned
def test_effects_of_lemma_2_in_the_claims_are_its(scale: str) -> None:
    seen = set()
    for row in rows(scale):
        subject, _, angle = row.metric.partition(".mse_ratio_a")
        if subject == "trigonometric_over_positive_iid" and not isinstance(row, Exact):
            radians = np.radians(float(angle))
            x, y = 0.7 * np.array([[1.0, 0.0], [np.cos(radians), np.sin(radians)]])
            errors = [
                kernel_mse(x, y, projections=16, estimator=name, orthogonal=False)
                for name in ("trigonometric", "positive")
            ]
            assert row.paper == pytest.approx(float(errors[0] / errors[1]) ** row.sign, rel=0.02)
            seen.add(angle)
    assert seen == {"150", "60"}


def test_values_of_the_kernel_in_the_claims_are_its() -> None:
    said = claim_of("quick", 2).different_here or ""
    for angle, value in {180: "0.61", 0: "1.63"}.items():
        assert value in said
        assert np.exp(0.7**2 * np.cos(np.radians(angle))) == pytest.approx(float(value), abs=5e-3)


@pytest.mark.parametrize("scale", ["quick", "paper_scale"])
def test_the_layer_whose_cost_is_measured_has_a_network_of_four_times_its_width(scale: str) -> None:
    run = ScaleFile("performer", scale).run("scaling")
    assert run.model["feed_forward"] == 4 * run.model["width"]
    assert len(run.seeds) == 5


@scales
def test_claims_ask_for_what_is_measured(scale: str) -> None:
    for row in rows(scale):
        for variant in row.compared():
            if variant in SMALL and scale == "bench":  # which measures nothing
                continue
            if variant in SMALL:
                assert row.metric in measured(scale, variant), row.name
            else:
                assert known(row.metric), row.name


def test_the_papers_tables_show_what_is_measured() -> None:
    names = [
        (row["variants"], name)
        for table in facts("performer").tables
        for row in table.rows
        for name in (row.get("metrics") or {}).values()
    ]
    for variants, name in names:
        if variants == ["scaling"]:
            assert name in measured("quick", "scaling") or name.startswith("crossover_")
        else:
            assert known(name.removeprefix("test_families.").removeprefix("test_relatives."))


def test_the_papers_own_settings() -> None:
    settings = ScaleFile("performer", "paper_scale")
    for variant in ("transformer", "relu", "masked-positive", "concatenated-relu", "imagenet64-relu"):
        run = settings.run(variant)
        optimizer = run.training.optimizer
        assert (optimizer.name, optimizer.learning_rate) == ("adam", 1e-3)
        assert (optimizer.beta1, optimizer.beta2, optimizer.epsilon) == (0.9, 0.98, 1e-9)
        assert (run.training.clip, run.training.schedule.name, run.model["dropout"]) == (0.5, "constant", 0.1)
        size = SIZES["regular" if run.task in ("concatenated", "imagenet64") else "proteins"]
        assert tuple(run.model[key] for key in ("heads", "layers", "hidden", "width")) == size
        assert run.model["features"] == 256
        if run.corpus.of == "proteins":
            assert run.corpus.length == (8192 if run.task == "concatenated" else 1024)
    small = settings.run("concatenated-transformer").model
    assert tuple(small[key] for key in ("heads", "layers", "hidden", "width")) == (8, 3, 256, 256)
