"""Batches of captions, the module of captioners, and what evaluation writes down of every image, against one by one."""

import itertools
import json
import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from shared.data.generated.scenes import SIDE
from shared.data.ragged import RaggedArray
from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.beam import beam_search
from shared.decoding.constraints import Constraints
from shared.decoding.protocol import select_beams, select_sources
from shared.metrics.captioning import bleu_statistics
from shared.metrics.translation import corpus_bleu
from shared.tasks.captioning import evaluation as of_captions
from shared.tasks.captioning.corpus import CaptionBatch, Captioned, CaptionedSplit, features_folder
from shared.tasks.captioning.module import CaptioningModule
from shared.tasks.captioning.settings import CaptioningTraining
from shared.vision.features import Grid, coverage
from tests.refused import assert_refused
from tests.tasks import in_process
from tests.tasks.captioning import toy_captioner as toy
from tests.tasks.captioning.squares import PICTURES, write_pictures, write_split
from tests.tasks.captioning.toy_captioner import ToyCaptioner
from tests.tasks.in_process import judged, run_config
from tests.tasks.modules import SETTINGS, logged

GRID = Grid(rows=2, columns=3, size=4)
NO_LINK = -1
corner = st.tuples(st.integers(0, 5), st.integers(1, 6)).filter(lambda ends: ends[0] < ends[1])
boxes = st.tuples(corner, corner).map(lambda ends: tuple(end / 6 for end in np.array(ends).T.ravel()))


@st.composite
def images(draw):
    """Images with boxes of their objects and captions: symbols, each with what it names of the image or nothing."""
    drawn = []
    for _ in range(draw(st.integers(1, 4))):
        own = draw(st.lists(boxes, max_size=3))
        word = st.tuples(st.integers(4, 90), st.integers(NO_LINK, len(own) - 1))
        drawn.append((own, draw(st.lists(st.lists(word, max_size=5), min_size=1, max_size=3))))
    return drawn


def split_of(images):
    captions, owner, links, first = [], [], [], 0
    for image, (own, texts) in enumerate(images):
        for text in texts:
            captions.append([*(symbol for symbol, _ in text), EOS])
            owner.append(image)
            links += [*(thing if thing == NO_LINK else first + thing for _, thing in text), NO_LINK]
        first += len(own)
    features = np.arange(len(images) * 24, dtype=np.float16).reshape(-1, 6, 4)
    table = np.array([box for own, _ in images for box in own]).reshape(-1, 4)
    return CaptionedSplit(features, RaggedArray.pack(captions), np.array(owner), np.array(links, np.int32), table, GRID)


def flat(images):
    return [(image, own, text) for image, (own, texts) in enumerate(images) for text in texts]


@given(images(), st.randoms())
def test_a_batch_is_what_building_it_symbol_by_symbol_gives(images, random):
    split, rows = split_of(images), flat(images)
    order = random.choices(range(len(rows)), k=random.randint(1, len(rows)))
    batch = split.batch(np.array(order))
    width = 1 + max(len(rows[i][2]) for i in order)
    assert batch.captions.shape == batch.mask.shape == (len(order), width)
    assert batch.tokens == sum(len(rows[i][2]) + 1 for i in order)
    regions = batch.regions if batch.regions is not None else torch.zeros(len(order), width, 6)
    assert (batch.regions is None) == (not any(own for own, _ in images))
    for row, i in enumerate(order):
        image, own, text = rows[i]
        ended = [*(symbol for symbol, _ in text), EOS]
        assert batch.captions[row].tolist() == ended + [PAD] * (width - len(ended))
        assert batch.mask[row].tolist() == [True] * len(ended) + [False] * (width - len(ended))
        assert batch.features[row].flatten().tolist() == list(range(24 * image, 24 * image + 24))
        things = [thing for _, thing in text] + [NO_LINK] * (width - len(text))
        for found, thing in zip(regions[row], things, strict=True):
            inside = np.zeros(6) if thing == NO_LINK else coverage([own[thing]], 2, 3)[0]
            assert found.tolist() == pytest.approx(inside / max(inside.sum(), 1e-9), abs=1e-6)
        assert split.lengths[0][i] == len(ended)


@pytest.mark.parametrize("changes", [
    *({"features": np.zeros(shape, np.float16)} for shape in ((1, 6, 5), (1, 4, 4), (0, 6, 4))),
    {"image": np.array([0, 0])}, {"links": np.array([NO_LINK], np.int32)}, {"boxes": np.zeros((0, 4))},
])  # fmt: skip
def test_features_and_captions_of_different_data_are_refused(changes):
    split = split_of([([(0, 0, 1, 1)], [[(7, 0)]])])
    assert_refused("do not fit; run the features and prepare stages", CaptionedSplit, **{**vars(split), **changes})


RANDOM_PICTURES = toy.random_pictures(8, seed=3)


def module_of(decode=toy.texts):
    return CaptioningModule(toy.ToyCaptioner(), CaptioningTraining.model_validate(SETTINGS), decode, toy.LONGEST)


def batch(*indices):
    return RANDOM_PICTURES.batch(np.array(indices))


@torch.no_grad()
def test_the_model_gets_the_regions_in_training_and_validation(monkeypatch):
    module, examples, seen = module_of(), batch(0, 2), []
    monkeypatch.setattr(module.model, "forward", lambda *given: seen.append(given[2]) or toy.ToyCaptioner()(*given))
    with_boxes = CaptionBatch(examples.features, examples.captions, torch.rand(2, 5, 4))
    module.training_step(with_boxes, 0)
    module.validation_step(with_boxes, 1)
    assert [regions is with_boxes.regions for regions in seen] == [True, True]


@torch.no_grad()
def test_validation_is_a_mean_over_symbols_and_bleu_of_all_images_together(monkeypatch):
    captions, images = [batch(0, 1, 2, 3, 4), batch(5), batch(6, 7)], toy.image_batches(RANDOM_PICTURES, 3)
    assert [len(each.references) for each in images] == [3, 3, 2]
    references = [own for each in images for own in each.references]
    made = [f"{own[number % 2]} 9"[number:] for number, own in enumerate(references)]  # some of it is right
    texts_made = itertools.cycle(made)
    module = module_of(lambda lines: [next(texts_made) for _ in lines])
    values = logged(module.eval(), monkeypatch)
    for _ in range(2):  # the second epoch begins with nothing of the first
        for number, examples in enumerate([*captions, *images]):
            module.validation_step(examples, number)
        module.on_validation_epoch_end()
        nats = [module.model(each.features, each.captions).nats for each in captions]
        bleu = float(corpus_bleu(bleu_statistics(made, references).sum(0), smooth=False))
        assert values == {
            "valid_loss": pytest.approx(sum(float(each.sum()) for each in nats) / (4 * (5 + 6))),
            "valid_bleu": pytest.approx(bleu),
        }
        assert 20 < bleu < 90
        module.model.output.weight.mul_(-3)


PICTURE_GRID = Grid(rows=2, columns=4, size=5)
PLACES = PICTURE_GRID.rows * PICTURE_GRID.columns
CAPTIONS_ALONE = {"id", "split", "hypothesis", "references", "nll", "tokens", "exact", "caption"}


class Parrot(nn.Module):
    """Says a caption that it was given of each image, whose number its features begin with, looking at one place."""

    def __init__(self, tokenizer, said, places):
        super().__init__()
        self.said = [[*line, EOS] for line in tokenizer.encode(said)]
        self.places, self.size = places, len(tokenizer)
        self.unused = nn.Parameter(torch.zeros(()))

    def forward(self, features, captions, regions=None):
        weights = torch.zeros(*captions.shape, PLACES)
        for row, image in enumerate(features[:, 0, 0].long().tolist()):
            weights[row, :, self.places[image]] = 1
        return Captioned(torch.ones(captions.shape) * (captions != PAD), weights)

    def start(self, features):
        return features, torch.zeros(len(features), 1, dtype=torch.long)

    def step(self, tokens, state):
        features, steps = state
        log_probs = torch.full((*tokens.shape, self.size), -20.0)
        for row, image in enumerate(features[:, 0, 0].long().tolist()):
            log_probs[row, :, self.said[image][int(steps[row, 0])]] = -0.1
        return log_probs, None, (features, steps + 1)

    def reorder(self, state, sources, beams):
        return select_sources(state[0], sources), select_beams(state[1], sources, beams)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The prepared task and its corpus; tests run in the folder where the data set lies."""
    root = tmp_path_factory.mktemp("captions")
    dataset, out = root / "data" / "toy", root / "runs" / "tasks" / "scenes"
    write_pictures(dataset, PICTURES)
    rng = random.Random(5)
    splits = {name: [rng.sample(range(3), rng.randint(1, 3)) for _ in range(14)] for name in ("train", "valid", "test")}
    splits["train"][0] = [3]
    splits["hard"] = [[3], [3, 0], [1, 3, 2]]
    for seed, (name, scenes) in enumerate(splits.items()):
        write_split(dataset, name, [*scenes, [0, 1]], seed)
    sections = {
        "encoder": {"name": "efficientnet-lite0", "layer": "block15"}, "tokenizer": {"kind": "words", "size": 60},
        "test": ["test", "hard"], "images": {name: len(scenes) for name, scenes in splits.items()},
    }  # fmt: skip
    features = features_folder(out)
    features.mkdir(parents=True)
    for seed, (name, scenes) in enumerate(splits.items()):
        values = np.random.default_rng(seed).normal(size=(len(scenes), PLACES, PICTURE_GRID.size)).astype(np.float16)
        values[:, 0, 0] = np.arange(len(scenes))
        np.save(features / f"{name}.npy", values)
    record = {"dataset": "toy", "encoder": run_config("captioning", sections).corpus.encoder.model_dump(mode="json"),
              "rows": PICTURE_GRID.rows, "columns": PICTURE_GRID.columns, "size": PICTURE_GRID.size,
              "splits": {name: {"images": len(scenes)} for name, scenes in splits.items()}}  # fmt: skip
    features.with_suffix(".json").write_text(json.dumps(record))
    _, captions = in_process.prepared("captioning", sections, dataset, out)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setattr(of_captions, "fetch", lambda dataset: None)
        yield captions, sections


def judge(prepared, out, *, model=None, evaluation=None, **options):
    """Metrics, examples and the model that was judged."""
    text, sections = prepared
    if model is None:
        torch.manual_seed(1)
        model = ToyCaptioner(**{"vocabulary": len(text.tokenizer), "width": PICTURE_GRID.size, "gated": True} | options)
        with torch.no_grad():  # so that captions differ, and end
            model.output.weight.mul_(8)
            model.output.bias[EOS] += 2
    config = run_config("captioning", sections, evaluation={"metrics": ["bleu"]} | (evaluation or {}))
    return *judged(config, text, model.eval(), out), model


def alone(model, text, split, image, caption):
    """What the model says of one caption of one image, each by its own."""
    features = torch.from_numpy(np.array(text.split(split).features[image])).float().unsqueeze(0)
    symbols = torch.tensor([[*text.tokenizer.encode([caption])[0], EOS]])
    with torch.no_grad():
        return model(features, symbols)


def inside(box):
    """(L,) the share of each place that a box in pixels covers, counted pixel by pixel."""
    left, top, right, bottom = box
    covered = np.zeros((SIDE, SIDE))
    covered[top:bottom, left:right] = 1
    height, width = SIDE // PICTURE_GRID.rows, SIDE // PICTURE_GRID.columns
    return covered.reshape(PICTURE_GRID.rows, height, PICTURE_GRID.columns, width).mean(axis=(1, 3)).reshape(-1)


def greedy(model, text, split, image, longest=30, beam=1):
    features = torch.from_numpy(np.array(text.split(split).features[[image]])).float()
    few = torch.zeros(1, dtype=torch.long)
    constraints = Constraints(begin=BOS, end=EOS, padding=PAD, minimum=few, maximum=few + longest)
    with torch.no_grad():
        found = beam_search(model, model.start(features), constraints, beam=beam)
    return text.tokenizer.decode(found.best())[0]


def test_every_image_has_the_record_it_has_alone(prepared, tmp_path):
    text, _ = prepared
    metrics, examples, model = judge(prepared, tmp_path)
    images, own = text.images("test"), text.images("test").captions
    assert [e["id"] for e in examples] == [*(f"test-{i}" for i in range(14)), *(f"hard-{i}" for i in range(3))]
    for i, example in enumerate(examples[:14]):
        said = [alone(model, text, "test", i, caption.text) for caption in own[i]]
        assert example["references"] == [caption.text for caption in own[i]]
        assert example["hypothesis"] == greedy(model, text, "test", i)
        assert example["nll"] == pytest.approx(sum(answer.nats.sum().item() for answer in said), rel=1e-6)
        assert example["tokens"] == sum(len(caption.text.split()) + 1 for caption in own[i])
        assert example["objects"] == len(images.boxes[i])
        regions = {"mass": 0.0, "area": 0.0, "words": 0, "named": 0.0, "others": 0.0, "compared": 0}
        content = []
        for caption, answer in zip(own[i], said, strict=True):
            for start, end, thing in caption.mentions:
                covered = inside(images.boxes[i][thing])
                for place in range(start, end):
                    weights = answer.attention[0, place].double().numpy()
                    regions["mass"] += float(weights @ covered)
                    regions["area"] += covered.mean()
                    regions["words"] += 1
                    content.append(answer.gates[0, place].item())
                    masses = [float(weights @ inside(box)) for box in images.boxes[i]]
                    if len(masses) > 1:
                        regions["named"] += masses[thing]
                        regions["others"] += (sum(masses) - masses[thing]) / (len(masses) - 1)
                        regions["compared"] += 1
        assert {name: example["regions"][name] for name in regions} == pytest.approx(regions, abs=1e-4)
        gates, ends = ([answer.gates.sum().item() for answer in said], [answer.gates[0, -1].item() for answer in said])
        assert example["gate"]["content"] == pytest.approx([sum(content), len(content)], abs=1e-4)
        assert example["gate"]["end"] == pytest.approx([sum(ends), 3], abs=1e-4)
        others = [sum(gates) - sum(content) - sum(ends), example["tokens"] - len(content) - 3]
        assert example["gate"]["function"] == pytest.approx(others, abs=1e-4)
    tokens = sum(example["tokens"] for example in examples[:14])
    assert metrics["nll_per_token"] == pytest.approx(sum(e["nll"] for e in examples[:14]) / tokens)
    measures = "bleu4 exact_match truth attention_gain attention_contrast gate_difference hard.bleu1"
    assert metrics.keys() >= {*measures.split()}


def test_what_a_caption_names_is_found_in_it(prepared, tmp_path):
    text, _ = prepared
    said, places = ["there is a"] * 14, [0] * 14
    scenes = [[PICTURES[int(placed.code) - 1].name for placed in scene.objects] for scene in text.images("test").scenes]
    both = next(i for i, names in enumerate(scenes) if {"cat", "polar bear"} <= {*names})
    phone = next(i for i, names in enumerate(scenes) if "mobile phone" in names and i != both)
    said[both] = "an animal to the left of a polar bear ; the cat is above the animal"
    said[phone] = "a device ; the mobile phone is above a mobile"
    places[phone] = 5
    _, examples, _ = judge(prepared, tmp_path, model=Parrot(text.tokenizer, said, places))
    assert [example["hypothesis"] for example in examples[:14]] == said
    own, boxes = [e["generated_regions"] for e in examples], text.images("test").boxes
    bear, cat = (boxes[both][scenes[both].index(name)] for name in ("polar bear", "cat"))
    assert own[both]["words"] == 3  # both are animals
    assert own[both]["mass"] == pytest.approx(2 * inside(bear)[0] + inside(cat)[0])
    assert own[phone]["words"] == 3  # half of a name is none
    assert own[phone]["mass"] == pytest.approx(3 * inside(boxes[phone][scenes[phone].index("mobile phone")])[5])
    assert sum(regions["words"] for regions in own[:14]) == 6
    assert examples[phone]["nll"] == examples[phone]["tokens"]


def test_what_was_never_seen_is_known_by_its_kind(prepared, tmp_path):
    text, _ = prepared
    said = ["a vehicle", "a cat above a vehicle", "this is a canoe"] + [""] * 11
    _, examples, _ = judge(prepared, tmp_path, model=Parrot(text.tokenizer, said, [0] * 14))
    assert [example["generated_regions"]["words"] for example in examples[14:]] == [1, 2, 0]
    assert examples[14]["truth"]["right"] == 1
    assert (examples[16]["truth"]["named"], examples[16]["truth"]["objects"]) == (0, 3)
    assert examples[3]["hypothesis"] == ""


def test_a_model_that_does_not_attend_has_captions_only(prepared, tmp_path):
    metrics, examples, _ = judge(prepared, tmp_path, attends=False, gated=False)
    assert examples[0].keys() == {*CAPTIONS_ALONE, "objects", "truth"}
    assert not [name for name in metrics if name.startswith(("attention", "pointing", "generated", "gate"))]
    with np.load(tmp_path / "attention.npz") as arrays:
        assert not [name for name in arrays if name.startswith(("weights", "gates"))]


def test_beams_and_longest_captions_are_those_asked_for(prepared, tmp_path):
    text, _ = prepared
    _, narrow, model = judge(prepared, tmp_path)
    _, wide, _ = judge(prepared, tmp_path, evaluation={"beam": 4})
    _, short, _ = judge(prepared, tmp_path, evaluation={"longest": 2})
    for i in range(14):
        assert wide[i]["hypothesis"] == greedy(model, text, "test", i, beam=4)
        assert short[i]["hypothesis"] == greedy(model, text, "test", i, longest=2)
    assert [e["hypothesis"] for e in wide] != [e["hypothesis"] for e in narrow]
    assert max(len(e["hypothesis"].split()) for e in short) == 2


def test_images_of_every_split_are_kept_for_figures(prepared, tmp_path):
    text, _ = prepared
    _, examples, model = judge(prepared, tmp_path, evaluation={"heatmaps": 3})
    with np.load(tmp_path / "attention.npz") as arrays:
        assert (arrays["rows"], arrays["columns"]) == (PICTURE_GRID.rows, PICTURE_GRID.columns)
        kept = [("test", 0), ("test", 6), ("test", 13), ("hard", 0), ("hard", 1), ("hard", 2)]
        for k, (split, i) in enumerate(kept):
            example = next(of for of in examples if of["id"] == f"{split}-{i}")
            answer = alone(model, text, split, i, example["hypothesis"])
            images = text.images(split)
            assert str(arrays[f"id_{k}"]) == example["id"]
            assert arrays[f"words_{k}"].tolist() == [*example["hypothesis"].split(), "</s>"]
            np.testing.assert_allclose(arrays[f"weights_{k}"], answer.attention[0], rtol=1e-4)
            np.testing.assert_allclose(arrays[f"gates_{k}"], answer.gates[0], rtol=1e-4)
            np.testing.assert_array_equal(arrays[f"image_{k}"], images.images([i])[0])
            assert arrays[f"boxes_{k}"].tolist() == [list(box) for box in images.boxes[i]]
            assert arrays[f"references_{k}"].tolist() == example["references"]
            assert arrays[f"correct_{k}"] == example["truth"]["all_true"]
        assert arrays["names_3"].tolist() == ["vehicle"]
        assert "id_6" not in arrays


def test_of_photos_nothing_is_known_but_their_captions(prepared, tmp_path):
    text, sections = prepared
    split, references = text.split("test"), text.references("test")
    given = replace(split, links=np.full_like(split.links, -1), boxes=np.zeros((0, 4)))
    photos = SimpleNamespace(boxes=[[]] * 14, images=text.images("test").images)
    of_photos = SimpleNamespace(
        tokenizer=text.tokenizer,
        grid=PICTURE_GRID,
        split=lambda _: given,
        images=lambda _: photos,
        references=text.references,
    )
    said = [own[0] if i < 7 else "" for i, own in enumerate(references)]
    model = Parrot(text.tokenizer, said, [0] * 14)
    metrics, examples, _ = judge((of_photos, sections | {"test": ["test"], "images": {}}), tmp_path, model=model)
    assert metrics["exact_match"] == 0.5
    assert {*examples[0]} == CAPTIONS_ALONE
    with np.load(tmp_path / "attention.npz") as arrays:
        kept = {name.partition("_")[0] for name in arrays}
        assert kept == {"rows", "columns", "id", "image", "references", "words", "weights"}
