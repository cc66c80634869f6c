"""The command ``try`` on trained toys of all kinds; and texts of which a model knows no word, at every stage."""

import html
import io
import json
import math
import re
import shutil

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

import replications  # noqa: F401  before a project of toys puts its own in its place
from shared.data.fetch import MANIFEST, _record
from shared.pipeline.__main__ import main
from shared.pipeline.trying import print_tried
from shared.tasks.captioning import trial as captioning_trial
from shared.tasks.captioning.corpus import open_images
from shared.tasks.tried import Tried, Weights
from tests.pipeline.scratch import change_yaml, refusal
from tests.pipeline.toys import SEEDS, SMOKE, TOYS, Paper, contents, copy, enter


@pytest.fixture
def toy(made, monkeypatch):
    """From a kind to its paper, in the project that becomes the current one."""

    def entered(kind):
        root = made(kind)
        enter(root, monkeypatch)
        monkeypatch.setattr(captioning_trial, "fetch", lambda dataset: None)
        monkeypatch.setenv("COLUMNS", "100")
        return Paper(kind, root)

    return entered


def first_line(paper, language):
    """Of the test text."""
    return (paper.root / "data" / paper.name / f"test.{language}").read_text().splitlines()[0]


def some_word(paper):
    """That the model knows."""
    return first_line(paper, "source" if paper.kind == "translation" else "text").split()[0]


def tried(capsys, paper, text, *options, status=0):
    """What the command prints: on standard output if it works, else its error."""
    capsys.readouterr()
    assert main(["try", f"{paper.name}.long", text, "--scale", "smoke", *options]) == status
    printed = capsys.readouterr()
    return printed.out if status == 0 else printed.err.strip()


def test_a_translation_shows_what_each_word_was_written_from(toy, capsys):
    paper = toy("translation")
    sentence = (paper.prepared / "test" / "source.txt").read_text().splitlines()[0]
    printed = tried(capsys, paper, sentence)
    assert f"toy_translation.long, scale smoke, seed {SEEDS[0]}" in printed
    assert f"Input   {sentence}" in printed
    output = next(line for line in printed.splitlines() if line.startswith("Output")).split()[1:]
    strongest = [line for line in printed.splitlines() if " %" in line]
    assert [line.split()[0] for line in strongest] == [*output, "</s>"]
    assert all(line.split()[1] in {*sentence.split(), "</s>"} for line in strongest)
    assert "Beam search with 2 hypotheses" in printed
    assert "██" in printed


def test_the_seed_decides_which_model_is_tried(toy, capsys):
    paper = toy("translation")
    sentence = (paper.prepared / "test" / "source.txt").read_text().splitlines()[0]
    printed = [tried(capsys, paper, sentence, "--seed", str(seed)) for seed in (*SEEDS, SEEDS[0])]
    assert printed[0] == printed[2]
    assert printed[0].splitlines()[1:] != printed[1].splitlines()[1:]


def test_a_classification_shows_probabilities_and_the_words_of_every_row(toy, capsys):
    paper = toy("classification")
    text = (paper.prepared / "test" / "first.txt").read_text().splitlines()[0]
    printed = tried(capsys, paper, text)
    classes = (paper.prepared / "classes.txt").read_text().split()
    rows = [line.split() for line in printed.splitlines()]
    shares = {words[0]: float(words[-2]) for words in rows if len(words) == 4 and words[3] == "%"}
    assert shares.keys() == {*classes}
    assert sum(shares.values()) == pytest.approx(100, abs=0.2)
    assert f"Output  {max(shares, key=shares.get)}" in printed
    assert all(f"  {name}" in printed for name in ("all rows", "row 1", "row 2"))


def test_a_caption_has_a_map_of_each_word_and_a_file_gives_what_the_stored_picture_gives(toy, capsys, tmp_path):
    paper = toy("captioning")
    printed = tried(capsys, paper, "test:2")
    output = next(line for line in printed.splitlines() if line.startswith("Output"))
    assert all(word in printed.split("Where the model looked")[1] for word in output.split()[1:])
    path = tmp_path / "picture.png"
    Image.fromarray(open_images(paper.root / "data" / paper.name, "test").images([2])[0]).save(path)
    assert output in tried(capsys, paper, str(path))


def test_a_text_is_continued_with_the_same_draws_and_weights_of_each_new_word(toy, capsys):
    paper = toy("language")
    line = first_line(paper, "text").split()
    printed = tried(capsys, paper, " ".join(line[:8]))
    output = next(line for line in printed.splitlines() if line.startswith("Output")).split()[1:]
    drawn = TOYS["language"].task["evaluation"]["samples"]["length"]
    assert 0 < len(output) <= drawn  # line ends are no words
    assert f"{drawn} symbols are drawn at temperature 1" in printed
    assert printed.count(" %,") == 2 * drawn
    assert printed == tried(capsys, paper, " ".join(line[:8]))
    assert "Only the last 20 of 30 symbols are read" in tried(capsys, paper, " ".join((line * 30)[:30]))


def test_a_word_is_copied(toy, capsys):
    paper = toy("sequences")
    printed = tried(capsys, paper, "3 1 4")
    copy = next(line for line in printed.splitlines() if line.startswith("Output")).split()[1:]
    right = sum(one == other for one, other in zip(copy, "314", strict=True))
    assert f"As they were given: {right} of 3 symbols." in printed


@pytest.mark.parametrize("kind", ["translation", "captioning"])
def test_weights_that_come_along_answer_where_nothing_was_trained_or_fetched(kind, toy, capsys, tmp_path, monkeypatch):
    paper = toy(kind)
    text = "test:1" if kind == "captioning" else first_line(paper, "source")
    own = tried(capsys, paper, text)
    assert "The weights are this machine's" in own
    for run in paper.root.glob("runs/smoke/*/long/train/seed*/run.json"):  # no repository is around the toys
        run.write_text(json.dumps(json.loads(run.read_text()) | {"git_commit": "0123456789"}))
    assert main(["publish", f"{paper.name}.long", "--scale", "smoke"]) == 0
    assert tried(capsys, paper, text) == own  # a model of one's own goes first
    root = shutil.copytree(paper.root, tmp_path / "project", symlinks=True)
    shutil.rmtree(paper.root / "replications" / paper.name / "pretrained")
    for folder in ("runs", "data"):
        shutil.rmtree(root / folder, ignore_errors=True)
    enter(root, monkeypatch)
    published = tried(capsys, paper, text)
    assert "The weights come with the project, which trained them at commit 01234567" in published
    assert published.splitlines()[:3] == own.splitlines()[:3]  # the model, the input and what is made of it
    assert f"or try {paper.name}.long, whose weights are there" in paper.error(capsys, "try", "short", text)


def test_of_a_set_the_number_is_said_whatever_the_order_of_its_elements(toy, capsys):
    paper = toy("sets")
    one, other = (tried(capsys, paper, text).splitlines() for text in ("0.5; 0.25;0.125", "0.125; 0.5; 0.25"))
    assert "Input   3 elements: 0.5; 0.25; 0.125" in one
    assert one[2:] == other[2:]
    assert float(next(line for line in one if line.startswith("Output")).split()[1]) != 0
    assert "elements" in "".join(tried(capsys, paper, "test:2"))


WORD = "{word}"
REFUSED = [
    *((kind, "  \n", "the input is empty; give ") for kind in TOYS),
    *((kind, "xyzzy plugh", "knows no word of the input") for kind in ("translation", "classification", "language")),
    ("translation", " ".join([WORD] * 90), "the input has 90 symbols, but the longest test sentence"),
    ("classification", "test:999999", "the numbers go from test:0 to test:"),
    ("captioning", "none.png", "there is no file"),
    ("captioning", "test:8", "the numbers go from test:0 to test:7"),
    ("sequences", "3 9", "9 is no symbol of the task; give 2 to 4 numbers from 1 to 6"),
    ("sequences", "a b", "'a b' is not a sequence of numbers"),
    ("sets", "0.5; x", "is no set of numbers; give test:0 to test:14 for a test set, or elements with ';' between"),
    ("sets", "0.5 1; 0.5", "an element of '0.5 1; 0.5' has other than its finite numbers"),
    ("sets", "0.5; inf", "an element of"),
    ("sets", "1;1;1;1;1;1;1", "the input has 7"),
    ("sequences", "1 1 1 1 1", "the input has 5 symbols, but the longest word of the task has 4"),
]


@pytest.mark.parametrize(("kind", "text", "said"), REFUSED)
def test_an_input_that_is_none_is_refused_in_a_sentence(kind, text, said, toy, capsys):
    paper = toy(kind)
    word = some_word(paper) if WORD in text else ""
    message = tried(capsys, paper, text.format(word=word), status=2)
    assert said in message
    assert message.count("\n") == 0


@pytest.mark.parametrize("kind", ["translation", "classification", "language"])
def test_unknown_words_are_named(kind, toy, capsys):
    paper = toy(kind)
    printed = tried(capsys, paper, f"{some_word(paper)} xyzzy")
    assert "1 of 2 words is unknown to the model and read as <unk>: xyzzy." in printed


def test_a_page_holds_the_same_and_escapes_what_a_reader_gives(toy, capsys):
    paper = toy("translation")
    word = first_line(paper, "source").split()[0]
    evil = '<script>alert("x")</script>'
    printed = tried(capsys, paper, f"{word} {evil}", "--page")
    path = paper.root / "reports" / "tried" / "toy_translation.long.html"
    assert "reports/tried/toy_translation.long.html" in printed
    content = path.read_text()
    assert evil not in content
    assert evil in html.unescape(content)
    assert not re.search(r"<(?!a\b)\w+ [^>]*\b(src|href)=", re.sub(r"(?s)<(script|style).*?</\1>", "", content))
    (explored,) = explored_maps(content)
    output = next(line for line in printed.splitlines() if line.startswith("Output")).split()[1:]
    assert explored["rows"] == [*output, "</s>"]
    assert explored["columns"] == [word, *evil.split(), "</s>"]
    assert [max(row) for row in explored["weights"]] == [100] * len(explored["rows"])


def explored_maps(content):
    """What the explorer of a page can show."""
    return json.loads(content.split('<script type="application/json">')[1].split("</script>")[0])["maps"]


@pytest.mark.parametrize(("kind", "text"), [("captioning", "test:1"), ("language", None), ("classification", None)])
def test_every_kind_has_a_page(kind, text, toy, capsys):
    paper = toy(kind)
    if text is None:
        text = first_line(paper, "text").strip()
    tried(capsys, paper, " ".join(text.split()[:12]), "--page")
    content = (paper.root / "reports" / "tried" / f"{paper.name}.long.html").read_text()
    assert explored_maps(content)
    assert ("<img " in content) == (kind == "captioning")


def test_without_a_checkpoint_it_says_what_to_run(made, capsys, tmp_path, monkeypatch):
    paper = copy("translation", made("translation"), tmp_path / "project", monkeypatch)
    shutil.rmtree(paper.runs / "short" / "train")
    assert f"dvc repro replications/{paper.name}/smoke/dvc.yaml:train@short" in paper.error(capsys, "try", "short", "a")
    assert "has no seed 77; choose from 3, 4" in tried(capsys, paper, "a", "--seed", "77", status=2)
    assert "did you mean 'long'?" in paper.error(capsys, "try", "lomg", "a")
    (paper.runs / "long" / "train" / "seed3" / "checkpoints" / "best.ckpt").unlink()
    assert "has no trained model of seed 3 at" in tried(capsys, paper, "a", "--seed", "3", status=2)
    paper.change_variant("long", model={"size": 13})
    word = first_line(paper, "source").split()[0]
    assert "are not of today's settings" in tried(capsys, paper, word, status=2)


BENCH = (
    "give --scale bench, after 'python -m shared.pipeline use bench && "
    "dvc repro replications/bahdanau/bench/dvc.yaml:train@corpus-rnnsearch'."
)


@pytest.mark.parametrize(("name", "said"), [
    ("transformer.complexity", "transformer.complexity is a study, which trains no network"),
    ("bahdanau.corpus-rnnsearch", f"bahdanau.corpus-rnnsearch does not run at the scale quick; {BENCH}\n"),
])  # fmt: skip
def test_a_variant_without_a_network_at_this_scale_is_refused_with_the_reason(name, said, root, monkeypatch, capsys):
    monkeypatch.chdir(root)
    assert said in refusal(capsys, "try", name, "x", "--scale", "quick")


def shown(answer, **options):
    file = io.StringIO()
    print_tried(answer, "a model", Console(file=file, width=40, **options))
    return file.getvalue()


def test_a_matrix_that_is_too_wide_goes_on_below_and_control_characters_do_nothing():
    columns = [f"w{number}" for number in range(30)]
    weights = Weights("Rows.", ["one", "\x1b[31mtwo"], columns, np.eye(2, 30), "matrix")
    printed = shown(Tried("a\x1b[2Jb", "c\nd", [weights]))
    assert "\x1b" not in printed
    assert "c d" in printed
    assert max(map(len, printed.splitlines())) <= 40
    assert printed.count("one") == 4  # three parts of the matrix, and the largest weights
    assert "w0 100 %" in printed


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
