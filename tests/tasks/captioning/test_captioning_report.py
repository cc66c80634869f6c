"""The whole report of made-up captioners, beside the facts of Xu et al. (2015), and its tables."""

import json
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from shared.claims.results import load_results
from shared.metrics.registry import MEASURES
from shared.reports.curves import LearningCurves
from shared.reports.document import plain_text
from shared.reports.explorer import Explored
from shared.reports.report import write_report
from shared.reports.site import summarize
from shared.tasks.captioning.captions import by_kind_of_image
from shared.tasks.captioning.figures import CURVES, Overlays, Stopping
from shared.tasks.captioning.report import REPORT
from tests.made_claims import claim, compared, paper_folder
from tests.reports.drawing import amiss, draw_all
from tests.tasks.captioning.synthetic_captioning import CAPTIONERS, build

FIGURES = [
    Overlays("soft", "Soft attention."), Overlays("mean", "It does not attend."), Overlays("never-run", "Not run."),
    Stopping(["soft", "hard", "never-run"]),
    LearningCurves({"attention or none": ["soft", "hard", "mean", "initial"]}, CURVES),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("project")
    paper = paper_folder(
        root / "papers/show_attend_tell", claim(1, primary=compared("greater", "bleu4", "soft", "mean")),
        claim(2, primary=compared("greater", "attention_gain", "soft", than=0.0)), paper="show_attend_tell",
    )  # fmt: skip
    runs = build(root / "runs", images=120)
    write_report(paper, runs, root / "reports/quick/show_attend_tell", scale="quick", figures=FIGURES, kind=REPORT)
    summarize(root / "reports", [])
    return root / "reports/quick/show_attend_tell"


@pytest.fixture(scope="module")
def results(folder):
    return load_results(folder.parents[2] / "runs")


def text(folder, name="README.md"):
    return (folder / name).read_text(encoding="utf-8")


def test_every_measure_of_captions_can_decide(folder):
    """Attention helps, and rests on the boxes; too few seeds show it here."""
    leads = [entry["lead"] for entry in json.loads(text(folder, "claims.json"))]
    assert all(lead["interval"][0] > 0.0 and lead["reason"] == "3 seeds, and at least 5 decide" for lead in leads)


def test_the_figures_are_those_asked_for(folder, results, tmp_path):
    assert sorted(path.name for path in (folder / "figures").glob("*.png")) == [
        "effects.png", "overlays_soft.png", "picture_test-0.png", "picture_test-1.png",
        "picture_test_combinations-2.png", "picture_test_combinations-3.png", "seeds_T99-C1.png",
        "seeds_T99-C2.png", "stopping.png",
        "training_bleu_photos.png", "training_bleu_scenes.png",
        "training_loss_photos.png", "training_loss_scenes.png",
    ]  # fmt: skip
    figures = draw_all(FIGURES, results, tmp_path)
    pictures = [each.picture for figure in figures if isinstance(figure, Explored) for each in figure.maps]
    assert {*(figure.path for figure in figures), *pictures} == set(tmp_path.glob("*.png"))
    assert figures[0].caption.startswith("Soft attention. Above each picture:")
    assert figures[1].caption.startswith("BLEU-4 against likelihood over training")
    said = "Task scenes, attention or none. BLEU-4 of greedy captions of the validation split against updates"
    assert figures[-1].caption.startswith(said)


@pytest.mark.parametrize(
    "expected",
    [
        "![Soft attention](figures/overlays_soft.png)\n\n",
        "\nNo counterpart in the paper. Soft attention. Above each picture",
        "Captions entirely true by split | test (n = 80) | test_combinations (n = 20) | test_pictures (n = 20) |",
        "Captions entirely true by objects in the scene | 1 (n = 40) | 2 (n = 20) | 3 (n = 20) |",
        "| BLEU-4 on the validation split | Highest in training | Where likelihood is highest |",
        "| Soft-Attention | 67.0",
    ],
)
def test_the_page_says(folder, expected):
    assert expected in text(folder)


def test_captions_attention_and_gates_have_columns_of_their_own(folder):
    heads = []
    for line in text(folder).splitlines():
        if line.startswith("| Variant | Parameters |"):
            heads.append(line)
        elif line.startswith("| Variant |") and heads:
            heads[-1] += line  # further measures of the same theme
    scenes, attention, photos = heads
    for name in ("bleu4", "bleu4_penalised", "rouge_l", "object_recall", "relation_accuracy", "truth"):
        assert f"| {MEASURES[name].title} ↑ |" in scenes
    for name in ("attention_correctness", "attention_gain", "pointing_gain", "gate_difference"):
        assert f"| {MEASURES[name].title}" in attention
    assert MEASURES["bleu4"].title in photos
    assert MEASURES["truth"].title not in photos


def test_every_table_row_has_as_many_cells_as_its_head(folder):
    for page in (text(folder), text(folder.parents[1])):
        lines = [re.sub(r"`[^`]*`|\\\|", "", line) for line in page.splitlines()]
        widths = [line.count("|") if line.startswith("|") else 0 for line in lines]
        assert all(a == b for a, b in pairwise(widths) if a and b)


def test_html_shows_every_picture(folder):
    assert amiss(folder) == []
    html = text(folder, "index.html")
    assert html.count('src="figures/') == len(list((folder / "figures").glob("*.png")))


def cells(blocks, title):
    (table,) = (block for block in blocks if getattr(block, "columns", [""])[0] == title)
    return {plain_text(row[0]): [cell.split()[0] for cell in row[1:]] for row in table.rows}


def test_a_kind_of_images_value_is_the_mean_over_seeds(results):
    run = results["soft"]
    found = cells(by_kind_of_image([run]), "Captions entirely true by objects in the scene")["soft"]
    for shown, objects in zip(found, (1, 2, 3), strict=True):
        of_all = [row for seed in run.seeds for row in run.examples[seed] if row["split"] == "test"]
        true = [row["truth"]["all_true"] for row in of_all if row["objects"] == objects]
        assert float(shown) == pytest.approx(100 * sum(true) / len(true), abs=0.01)


def test_the_split_test_has_the_value_of_the_score_table(results):
    runs = [results[name] for name in ("soft", "hard", "mean")]
    blocks = by_kind_of_image(runs)
    for metric, count in (("bleu4", 3), ("truth", 3), ("attention_gain", 2)):
        found = cells(blocks, f"{MEASURES[metric].title} by split")
        assert len(found) == count
        for name, (test, *_) in found.items():
            assert float(test) == pytest.approx(results[name].mean[metric], abs=0.01)


def test_intervals_stay_within_what_is_possible(results):
    blocks = by_kind_of_image([replace(results["initial"], variant="other")])
    ends = [end for block in blocks[:-1] for row in block.rows for cell in row[1:]
            for end in re.findall(r"[−\d.]+", cell)[1:]]  # fmt: skip
    assert ends
    assert not [end for end in ends if end.startswith("−")]


def test_nothing_is_shown_of_photos_or_without_examples(results):
    assert by_kind_of_image([results["photos-soft"]]) == []
    assert by_kind_of_image([]) == []
    assert set(CAPTIONERS) == set(results)
