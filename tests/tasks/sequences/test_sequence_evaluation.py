"""Models of sequences: what evaluation writes down, against each by itself; swapped weights, modules, trials."""

import itertools
import math
import zlib
from collections import Counter

import numpy as np
import pytest
import torch
from PIL import Image

from shared.data.batching import endless_batches
from shared.layers.outputs import MixtureOfLogistics
from shared.tasks.batches import training_order
from shared.tasks.sequences import evaluation
from shared.tasks.sequences.corpus import PreparedSequences
from shared.tasks.sequences.evaluation import LEAST, draw_pictures
from shared.tasks.sequences.module import SequenceModule
from shared.tasks.sequences.pixels import pictures
from shared.tasks.sequences.proteins import decode, encode
from shared.tasks.sequences.settings import VOCABULARY, PicturesConfig, SequenceTraining
from shared.tasks.sequences.trial import ADDED, try_input
from shared.tasks.tried import UNSEEN
from tests.refused import assert_refused
from tests.tasks import in_process
from tests.tasks.in_process import judged, paper, run, run_config
from tests.tasks.modules import SETTINGS, logged, train
from tests.tasks.sequences.toy_sequence_models import (
    COUNTS,
    Broken,
    Copier,
    MeanReader,
    Toy,
    ToyConfig,
    random_proteins,
    write_pictures,
)

BIT = math.log(2)
PROTEINS = {"of": "proteins", "dataset": "proteins", "test": ["test", "test_families"]}
MASKED = PROTEINS | {"masked": True}
PIXELS = {"of": "pixels", "dataset": "pixels", "levels": 8}
COPIES = {"of": "copies", "dataset": "copies", "shortest": 2, "longest": 7}
COPIES["sequences"] = {"train": 30, "valid": 10, "test": 40}
SIDE = 4


@pytest.fixture
def judge(prepared, tmp_path, monkeypatch):
    """From a corpus, a model and settings to metrics, examples and the folder."""

    def judge(corpus, model, *, out="out", swapped=None, may_diverge=False, **asked):
        asked |= {"swapped": {name: {} for name in swapped or {}}}
        config = run_config("sequences", corpus, evaluation=asked, training={"may_diverge": may_diverge})
        monkeypatch.setattr(evaluation, "_swapped", lambda *arguments: swapped[arguments[-1]])
        return *judged(config, prepared(corpus), model, tmp_path / out), tmp_path / out

    return judge


def letters(data, split):
    lines = (data / "proteins" / f"{split}.sequence").read_text().splitlines()
    return [torch.from_numpy(encode(line).astype(np.int64)) for line in lines]


def alone(model, inputs, targets):
    """Nats (T,) of one sequence, and whether each target is the most probable symbol."""
    with torch.inference_mode():
        log_probs = model.output.log_probs(model(inputs[None])[0]).double()
    return -log_probs.gather(1, targets[:, None]).squeeze(1), log_probs.argmax(1) == targets


def test_every_sequence_has_what_it_has_by_itself(data, judge):
    model = MeanReader(VOCABULARY, causal=True)
    metrics, examples, _ = judge(PROTEINS, model)
    of_test = [e for e in examples if e["split"] == "test"]
    ids = [f"test-{i}" for i in range(23)] + [f"test_families-{i}" for i in range(7)]
    assert [e["id"] for e in examples] == ids
    totals = np.zeros(3)
    for example, symbols in zip(of_test, letters(data, "test"), strict=True):
        nats, hits = alone(model, torch.cat((torch.tensor([2]), symbols[:-1])), symbols)
        assert example["nll"] == pytest.approx(nats.sum().item(), rel=1e-6)
        assert example["hits"] == hits.sum()
        assert example["tokens"] == example["units"] == example["length"] == len(symbols)
        assert (example["unit"], example["family"]) == ("residue", f"F{int(example['id'].split('-')[1]) // 3}")
        assert not {"swapped", "baseline", "undefined"} & example.keys()
        totals += (nats.sum().item(), hits.sum().item(), len(symbols))
    assert metrics["perplexity"] == pytest.approx(math.exp(totals[0] / totals[2]))
    assert metrics["token_accuracy"] == pytest.approx(100 * totals[1] / totals[2])
    names = ("perplexity", "bits", "token_accuracy")
    assert metrics.keys() == {*names, *(f"test_families.{name}" for name in names)}
    hits, tokens = (sum(e[name] for e in examples[23:]) for name in ("hits", "tokens"))
    assert metrics["test_families.token_accuracy"] == pytest.approx(100 * hits / tokens)


@pytest.mark.parametrize("corpus", [PROTEINS, MASKED])
def test_scores_do_not_depend_on_the_batches(judge, corpus):
    """Batches of one, which have no padding, and batches that have."""
    model = MeanReader(VOCABULARY, causal="masked" not in corpus)
    found = {tokens: judge(corpus, model, tokens=tokens)[1] for tokens in (1, 70, 4000)}
    assert max(len({*map(len, rows)}) for rows in model.reads) > 5
    for tokens in (70, 4000):
        for one, other in zip(found[1], found[tokens], strict=True):
            assert other.pop("nll") == pytest.approx(one["nll"], rel=1e-6)
            assert other == {name: value for name, value in one.items() if name != "nll"}


def test_all_models_are_judged_on_the_same_masked_letters(data, judge):
    models = [MeanReader(VOCABULARY, causal=False, seed=seed) for seed in (1, 2)]
    (_, first, _), (_, second, _) = (judge(MASKED, m, tokens=60 * i) for i, m in enumerate(models, 1))
    _, third, _ = judge(MASKED, models[1], tokens=1, swapped={"other": models[0]})
    reads = [sorted(row for rows in model.reads for row in rows) for model in models]
    assert [e["tokens"] for e in first] == [e["tokens"] for e in second]
    assert len(reads[0]) == 30 + 23  # alone, and once more swapped, on the first split
    assert {*map(tuple, reads[0])} == {*map(tuple, reads[1])}
    sizes = [len(symbols) for split in ("test", "test_families") for symbols in letters(data, split)]
    assert [e["tokens"] for e in first] == [max(1, round(0.15 * size)) for size in sizes]
    assert len({tuple(row) for row in reads[0]}) == 30
    swapped = [e["swapped"]["other"] for e in third[:23]]
    assert [nats for nats, _ in swapped] == pytest.approx([e["nll"] for e in first[:23]], rel=1e-6)


def test_swapped_models_are_judged_on_the_first_split_alone(judge):
    model, other = (MeanReader(VOCABULARY, causal=True, seed=seed) for seed in (1, 2))
    own, _, _ = judge(PROTEINS, other)
    metrics, examples, _ = judge(PROTEINS, model, swapped={"positive": other, "relu-2": model})
    assert metrics["token_accuracy@positive"] == pytest.approx(own["token_accuracy"])
    assert metrics["perplexity@positive"] == pytest.approx(own["perplexity"])
    assert metrics["perplexity@relu-2"] == metrics["perplexity"] != own["perplexity"]
    assert [e["split"] for e in examples if "swapped" in e] == ["test"] * 23
    assert not [name for name in metrics if name.startswith("test_families.") and "@" in name]


def scored_letters(data, prepared, split, masked):
    """What is to be predicted of each sequence of a split."""
    if not masked:
        return (data / "proteins" / f"{split}.sequence").read_text().splitlines()
    whole = prepared(MASKED).split(split)
    batch = whole.batch(np.arange(COUNTS[split]), (zlib.crc32(split.encode()),))
    return [decode(row[scored]) for row, scored in zip(batch.targets, batch.scored, strict=True)]


@pytest.mark.parametrize("corpus", [PROTEINS, MASKED])
@pytest.mark.parametrize("tokens", [1, 4000])
def test_the_baseline_predicts_by_the_letters_of_train(data, prepared, judge, corpus, tokens):
    model = MeanReader(VOCABULARY, causal="masked" not in corpus)
    metrics, examples, _ = judge(corpus, model, baseline=True, tokens=tokens)
    letters_of = {split: scored_letters(data, prepared, split, "masked" in corpus) for split in COUNTS}
    counts = Counter("".join(letters_of["train"]))
    (best, _), whole = counts.most_common(1)[0], counts.total() + VOCABULARY
    for split, prefix in (("test", ""), ("test_families", "test_families.")):
        expected = [
            (-sum(math.log((counts[letter] + 1) / whole) for letter in line), line.count(best))
            for line in letters_of[split]
        ]
        found = [e["baseline"] for e in examples if e["split"] == split]
        assert np.array(found) == pytest.approx(np.array(expected), rel=1e-9)
        nats, hits = np.sum(expected, axis=0) / len("".join(letters_of[split]))
        assert metrics[f"{prefix}baseline_accuracy"] == pytest.approx(100 * hits)
        assert metrics[f"{prefix}baseline_perplexity"] == pytest.approx(math.exp(nats))


def test_a_copy_is_right_where_all_of_it_is(judge):
    metrics, examples, _ = judge(COPIES, Copier(7))
    right = {"token_accuracy": 100.0, "sequence_accuracy": 100.0}
    assert metrics == pytest.approx({"perplexity": 1 / 0.9, "bits": -math.log2(0.9)} | right)
    assert {(e["tokens"], e["length"]) for e in examples} == {(n, 2 * n + 1) for n in range(2, 8)}
    blind, examples, _ = judge(COPIES, Copier(7, blind=(3, 5)), out="blind")
    right = [e["hits"] == e["tokens"] for e in examples]
    assert 0 < sum(right) < 40
    assert blind["sequence_accuracy"] == pytest.approx(100 * sum(right) / 40)
    assert sum(right) / 40 < blind["token_accuracy"] / 100 < 1


def test_a_prediction_that_is_no_number_is_refused_or_counts_as_the_least_one(data, judge):
    model, whole = (MeanReader(VOCABULARY, causal=True) for _ in range(2))
    wrong = [int(encode(letter)[0]) for letter in "AC"]
    model.output = Broken(model.output, wrong)
    assert_refused(r"the model gives [\d,]+ symbols of split 'test'", judge, PROTEINS, model)
    assert_refused("the swapped model 'broken' gives", judge, PROTEINS, whole, swapped={"broken": model})
    metrics, examples, _ = judge(PROTEINS, model, may_diverge=True, swapped={"whole": whole})
    found = torch.cat(letters(data, "test"))
    count = torch.isin(found, torch.tensor(wrong)).sum().item()
    assert sum(e["undefined"] for e in examples[:23]) == count > 0
    assert metrics["undefined"] == pytest.approx(100 * count / len(found))
    assert max(e["nll"] - e["swapped"]["whole"][0] for e in examples[:23]) > -math.log(LEAST) - 20
    assert all(e["nll"] >= -math.log(LEAST) * e["undefined"] for e in examples)
    assert all(e["hits"] <= e["tokens"] - e["undefined"] for e in examples)
    assert math.isfinite(metrics["perplexity"])


@pytest.fixture
def painter():
    return MeanReader(9, causal=True, levels=8)


def test_pictures_have_bits_of_all_pixels_but_the_first(data, judge, painter):
    metrics, examples, _ = judge(PIXELS, painter)
    images = np.load(data / "pixels" / "test.images.npy").reshape(23, -1) // 32
    for example, image in zip(examples, images, strict=True):
        pixels = torch.from_numpy(image.astype(np.int64))
        nats, _ = alone(painter, torch.cat((torch.tensor([8]), pixels[:-1])), pixels)
        assert example["nll"] == pytest.approx(nats[1:].sum().item(), rel=1e-6)
        assert (example["tokens"], example["length"]) == (SIDE**2 - 1, SIDE**2)
        assert "hits" not in example
    nats = sum(e["nll"] for e in examples)
    assert metrics == {"bits": pytest.approx(nats / BIT / (23 * 15))}


@pytest.mark.parametrize(("part", "given"), [(0.5, 8), (0.7, 11), (0.001, 1), (0.999, 15)])
def test_pictures_are_begun_and_completed(data, judge, painter, part, given):
    wanted = {"samples": 6, "completions": 3, "given": part}
    _, _, place = judge(PIXELS, painter, pictures=wanted)
    images = np.rint(np.load(data / "pixels" / "test.images.npy") // 32 * (255 / 7)).astype(np.uint8)
    drawn = np.load(place / "pictures.npz")
    assert drawn["given"] == given
    assert (drawn["true"] == images[[0, 11, 22]]).all()
    flat = {name: drawn[name].reshape(len(drawn[name]), -1) for name in drawn.files if name != "given"}
    counts = {"samples": 6, "true": 3, "occluded": 3, "completed": 3}
    assert {name: drawn[name].shape for name in flat} == {name: (n, SIDE, SIDE, 1) for name, n in counts.items()}
    for name in ("occluded", "completed"):
        assert (flat[name][:, :given] == flat["true"][:, :given]).all()
    assert not flat["occluded"][:, given:].any()
    assert (flat["completed"] != flat["true"]).any()
    assert set(flat["samples"][:, 0]) <= set(images[:, 0, 0, 0])
    assert len(np.unique(flat["samples"], axis=0)) == 6


def test_the_given_part_ends_between_pixels_of_several_colours(tmp_path, painter):
    write_pictures(tmp_path / "colours", dict.fromkeys(("train", "valid", "test"), 3), (3, 3, 3))
    _, text = in_process.prepared("sequences", PIXELS, tmp_path / "colours", tmp_path / "out")
    with torch.inference_mode():
        drawn = draw_pictures(painter, text, "test", PicturesConfig(samples=1, completions=2))
    assert drawn["given"] == 12  # four of nine places
    assert drawn["completed"].shape == (2, 3, 3, 3)


TASK_COPIES = {
    "of": "copies", "dataset": "toy", "shortest": 2, "longest": 4, "test": ["test", "test_other"],
    "sequences": {"train": 90, "valid": 20, "test": 15, "test_other": 10},
}  # fmt: skip
TASK_MASKED = {"of": "proteins", "dataset": "toy", "length": 20, "masked": True}
TRAINING = {
    "updates": 40, "batch": {"sentences": 10}, "validate_every": 20,
    "optimizer": {"name": "adam", "learning_rate": 0.03},
}  # fmt: skip
REPLICATION = paper("sequences", ToyConfig, Toy)


@pytest.fixture
def copies(prepared):
    """The folder of the prepared copies."""
    return prepared(TASK_COPIES).folder


def config(corpus=TASK_COPIES, training=TRAINING, **sections):
    return run_config("sequences", corpus, model={"size": 12}, training=training, **{"seeds": [3, 4]} | sections)


def test_the_weights_are_judged_in_other_models_too(copies, tmp_path):
    """What these draw for themselves is the same every time, and another for another seed."""
    swapped = config(evaluation={"swapped": {"same": {}, "noisy": {"noise": 2.0}}})
    metrics = run(REPLICATION, swapped, copies, tmp_path)
    for scores in metrics:
        assert scores["perplexity@same"] == scores["perplexity"]
        assert scores["perplexity@noisy"] > scores["perplexity"]
    assert metrics[0]["perplexity@noisy"] != metrics[1]["perplexity@noisy"]
    assert in_process.judge(REPLICATION, swapped, copies, tmp_path) == metrics


def test_a_model_with_other_weights_cannot_take_the_place(copies, tmp_path):
    wider = config(training={}, seeds=[3], evaluation={"swapped": {"wide": {"size": 13}}})
    in_process.train(REPLICATION, wider, copies, tmp_path)
    assert_refused(
        r"swapped\.wide makes a model whose weights are others", in_process.judge, REPLICATION, wider, copies, tmp_path
    )


def test_what_is_masked_changes_from_batch_to_batch_and_with_the_seed(prepared):
    text, training, scored = prepared(TASK_MASKED), config(corpus=TASK_MASKED).training, []
    train = text.split("train")
    for seed, number in ((3, 0), (3, 4), (4, 0)):
        order = training_order(train, training.batch, seed)
        batch = next(text.batches(training, seed)(number))
        assert torch.equal(batch.scored, train.batch(next(order(start=number)), (seed, number)).scored)
        scored.append(train.batch(np.arange(10), (seed, number)).scored)
    assert not any(torch.equal(*pair) for pair in itertools.combinations(scored, 2))


def test_validation_has_every_sequence_once_and_always_masks_the_same(prepared):
    text = prepared(TASK_MASKED)
    batches = text.valid(config(corpus=TASK_MASKED).training)
    assert sum(len(batch.inputs) for batch in batches) == COUNTS["valid"]
    again = text.valid(config(corpus=TASK_MASKED, evaluation={"tokens": 7}).training)
    for one, other in zip(batches, again, strict=True):
        assert torch.equal(one.inputs, other.inputs)
        assert torch.equal(one.scored, other.scored)


RANDOM_PROTEINS = random_proteins(30, seed=3)
VALID = RANDOM_PROTEINS.batch(np.arange(9))


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
    order = endless_batches(RANDOM_PROTEINS.lengths, pool=2, seed=5, sentences=4, start=start)
    return (RANDOM_PROTEINS.batch(chosen, (5, number)) for number, chosen in enumerate(order, start))


@pytest.fixture
def pixels(prepared):
    corpus = {"of": "pixels", "levels": 8}
    return prepared(corpus), run_config("sequences", corpus)


def test_the_upper_half_of_a_test_picture_is_given_and_kept(pixels):
    text, run = pixels
    tried = try_input(MeanReader(text.symbols, True, levels=8), text, run, "test:1", 3)
    given, completed, true = tried.pictures.values()
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
    assert tried.pictures["completed"].reshape(-1, 3)[:3, 0].tolist() == [255, 0, 255]
    picture = np.zeros((8, 8), dtype=np.uint8)
    picture[:4] = 255
    Image.fromarray(picture).save(tmp_path / "p.png")
    tried = try_input(model, text, run, str(tmp_path / "p.png"), 3)
    assert (tried.pictures["as it is"][0] == 255).all()
    assert (tried.pictures["as it is"][3] == 0).all()


@pytest.mark.parametrize(("asked", "message"), [
    ("test:23", "from test:0 to test:22"), ("1 8", "8 is no symbol"), ("1 " * 16, "the input has 16 symbols"),
    ("none.png", "there is no file .none.png"), ("", "the input is empty"),
])  # fmt: skip
def test_what_is_no_picture_is_refused(asked, message, pixels):
    text, run = pixels
    assert_refused(message, try_input, None, text, run, asked, 3)


def proteins(masked):
    run = run_config("sequences", {"of": "proteins", "masked": masked, "length": 100})
    return PreparedSequences(None, run.corpus), run, MeanReader(VOCABULARY, causal=not masked)


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
