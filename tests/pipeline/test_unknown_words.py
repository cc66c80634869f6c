"""Texts of which a model knows no word: results that are numbers, or a sentence before anything is trained."""

import json
import math

import pytest

from shared.data.fetch import MANIFEST, _record
from shared.pipeline.__main__ import main
from tests.pipeline.scratch import change_yaml
from tests.pipeline.toys import SMOKE, Paper, contents

TEXT = ("text",)
TEXTS = {"translation": ("source", "target"), "classification": TEXT, "captioning": ("captions",), "language": TEXT}
"""Kind of task to the columns whose words become symbols; the symbols of sequences are fixed in the code."""
MORE = {"translation": {"corpus": {"dictionary": True}, "decoding": {"beam": 2, "no_unknown": True}}}
"""Settings of a kind that do something about unknown words."""


@pytest.fixture(params=TEXTS)
def paper(request, toys):
    """A fetched paper of each kind whose words a test can replace."""
    made = Paper(request.param, toys)
    made.change("training", updates=4, validate_every=2)
    for section, values in MORE.get(made.kind, {}).items():
        made.change(section, **values)
    made.stage("fetch", "task")
    return made


def replace_words(paper, splits, replaced):
    """Replace each word of some splits by what ``replaced`` makes of its split and place, as if fetched like that."""
    folder = paper.root / "data" / paper.name

    def line(split, text):
        return " ".join(replaced(split, place) for place in range(len(text.split())))

    for split in splits:
        for path in (folder / f"{split}.{column}" for column in TEXTS[paper.kind]):
            lines = path.read_text(encoding="utf-8").splitlines()
            if paper.kind == "captioning":
                lines = [json.dumps([line(path.name, caption) for caption in json.loads(each)]) for each in lines]
            else:
                lines = [line(path.name, each) for each in lines]
            path.write_text("".join(f"{each}\n" for each in lines), encoding="utf-8")
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    (folder / MANIFEST).unlink()
    files = {path.name: _record(path).model_dump() for path in sorted(folder.iterdir())}
    (folder / MANIFEST).write_text(json.dumps(manifest | {"files": files}), encoding="utf-8")


@pytest.mark.slow
def test_texts_of_unknown_words_alone_are_judged_in_numbers(paper):
    splits = ["valid", *paper.toy.task["corpus"]["test"]]
    replace_words(paper, splits, lambda name, place: f"{name}{place}")
    paper.prepare()
    summary = paper.json("tasks/task/summary.json")
    for split in splits:
        known = summary.get("splits", summary)[split]["unknown_share"]
        assert known > 0.9  # ends of lines are symbols, too
    for stage in ("train", "evaluate"):
        paper.stage(stage, "long", "short", "elsewhere")
    for variant in ("long", "short"):
        metrics = paper.json(f"{variant}/metrics.json")
        for scores in (*metrics["seeds"].values(), metrics["mean"]):
            assert paper.toy.metric in scores
            assert all(math.isfinite(score) for score in scores.values())
    assert main(["report", paper.name, *SMOKE]) == 0
    pages = paper.root / "reports" / "smoke" / paper.name
    assert "T-C1" in (pages / "README.md").read_text(encoding="utf-8")


def test_training_texts_without_a_word_are_refused_before_anything_is_trained(paper, capsys):
    replace_words(paper, ["train"], lambda name, place: "<unk>")
    if paper.toy.after == "features":
        paper.stage("features", "task")
    before = contents(paper.runs)
    change_yaml(paper.root / "params.yaml", lambda content: content.update(workers=1))
    error = paper.error(capsys, "prepare", "task")
    assert error.startswith(f"data/{paper.name}.yaml: the ")
    assert "vocabulary would be empty" in error
    assert error.endswith("correct the data.")
    assert contents(paper.runs) == before or not paper.prepared.exists()
