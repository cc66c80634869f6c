"""Sets: how they are read and composed, what a loss is, and what judging leaves of each, on all three targets."""

import io

import numpy as np
import pytest
import torch
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal, Poisson

from shared.data.cards import load_card
from shared.data.generated import generate
from shared.data.generated.sets import mixture_of
from shared.tasks.examples import read_kept
from shared.tasks.sets.corpus import PreparedSets, SetBatch, prepare
from shared.tasks.sets.module import SetModule, losses, mixture, rate
from shared.tasks.settings import ExampleTraining
from tests.refused import assert_refused
from tests.tasks.in_process import judged, run_config
from tests.tasks.modules import SETTINGS, logged
from tests.tasks.sets.toy_sets import CORPORA, SPLITS, Toy, ToyConfig

RNG = np.random.default_rng(1)


def write_data(folder, target):
    """What a fetched folder has, of generated sets, or of pictures of four pixels whose last one is their label."""
    if target == "count":
        for split in SPLITS:
            pixels, labels = RNG.integers(3, size=(60, 3)), RNG.integers(3, size=60)
            lines = [" ".join(map(str, [*row, label])) for row, label in zip(pixels, labels, strict=True)]
            (folder / f"{split}.text").write_text("\n".join(lines) + "\n")
            (folder / f"{split}.label").write_text("\n".join(f"class {label}" for label in labels) + "\n")
        return
    parameters = {"seed": 1, "sizes": CORPORA[target].sizes, "splits": SPLITS}
    more = {"components": 2} if target == "mixture" else {}
    for name, content in generate({"number": "maxima", "mixture": "mixtures"}[target], parameters | more).files.items():
        (folder / name).write_bytes(content)


@pytest.fixture(params=CORPORA)
def prepared(request, tmp_path):
    write_data(tmp_path, request.param)
    prepare(CORPORA[request.param], tmp_path, tmp_path / "out")
    return PreparedSets(tmp_path / "out", CORPORA[request.param])


def lines_of(prepared, split):
    """The pictures of a split."""
    return {*(prepared.folder.parent / f"{split}.text").read_text().splitlines()}


def each_set(sets):
    ends = np.cumsum(sets.sizes)
    return [sets.elements[end - size : end] for end, size in zip(ends, sets.sizes, strict=True)]


def test_sets_are_padded_and_their_targets_are_what_they_say(prepared):
    config = prepared.config
    for split, count in SPLITS.items():
        sets = prepared.split(split)
        assert len(sets) == count
        assert config.sizes[0] <= sets.sizes.min() <= sets.sizes.max() <= config.sizes[1]
        chosen = np.array([3, 0, 7])
        batch = sets.batch(chosen)
        assert batch.tokens == sets.sizes[chosen].sum()
        for row, index in enumerate(chosen):
            own = each_set(sets)[index]
            np.testing.assert_array_equal(batch.elements[row][batch.mask[row]], own)
            assert not batch.elements[row][~batch.mask[row]].any()
            if config.asked == "number":
                assert batch.targets[row] == own.max()
            elif config.asked == "count":  # whose last pixel is the label
                assert batch.targets[row] == len(np.unique(own[:, -1]))
                assert {" ".join(map(str, np.rint(2 * each).astype(int))) for each in own} <= lines_of(prepared, split)
        if config.asked == "mixture":
            weights, means, scales = mixture_of(sets.targets)
            np.testing.assert_allclose(weights.sum(1), 1, atol=1e-3)
            for own, mean in zip(each_set(sets), means, strict=True):
                assert np.abs(own[:, None] - mean).max(2).min(1).max() < 5 * scales.max()


@pytest.mark.parametrize(("changes", "message"), [
    ({"numbers": 2}, r"has 1 to 6 elements of 1 numbers in a set; set corpus\.sizes and corpus\.numbers"),
    ({"sizes": (1, 4)}, "has 1 to 6 elements"),
    ({"test": ["test", "test_far"]}, r"test_far\.npz cannot be read .* check the split's name"),
])  # fmt: skip
def test_sets_that_do_not_fit_the_settings_are_refused(changes, message, tmp_path):
    write_data(tmp_path, "number")
    assert_refused(message, prepare, CORPORA["number"].model_copy(update=changes), tmp_path, tmp_path / "out")


def outputs_of(target, count=4):
    torch.manual_seed(2)
    return torch.randn(count, *CORPORA[target].outputs)


def test_losses_are_those_of_torch_distributions():
    mask = torch.tensor([[True, True, True], [True, False, False], [True, True, False], [True, True, True]])
    batch = SetBatch(torch.randn(4, 3, 2), mask, torch.tensor([[3.0], [1.0], [2.0], [7.0]]))
    outputs = outputs_of("number")
    torch.testing.assert_close(losses("number", outputs, batch), (outputs[:, 0, 0] - batch.targets[:, 0]).abs())
    outputs = outputs_of("count")
    expected = -Poisson(rate(outputs)).log_prob(batch.targets[:, 0])
    torch.testing.assert_close(losses("count", outputs, batch), expected)
    outputs = outputs_of("mixture")
    weights, means, scales = mixture(outputs)
    assert scales.min() > 0
    for row, own in enumerate(mask):
        gaussians = Independent(Normal(means[row], scales[row]), 1)
        density = MixtureSameFamily(Categorical(logits=weights[row]), gaussians)
        expected = -density.log_prob(batch.elements[row, own]).sum()
        torch.testing.assert_close(losses("mixture", outputs, batch)[row], expected)


def test_the_large_mixtures_are_as_unlikely_under_the_truth_as_the_papers_own():
    drawn = load_card("generated_mixtures_large").sources[0].parameters | {"splits": {"test": 2000}}
    sets = np.load(io.BytesIO(generate("mixtures", drawn).files["test.npz"]))
    weights, means, scales = map(torch.from_numpy, mixture_of(np.repeat(sets["targets"], sets["sizes"], axis=0)))
    truth = MixtureSameFamily(Categorical(weights), Independent(Normal(means, scales), 1))
    nats = truth.log_prob(torch.from_numpy(sets["elements"]).double()).mean()
    assert float(nats) == pytest.approx(-1.4726, abs=0.02)  # Lee et al. 2019, Table 3, "Oracle"


def test_training_and_validation_are_means_over_sets_or_over_points(prepared, monkeypatch):
    sets, target = prepared.split("train"), prepared.config.asked
    model, training = Toy(ToyConfig(size=5), *prepared.sizes), ExampleTraining.model_validate(SETTINGS)
    module = SetModule(model, training, prepared.config)
    values, batches = logged(module, monkeypatch), [sets.batch(np.arange(5)), sets.batch(np.array([5]))]
    summed = [losses(target, module.model(each.elements, each.mask), each).sum() for each in batches]
    counts = [each.tokens if target == "mixture" else len(each.mask) for each in batches]
    torch.testing.assert_close(module.training_step(batches[0], 0), summed[0] / counts[0])
    with torch.no_grad():
        for number, batch in enumerate(batches):
            module.validation_step(batch, number)
    module.on_validation_epoch_end()
    assert values["valid_loss"] == pytest.approx(sum(summed).item() / sum(counts), rel=1e-5)


def test_judging_leaves_the_record_of_every_set_and_metrics_of_all(prepared, tmp_path):
    target, sets = prepared.config.asked, prepared.split("test")
    torch.manual_seed(3)
    model = Toy(ToyConfig(size=5), *prepared.sizes)
    config = run_config("sets", prepared.config.model_dump(), evaluation={"shown": 2, "batch": 7})
    metrics, examples = judged(config, prepared, model, tmp_path / "judged")
    assert [each["elements"] for each in examples] == sets.sizes.tolist()
    outputs, loss = [], []
    for index in range(len(sets)):  # alone, without padding
        batch = sets.batch(np.array([index]))
        outputs.append(model(batch.elements, batch.mask))
        loss.append(losses(target, outputs[-1], batch).item())
    if target == "number":
        assert [each["error"] for each in examples] == pytest.approx(loss, rel=1e-4)
        assert metrics["absolute_error"] == pytest.approx(np.mean(loss), rel=1e-4)
    elif target == "count":
        right = [float(rate(each).round() == wanted) for each, wanted in zip(outputs, sets.targets[:, 0], strict=True)]
        assert metrics["counted_right"] == pytest.approx(100 * np.mean(right))
        assert metrics["count_nats"] == pytest.approx(np.mean(loss), rel=1e-4)
    else:
        assert metrics["point_nats"] == pytest.approx(sum(loss) / sets.sizes.sum(), rel=1e-4)
        first, _ = read_kept(tmp_path / "judged" / "attention.npz")
        np.testing.assert_allclose(np.log(first["weights"]), mixture(outputs[0])[0][0].detach(), rtol=1e-4)
        np.testing.assert_array_equal(first["points"], each_set(sets)[0])
        density = MixtureSameFamily(
            Categorical(torch.tensor(first["true_weights"])),
            Independent(Normal(torch.tensor(first["true_means"]), torch.tensor(first["true_scales"])), 1),
        )
        true = -density.log_prob(torch.tensor(first["points"].astype(float))).sum().item()
        assert examples[0]["mixture"] == pytest.approx({"nats": loss[0], "true": true, "points": len(first["points"])})
        lost = sum(each["mixture"]["nats"] - each["mixture"]["true"] for each in examples) / sets.sizes.sum()
        assert metrics["nats_lost"] == pytest.approx(lost)
