"""Models of sequences in reports, and the study of scaling: what it measures, in what order, what it makes of it."""

import math
from dataclasses import replace
from itertools import count
from typing import get_args

import pytest
import torch
from torch import nn

from replications.linear_transformer import replication as linear_transformer
from replications.performer import replication as performer
from shared.claims.results import load_results
from shared.config import build
from shared.metrics.peak_memory import MEBIBYTE
from shared.reports import curves as of_training
from shared.reports.curves import DIVERGED, read_apart, read_curves, training_curves
from shared.reports.figures import COLOURS
from shared.reports.runs import score_tables
from shared.tasks.sequences.report import further_splits
from shared.tasks.sequences.scaling import Scaling, crossover, slope, training_pass
from shared.tasks.sequences.settings import ScalingConfig, Subject
from shared.tasks.settings import RunConfig
from tests.refused import assert_refused
from tests.synthetic_runs import write_metrics, write_training

LAYERS = {**linear_transformer.LAYERS, **performer.LAYERS}
WIDTH = 8
CPU = torch.device("cpu")


class Clocked(nn.Module):
    """Returns its input, scaled, after a number of seconds that it takes by a clock of its own."""

    now = 0.0
    order: list[tuple[str, int]] = []  # noqa: RUF012

    def __init__(self, name, seconds):
        super().__init__()
        self.name, self.seconds = name, seconds
        self.scale, self.unused = nn.Parameter(torch.ones(())), nn.Parameter(torch.ones(3))

    def forward(self, x):
        Clocked.now += self.seconds(x.size(1))
        Clocked.order.append((self.name, x.size(1)))
        return x * self.scale


COSTS = {
    "softmax": lambda length: length**2 / 64,
    "linear": lambda length: float(length),
    "lsh_1": lambda length: 1e6 * length,
}
BUILDERS = {name: lambda config, name=name, cost=cost: Clocked(name, cost) for name, cost in COSTS.items()}


def config(**model):
    return build(RunConfig, {
        "kind": "test", "task": "toy", "seeds": [1], "corpus": {"dataset": "none"},
        "model": {"study": "scaling", "subjects": ["softmax", "linear"], "lengths": [4, 8, 16, 32, 256, 512],
                  "width": WIDTH, "heads": 2, "repeats": 3} | model,
        "training": {"updates": 1, "validate_every": 1,
                     "optimizer": {"name": "adam", "learning_rate": 0.1}},
        "evaluation": {},
    }, where="test")  # fmt: skip


def measured(builders=BUILDERS, clock=lambda: Clocked.now, **model):
    Clocked.order.clear()
    return Scaling(builders, clock).measure(config(**model), 0)


def test_times_by_length():
    metrics = measured(longest={"softmax": 32})
    softmax = {f"softmax.seconds_n{n}": n**2 / 64 for n in (4, 8, 16, 32)}
    linear = {f"linear.seconds_n{n}": n for n in (4, 8, 16, 32, 256, 512)}
    assert {name: value for name, value in metrics.items() if "seconds" in name} == softmax | linear
    assert metrics["softmax.time_slope"] == pytest.approx(2)
    assert metrics["linear.time_slope"] == pytest.approx(1)


def test_memory_by_length():
    metrics = measured()
    for n in (4, 512):  # the result, the gradient of the input and, before it is summed up, that of the scale
        assert metrics[f"linear.mebibytes_n{n}"] * MEBIBYTE == pytest.approx(3 * 4 * n * WIDTH, abs=100)
    assert metrics["linear.memory_slope"] == pytest.approx(1, abs=0.01)


def test_subjects_and_lengths_take_turns_after_a_warm_up():
    measured(lengths=[4, 8, 16], longest={"linear": 8})
    turn = [("softmax", 4), ("linear", 4), ("softmax", 8), ("linear", 8), ("softmax", 16)]
    assert Clocked.order == [key for key in turn for _ in range(2)] + 3 * turn


def test_a_time_is_a_median():
    seconds = iter([0.0, 0.0, 0.0, 0.0, 5.0, 2.0, 1.0, 2.0, 90.0, 2.0])
    builder = {"linear": lambda config: Clocked("x", lambda _: next(seconds))}
    metrics = measured(builder, subjects=["linear"], lengths=[2, 4])
    assert (metrics["linear.seconds_n2"], metrics["linear.seconds_n4"]) == (5, 2)


def test_where_one_overtakes_the_fused_kernel():
    assert measured()["crossover_linear"] == pytest.approx(64)
    for other in ({"longest": {"softmax": 32}}, {"subjects": ["softmax", "lsh_1"]}, {"subjects": ["linear", "lsh_1"]}):
        assert not any("crossover" in name for name in measured(**other))


def test_how_far_each_is_from_the_optimum():
    cheap = {"identity": lambda config: Clocked("identity", lambda length: length / 4)}
    asked = {"subjects": ["softmax", "linear", "identity"], "longest": {"softmax": 32}}
    found = {k: v for k, v in measured(BUILDERS | cheap, **asked).items() if "over" in k and "cross" not in k}
    assert found == {"softmax.over_identity": 2.0, "linear.over_identity": 4.0}
    assert not any(name.endswith("over_identity") for name in measured())


def test_a_crossover():
    rival = {n: n**2 / 100 for n in (10, 50, 200, 1000)}
    assert crossover({n: float(n) for n in rival}, rival) == pytest.approx(100)
    assert crossover(dict.fromkeys((50, 200, 5000), 0.0001), rival) == 50
    assert crossover({10: 1.0, 50: 25.0, 200: 1.0}, rival) == pytest.approx(50)  # as quick is not quicker
    assert crossover({10: 0.1, 50: 26.0, 200: 1.0}, rival) > 50  # from there on, not before
    assert crossover({10: 0.1, 50: 26.0}, rival) is None
    assert crossover({7: 1.0}, rival) is None


@pytest.mark.parametrize(("size", "half"), [(2, 2), (3, 2), (4, 2), (5, 3), (6, 3), (7, 4)])
def test_a_slope_is_that_of_the_upper_half(size, half):
    lengths = [2**i for i in range(size)]
    upper = lengths[-half:]
    points = {n: 3.0 * n**1.7 if n in upper else 1e9 for n in lengths}
    assert slope(points) == pytest.approx(1.7)


def test_a_pass_makes_all_gradients_and_keeps_none():
    layer, seen = Clocked("x", lambda _: 0.0), []
    layer.scale.register_hook(seen.append)
    training_pass(layer, 6, WIDTH, CPU)()
    assert [gradient.shape for gradient in seen] == [()]
    assert all(parameter.grad is None for parameter in layer.parameters())


SIZES = ScalingConfig(
    study="scaling", subjects=[*LAYERS], lengths=[70, 200], width=WIDTH, heads=2, features=5, buckets=4, chunk=6
)


def test_settings_know_every_layer():
    assert {*LAYERS} == {*get_args(Subject)}


@pytest.mark.parametrize("subject", LAYERS)
def test_every_layer_is_causal_and_has_its_gradients(subject):
    layer, x = LAYERS[subject](SIZES).double(), torch.randn(1, 70, WIDTH, dtype=torch.float64)
    out = layer(x)
    assert out.shape == x.shape
    changed = torch.cat((x[:, :50], torch.randn_like(x[:, 50:])), dim=1)
    torch.testing.assert_close(layer(changed)[:, :50], out[:, :50])
    assert not torch.equal(layer(changed)[:, 50:], out[:, 50:])
    out.square().sum().backward()
    unused = {name for name, p in layer.named_parameters() if p.grad is None}
    assert unused == ({"heads.w_q.weight"} if subject == "identity" else set())


def test_memory_is_what_the_papers_say_it_is():
    subjects = ["softmax_plain", "linear", "positive", "identity", "lsh_1"]
    metrics = measured(
        LAYERS, count().__next__, subjects=subjects, repeats=1, lengths=[512, 1024, 4096, 8192],
        longest={"softmax_plain": 1024}, features=WIDTH,
    )  # fmt: skip
    slopes = {name.split(".")[0]: value for name, value in metrics.items() if "memory_slope" in name}
    assert slopes.pop("softmax_plain") == pytest.approx(2, abs=0.05)
    assert [*slopes.values()] == pytest.approx([1] * 4, abs=0.1)
    least = [metrics[f"{name}.mebibytes_n1024"] for name in ("identity", "linear", "softmax_plain")]
    assert least == sorted(least)


@pytest.mark.parametrize(("model", "message"), [
    ({"heads": 3}, r"width \(8\) must be a multiple of the heads \(3\)"),
    ({"subjects": ["linaer"]}, "'subjects.*linaer"),
    ({"longest": {"relu": 8}}, "'longest' names 'relu', which is not in 'subjects'"),
    ({"longest": {"softmax": 7}}, "'softmax' has fewer than two lengths"),
    ({"lengths": [8, 8]}, "'lengths': .*each must be greater than the one before"),
    ({"buckets": 5}, "'buckets': .*multiple of 2"),
])  # fmt: skip
def test_wrong_settings_are_refused(model, message):
    said = assert_refused(message, config(**model).checked_model, ScalingConfig)
    assert "the model section of task 'toy'" in said


def test_a_feed_forward_network_follows_attention_if_it_is_asked_for():
    alone, whole = (
        Scaling(LAYERS)._layer("linear", config(feed_forward=n).checked_model(ScalingConfig)) for n in (None, 24)
    )
    counts = [sum(parameter.numel() for parameter in layer.parameters()) for layer in (alone, whole)]
    assert counts[1] - counts[0] == 2 * WIDTH * 24 + 24 + WIDTH
    assert whole(torch.randn(1, 5, WIDTH)).shape == (1, 5, WIDTH)


UPDATES = 400
ENDS = {"transformer": (400, 400, 400), "trigonometric": (125, 300, 400), "patient": (200, 300, 400)}
"""Made-up models, and the update after which each seed has ended, by divergence or by patience."""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name, ends in ENDS.items():
        for seed, end in enumerate(ends, start=1):
            diverged = name == "trigonometric" and end < UPDATES
            curve = [[step, "valid", "loss", 2.5 + seed / step] for step in range(25, end + 1, 25)]
            curve += [[end + 5, "valid", "loss", math.nan]] if diverged else []
            record = {"updates": end, "parameter_count": 1_000, "stopped_because": DIVERGED if diverged else "made up"}
            write_training(folder / name / f"train/seed{seed}", record, curve)
        write_metrics(folder / name, name, "proteins", {seed: {"perplexity": 9.0} for seed in (1, 2, 3)}, "residue")
    return load_results(folder)


@pytest.fixture
def drawn(monkeypatch):
    """The axes of every figure of curves, to be looked at once the pictures have been written."""
    found, plot = [], of_training.plot_curves
    monkeypatch.setattr(of_training, "plot_curves", lambda axes, *a, **k: (found.append(axes), plot(axes, *a, **k)))
    return found


def test_further_splits_have_tables_of_what_was_measured_on_them(results):
    scores = {"token_accuracy": 30.0, "token_accuracy@positive": 12.0, "test_families.token_accuracy": 17.5}
    run = replace(results["transformer"], metrics=dict.fromkeys((1, 2, 3), scores), mean=scores)
    own, further = (blocks[0] for blocks in (score_tables([run]), further_splits([run])))
    assert "test_families" in further.columns[0]
    assert sum("17.5" in cell for cell in further.rows[0]) == 1
    swapped = [any("same weights in positive" in head for head in each.columns) for each in (own, further)]
    assert swapped == [True, False]


def test_what_is_no_number_is_no_part_of_a_curve(results):
    points = read_curves(results["trigonometric"], metric="loss", split="valid")
    assert [len(points[place]) for place in (100, 200, 300, 400)] == [3, 2, 2, 1]
    assert all(math.isfinite(value) for values in points.values() for value in values)
    assert 130 not in points


def test_seeds_are_apart_where_one_ended_before_its_time(results):
    seeds = read_apart(results["trigonometric"], metric="loss", split="valid")
    assert [(max(curve), ended) for curve, ended in seeds] == [(125, True), (300, True), (UPDATES, False)]
    assert results["patient"].runs[1]["updates"] < UPDATES  # by patience, which is its time
    assert not any(read_apart(results[each], metric="loss", split="valid") for each in ("transformer", "patient"))
    assert read_apart(results["trigonometric"], metric="bleu", split="valid") == []


def test_a_diverged_variant_has_a_line_for_each_seed_and_crosses(results, tmp_path, drawn):
    runs = [results[name] for name in ("transformer", "trigonometric")]
    assert training_curves(runs, tmp_path / "a.png", metric="loss", label="Loss", diverging=True)
    lines = [line for line in drawn[0].get_lines() if line.get_color() == COLOURS[1]]
    crosses = {line.get_xdata()[0]: line.get_ydata()[0] for line in lines if line.get_marker() == "X"}
    assert sorted(crosses) == [125, 300]
    assert sorted(max(line.get_xdata()) for line in lines if line.get_marker() != "X") == [125, 300, UPDATES]
    assert crosses[125] in read_curves(runs[1], metric="loss", split="valid")[125]
    (legend,) = drawn[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["transformer", "trigonometric"]
