"""Models of sequences beyond what all kinds have in common: corpora, swapped weights, diverged runs, modules."""

import itertools

import numpy as np
import pytest
import torch
from PIL import Image

from shared.data.batching import endless_batches
from shared.layers.outputs import MixtureOfLogistics
from shared.tasks.batches import training_order
from shared.tasks.sequences.corpus import PreparedSequences
from shared.tasks.sequences.module import SequenceModule
from shared.tasks.sequences.pixels import pictures
from shared.tasks.sequences.settings import VOCABULARY, SequenceTraining
from shared.tasks.sequences.trial import ADDED, try_input
from shared.tasks.tried import UNSEEN
from tests.refused import assert_refused
from tests.tasks import in_process
from tests.tasks.in_process import judge, paper, run, run_config
from tests.tasks.modules import SETTINGS, logged, train
from tests.tasks.sequences.toy_sequence_models import COUNTS, MeanReader, Toy, ToyConfig, random_proteins

COPIES = {
    "of": "copies", "dataset": "toy", "shortest": 2, "longest": 4, "test": ["test", "test_other"],
    "sequences": {"train": 90, "valid": 20, "test": 15, "test_other": 10},
}  # fmt: skip
MASKED = {"of": "proteins", "dataset": "toy", "length": 20, "masked": True}
TRAINING = {
    "updates": 40, "batch": {"sentences": 10}, "validate_every": 20,
    "optimizer": {"name": "adam", "learning_rate": 0.03},
}  # fmt: skip
REPLICATION = paper("sequences", ToyConfig, Toy)


@pytest.fixture
def copies(prepared):
    """The folder of the prepared copies."""
    return prepared(COPIES).folder


def config(corpus=COPIES, training=TRAINING, **sections):
    return run_config("sequences", corpus, model={"size": 12}, training=training, **{"seeds": [3, 4]} | sections)


def test_the_weights_are_judged_in_other_models_too(copies, tmp_path):
    """What these draw for themselves is the same every time, and another for another seed."""
    swapped = config(evaluation={"swapped": {"same": {}, "noisy": {"noise": 2.0}}})
    metrics = run(REPLICATION, swapped, copies, tmp_path)
    for scores in metrics:
        assert scores["perplexity@same"] == scores["perplexity"]
        assert scores["perplexity@noisy"] > scores["perplexity"]
    assert metrics[0]["perplexity@noisy"] != metrics[1]["perplexity@noisy"]
    assert judge(REPLICATION, swapped, copies, tmp_path) == metrics


def test_a_model_with_other_weights_cannot_take_the_place(copies, tmp_path):
    wider = config(training={}, seeds=[3], evaluation={"swapped": {"wide": {"size": 13}}})
    in_process.train(REPLICATION, wider, copies, tmp_path)
    assert_refused(r"swapped\.wide makes a model whose weights are others", judge, REPLICATION, wider, copies, tmp_path)


def test_what_is_masked_changes_from_batch_to_batch_and_with_the_seed(prepared):
    text, training, scored = prepared(MASKED), config(corpus=MASKED).training, []
    train = text.split("train")
    for seed, number in ((3, 0), (3, 4), (4, 0)):
        order = training_order(train, training.batch, seed)
        batch = next(text.batches(training, seed)(number))
        assert torch.equal(batch.scored, train.batch(next(order(start=number)), (seed, number)).scored)
        scored.append(train.batch(np.arange(10), (seed, number)).scored)
    assert not any(torch.equal(*pair) for pair in itertools.combinations(scored, 2))


def test_validation_has_every_sequence_once_and_always_masks_the_same(prepared):
    text = prepared(MASKED)
    batches = text.valid(config(corpus=MASKED).training)
    assert sum(len(batch.inputs) for batch in batches) == COUNTS["valid"]
    again = text.valid(config(corpus=MASKED, evaluation={"tokens": 7}).training)
    for one, other in zip(batches, again, strict=True):
        assert torch.equal(one.inputs, other.inputs)
        assert torch.equal(one.scored, other.scored)


PROTEINS = random_proteins(30, seed=3)
VALID = PROTEINS.batch(np.arange(9))


def training_config(**changes):
    return SequenceTraining.model_validate(
        SETTINGS | {"updates": 5, "batch": {"sentences": 4}, "validate_every": 2} | changes
    )


def module_of(counts_hits=False, **changes):
    torch.manual_seed(1)
    model = Toy(ToyConfig(size=8, noise=0.3), VOCABULARY, causal=False)
    return SequenceModule(model, training_config(**changes), counts_hits=counts_hits)


def test_where_hits_are_not_counted_nobody_asks_for_the_most_probable_symbol(monkeypatch):
    module = module_of()
    module.model.output = MixtureOfLogistics(width=16, levels=VOCABULARY)
    monkeypatch.setattr(module.model.output, "log_probs", None)
    values = logged(module, monkeypatch)
    with torch.no_grad():
        module.validation_step(VALID, 0)
    module.on_validation_epoch_end()
    assert values.keys() == {"valid_loss"}
    assert module_of(counts_hits=True, monitor="error").monitor == "valid_error"


@pytest.mark.parametrize("accumulate", [1, 3])
def test_the_model_is_told_of_every_update_once_also_by_a_run_that_is_continued(tmp_path, accumulate):
    told = []
    for name, updates, fingerprint in (("whole", 5, "a"), ("parts", 2, "b"), ("parts", 5, "b")):
        module = module_of(updates=updates, accumulate=accumulate)
        train(module, tmp_path / name, masked, [VALID], fingerprint)
        told.append(module.model.told)
    assert told == [[0, 1, 2, 3, 4], [0, 1], [2, 3, 4]]


def masked(start):
    order = endless_batches(PROTEINS.lengths, pool=2, seed=5, sentences=4, start=start)
    return (PROTEINS.batch(chosen, (5, number)) for number, chosen in enumerate(order, start))


@pytest.fixture
def pixels(prepared):
    corpus = {"of": "pixels", "levels": 8}
    return prepared(corpus), run_config("sequences", corpus)


def test_the_upper_half_of_a_test_picture_is_given_and_kept(pixels):
    text, run = pixels
    tried = try_input(MeanReader(text.symbols, True, levels=8), text, run, "test:1", 3)
    given, completed, true = (each.pixels for each in tried.pictures)
    expected = pictures(text.split("test").batch(np.array([1])).targets[0].numpy(), (4, 4, 1), 8)
    assert (true == expected).all()
    assert (completed[:2] == expected[:2]).all()
    assert (given[:2] == expected[:2]).all()
    assert (given[2:] == UNSEEN).all()
    assert tried.output == "8 of 16 pixels, row by row after the 8 given"


def test_pixels_may_be_given_as_numbers_or_as_a_file(pixels, tmp_path):
    text, run = pixels
    model = MeanReader(text.symbols, True, levels=8)
    tried = try_input(model, text, run, "7 0, 7", 3)
    assert tried.pictures[1].pixels.reshape(-1, 3)[:3, 0].tolist() == [255, 0, 255]
    picture = np.zeros((8, 8), dtype=np.uint8)
    picture[:4] = 255
    Image.fromarray(picture).save(tmp_path / "p.png")
    tried = try_input(model, text, run, str(tmp_path / "p.png"), 3)
    assert (tried.pictures[2].pixels[0] == 255).all()
    assert (tried.pictures[2].pixels[3] == 0).all()


@pytest.mark.parametrize(("asked", "message"), [
    ("test:23", "from test:0 to test:22"), ("1 8", "8 is no symbol"), ("1 " * 16, "the input has 16 symbols"),
    ("none.png", "there is no file .none.png"), ("", "the input is empty"),
])  # fmt: skip
def test_what_is_no_picture_is_refused(asked, message, pixels):
    text, run = pixels
    assert_refused(message, try_input, None, text, run, asked, 3)


def proteins(masked):
    run = run_config("sequences", {"of": "proteins", "masked": masked, "length": 100})
    return PreparedSequences(None, run.corpus, {}), run, MeanReader(VOCABULARY, causal=not masked)


def test_a_protein_is_prolonged():
    text, run, model = proteins(False)
    tried = try_input(model, text, run, "mkta", 3)
    assert tried.input == "MKTA"
    assert len(tried.output) <= ADDED
    assert model.reads[-1][0][1:5] == model.reads[0][0][1:5]  # the letters given, after the start symbol
    assert tried == try_input(model, text, run, "MKTA", 4)


def test_gaps_are_filled_with_the_likeliest_letters_and_the_rest_is_kept():
    text, run, model = proteins(True)
    tried = try_input(model, text, run, "MK?A", 3)
    assert tried.output.startswith("MK")
    assert tried.output.endswith("A")
    assert tried.output[2:-1] == tried.shares[0][0]
    with torch.inference_mode():
        shares = model.output.log_probs(model(torch.tensor(model.reads[-1]))[0, 2]).exp()
    assert tried.shares[0][1] == pytest.approx(float(shares.max()), rel=1e-5)
    assert "Letter 3: " in tried.lines[0]
    for asked, message in (("MKA", "0 gaps in 3 letters"), ("??", "2 gaps in 2"), ("MK1?", "'1' stands for no")):
        assert_refused(message, try_input, model, text, run, asked, 3)
