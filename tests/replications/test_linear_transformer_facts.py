"""What is said of Katharopoulos et al. (2020): its tables and sizes, its own settings, and figures in the claims."""

from collections.abc import Iterator
from functools import cache, partial
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from replications.linear_transformer.exactness import Exactness
from replications.linear_transformer.generation import Generation
from replications.linear_transformer.lsh import lsh_attention_weights, lsh_buckets
from replications.linear_transformer.replication import LAYERS, build_model
from replications.linear_transformer.settings import ModelConfig
from shared.claims.comparisons import Exact, Row
from shared.claims.scales import SCALES
from shared.claims.schema import Claim, load_claims
from shared.config import build
from shared.metrics.registry import known
from shared.pipeline.config import ScaleFile
from shared.tasks.sequences.scaling import Scaling
from tests.replications.shipped_variants import REPLICATIONS, columns_of, facts, parameters, scale_file_of
from tests.replications.studied_linear_transformer import SECTION, build_studied

FOLDER = REPLICATIONS / "linear_transformer"
METHODS = ["Softmax", "Stateful-softmax", "LSH-1", "LSH-4", "Linear"]
STUDIES = ("scaling", "exactness", "generation")
columns = partial(columns_of, "linear_transformer")
scales = pytest.mark.parametrize("scale", SCALES)

PRINTED = {
    "t1": {"bits": [0.621, 0.621, 0.745, 0.676, 0.644], "images": [0.45, 7.56, 0.68, 0.27, 142.8]},
    "t2": {"bits": [3.47, 3.47, 3.39, 3.51, 3.40], "images": [0.004, 0.32, 0.015, 0.005, 17.85]},
    "t3": {"per": [10.94, 5.12, 9.33, 8.08], "seconds": [1047, 2711, 2250, 824]},
    "t4": {"cpu": [72.6, 7.4, 46.0, 112.0, 5.5], "gpu": [10.2, 10.4, 19.2, 55.8, 7.3]},
    "t5": {"cpu": [8651.4, 71.9, 2318.9, 5263.7, 45.1], "gpu": [300.1, 70.4, 221.6, 683.9, 61.3]},
}

SIZES = [
    ("copy", "copy-linear", 4, 11, 12), ("MNIST", "mnist-linear", 8, 256, 257),
    ("CIFAR-10", "cifar10-linear", 16, 256, 257),
]  # fmt: skip
"""Column of paper.yaml, its variant, layers, symbols of the released programs, and with embeddings of full width."""


def claims(scale: str) -> tuple[Claim, ...]:
    return load_claims(FOLDER / "claims.yaml", scale).claims


def comparisons(scale: str) -> Iterator[Row]:
    return (each for claim in claims(scale) for each in claim.rows())


@cache
def measured(study: str) -> frozenset[str]:
    """The names of all numbers of a study, made with small sizes."""
    ticks = partial(next, count())
    kind, settings = {
        "scaling": (Scaling(LAYERS, ticks), {"width": 8, "heads": 2, "lengths": [8, 16], "buckets": 4, "chunk": 4,
                                             "repeats": 1, "subjects": subjects()}),
        "exactness": (Exactness(build_studied), {**SECTION, "length": 6, "lengths": [8, 16], "draws": 1}),
        "generation": (Generation(build_studied, clock=ticks), {**SECTION, "length": 8, "batch": 2, "places": 2}),
    }[study]  # fmt: skip
    section = {"study": study, **settings}
    config = SimpleNamespace(checked_model=lambda of: build(of, section, where=study))
    return frozenset(kind.evaluate(config, prepared=FOLDER, trained=[FOLDER / "seed1"], out=FOLDER))


def subjects() -> list[str]:
    return list(scale_file_of("linear_transformer", "paper_scale").run("scaling").model["subjects"])


@pytest.mark.parametrize("table", PRINTED)
def test_tables_are_as_printed(table: str) -> None:
    shown = columns(table)
    assert {name: shown[name] for name in PRINTED[table]} == PRINTED[table]
    assert shown["label"] == (["Bi-LSTM", "Softmax", "LSH-4", "Linear"] if table == "t3" else METHODS)


@pytest.mark.parametrize(("table", "within"), [("t1", 0.05), ("t2", 0.5)])
def test_printed_speed_ups_are_those_of_the_images_per_second(table: str, within: float) -> None:
    shown = columns(table)
    ratios = [images / shown["images"][0] for images in shown["images"]]
    assert shown["speedup"] == pytest.approx(ratios, rel=2e-3, abs=within)


def test_the_table_that_divides_is_of_the_others() -> None:
    shown = columns("t6")
    assert shown["label"] == METHODS[:-1]
    for pictures, throughput, latency in (("mnist", "t1", "t4"), ("cifar", "t2", "t5")):
        *others, linear = columns(throughput)["images"]
        assert shown[pictures] == pytest.approx([linear / other for other in others], rel=1e-3)
        for device in ("cpu", "gpu"):
            *others, linear = columns(latency)[device]
            ratios = [other / linear for other in others]
            assert shown[f"{pictures}_{device}"] == pytest.approx(ratios, abs=5.01e-3)


@pytest.mark.parametrize(("name", "variant", "layers", "symbols", "added"), SIZES)
def test_the_sizes_in_paper_yaml_are_those_of_the_modules(name, variant, layers, symbols, added, shapes_alone) -> None:
    counts = facts("linear_transformer").parameter_counts
    assert counts is not None
    section = scale_file_of("linear_transformer", "paper_scale").run(variant).model
    for key, changes, words in ((name, {}, symbols), (f"{name}, added", {"positions": "added"}, added)):
        model = build_model(ModelConfig.model_validate(section | changes), words, True)
        found = [parameters(module) for module in (model.embedding, model.layers, model.norm, model.output)]
        assert found == [part[key] for part in counts.parts]
        assert counts.totals[key] == parameters(model)
        assert found[1] == layers * 789_760


@scales
def test_effects_of_the_paper_in_the_claims_are_those_of_its_tables(scale: str) -> None:
    """Of what is measured in the same unit at that scale; a throughput depends on how many pictures fit."""
    bits, photographs, divided = columns("t1")["bits"], columns("t2")["bits"], columns("t6")
    softmax, _, hashed, _, linear = bits
    at_size = scale in ("bench", "paper_scale")
    methods = ("softmax", "stateful_softmax", "lsh_1", "lsh_4")
    throughput = dict(zip(methods, divided["mnist"], strict=True))
    latency = dict(zip(methods, divided["mnist_gpu" if at_size else "mnist_cpu"], strict=True))
    expected = {
        ("mnist-linear", "mnist-softmax"): linear / softmax,
        ("mnist-lsh-1", "mnist-linear"): hashed / linear,
        ("cifar10-linear", "cifar10-softmax"): photographs[-1] - photographs[0],
    }
    seen = set()
    for row in comparisons(scale):
        if isinstance(row, Exact) or row.paper is None:
            continue
        kind, _, method = row.metric.removesuffix("@1").partition("_over_")
        if method:
            assert row.paper == {"throughput": throughput, "speedup": latency}[kind][method]
            assert at_size or kind == "speedup"
        else:
            assert row.paper == pytest.approx(expected[row.compared()], abs=1e-3)
            seen.add(row.compared())
    assert seen == {pair for pair in expected if at_size and (scale == "paper_scale" or "cifar10-linear" not in pair)}


def test_effects_of_the_paper_are_in_the_unit_of_what_decides() -> None:
    for claim in claims("paper_scale"):
        if claim.primary is not None and claim.primary.paper is not None:
            assert claim.in_paper.effect == claim.primary.paper


@scales
def test_hashing_decides_nothing(scale: str) -> None:
    for claim in claims(scale):
        deciding = [claim.primary] if claim.primary is not None else claim.identities
        assert not [name for each in deciding for name in each.compared() if "lsh" in name]


def test_the_floor_of_whole_digits_is_below_what_neighbours_tell(root) -> None:
    """A table counted on the training pictures, of the four neighbours that come before a pixel, judged on others."""
    folder = root / "data" / "mnist"
    if not (folder / "train.images.npy").exists():
        pytest.skip("MNIST has not been fetched")
    counted, judged = (np.load(folder / f"{split}.images.npy")[..., 0].astype(int) for split in ("train", "valid"))
    table = np.zeros((9**4, 256))
    np.add.at(table, (neighbours(counted), counted), 1)
    frequencies = table.sum(0) / table.sum()
    shares = (table + 10 * frequencies) / (table.sum(1, keepdims=True) + 10)
    bits = -np.log2(shares[neighbours(judged), judged]).sum((1, 2)).mean() / 783
    assert bits == pytest.approx(1.24, abs=5e-3)
    floor = load_claims(REPLICATIONS / "linear_transformer" / "claims.yaml", "bench").floors["mnist"]
    assert floor.at_most is not None
    assert floor.at_most < bits


def neighbours(pictures: np.ndarray) -> np.ndarray:
    """(N, 28, 28): the pixels to the left and, in the row above, left, above and right, in nine levels."""
    levels = np.pad(np.where(pictures == 0, 0, 1 + (pictures - 1) * 8 // 255), ((0, 0), (1, 0), (1, 1)))
    parts = (levels[:, 1:, :-2], levels[:, :-1, 1:-1], levels[:, :-1, :-2], levels[:, :-1, 2:])
    return np.ravel_multi_index(parts, (9, 9, 9, 9))


@pytest.mark.parametrize(
    ("scale", "variant", "theirs", "share"),
    [
        ("paper_scale", "copy-lsh-1", 64, 0.3),
        ("paper_scale", "copy-lsh-4", 64, 0.45),
        ("paper_scale", "mnist-lsh-1", 64, 0.3),
    ],
)
def test_a_query_of_lsh_sees_fewer_keys_than_in_the_authors_library(
    scale: str, variant: str, theirs: int, share: float, root, monkeypatch
) -> None:
    """Which shows it all before it that is in its own chunk, or in the one before that, in any round."""
    monkeypatch.chdir(root)
    model = ScaleFile("linear_transformer", scale).run(variant).model
    torch.manual_seed(0)
    qk = torch.randn(8, 2, model["max_length"], model["width"] // model["heads"])

    def hashed(buckets: int) -> torch.Tensor:
        return lsh_buckets(qk, torch.randn(2, model["rounds"], qk.size(-1), buckets // 2))

    ours = lsh_attention_weights(qk, hashed(model["buckets"]), chunk=model["chunk"], causal=True) > 0
    chunks = hashed(theirs).argsort(dim=-1, stable=True).argsort(dim=-1) // model["chunk"]
    apart = chunks.unsqueeze(-1) - chunks.unsqueeze(-2)
    library = ((apart == 0) | (apart == 1)).any(2).tril(-1)
    assert ours.sum() / library.sum() == pytest.approx(share, abs=0.04)


def test_speech_is_not_tested_and_softmax_is_in_view() -> None:
    (claim,) = (each for each in claims("quick") if each.id == "K20-C6")
    error = columns("t3")["per"]
    assert claim.undecided_at("quick") is not None
    assert claim.in_paper.effect == pytest.approx(error[3] - error[1])


@scales
def test_claims_ask_for_what_is_measured(scale: str) -> None:
    for comparison in comparisons(scale):
        for variant in comparison.compared():
            if variant in STUDIES:
                assert comparison.metric in measured(variant), comparison.name
            else:
                assert known(comparison.metric), comparison.name


def test_the_paper_s_tables_show_what_is_measured() -> None:
    tables = facts("linear_transformer").tables
    named = {name for table in tables for row in table.rows for name in (row.get("metrics") or {}).values()}
    assert named <= measured("generation")
    assert len(named) == len(METHODS) + 2 * len(METHODS[:-1])  # of Table 5, and of the one that divides


def test_the_papers_own_settings(root, monkeypatch) -> None:
    monkeypatch.chdir(root)
    settings = ScaleFile("linear_transformer", "paper_scale")
    network = {"heads": 8, "width": 256, "hidden": 1024, "positions": "concatenated"}
    for variant, layers, length, chunk, buckets, updates, batch, rate in [
        ("copy-linear", 4, 125, 32, 8, 10_000, 64, 1e-3),
        ("mnist-linear", 8, 784, 29, 64, 250 * 5_500, 10, 1e-4),
        ("cifar10-linear", 16, 3072, 37, 64, 100 * 11_250, 4, 1e-4),
        ("cifar10-softmax", 16, 3072, 37, 64, 100 * 45_000 // 3, 1, 1e-4),
    ]:
        run = settings.run(variant)
        sizes = network | {"layers": layers, "max_length": length, "chunk": chunk, "buckets": buckets}
        assert {key: run.model[key] for key in sizes} == sizes
        training = run.training
        assert (training.updates, training.batch.sentences) == (updates, batch)
        assert (training.optimizer.name, training.optimizer.learning_rate) == ("radam", rate)
    copied = settings.run("copy-linear")
    assert (copied.training.schedule.hold, copied.training.schedule.factor) == (3000, 0.1)
    assert copied.model["max_length"] == 2 * copied.corpus.longest + 1 <= 128
    assert settings.run("mnist-lsh-1").model["rounds"] == 1
