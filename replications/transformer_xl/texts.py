"""What attention falls on before a word, and what models write."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared.claims.results import RunResults
from shared.claims.words import number_of
from shared.data.tokenizers import EOS, SPECIAL
from shared.records import read_json
from shared.reports.document import Block, Figure, Paragraph, Table, Text
from shared.reports.exhibits import OfVariant, OfVariants, Results, first_run
from shared.reports.explorer import Attention, Explored, maps_of_heads
from shared.reports.figures import bar_of_weights, draw_weights, drawing
from shared.reports.naming import name_and_id
from shared.tasks.examples import kept_of
from shared.tasks.language.report import LINE_END, how_drawn

ATTENDED = "Weights of each head on the last word and those before it; what stands before the line (‖) is in memory."
BORDER = "‖"  # between memory and segment
MOST_NAMED = 48  # words that there is room for above a picture
NAMED_FROM = 0.1  # the weight of some head from which on a word is named where there is no room for all
WRITTEN = (
    f"Text written by the models (of their first seeds): each reads the beginning, a part of the test text, and draws "
    f"what comes after it symbol by symbol, {{drawn}}. {LINE_END} is the end of a line."
)


class AttentionToText(OfVariant):
    """A figure ``attention_<variant>.png`` of what every head attends to before a word, in memory and segment."""

    def draw(self, results: Results, folder: Path) -> Sequence[Figure]:
        """The figure, if the variant has kept its attention: a row for each head, layer by layer."""
        texts, path = kept_of(results, self.variant), folder / f"attention_{self.variant}.png"
        if not texts:
            return ()
        words, weights = list(map(_word, texts[0]["symbols"])), texts[0]["weights"].astype(np.float32)
        memory, (layers, heads, _, count) = len(words) - int(texts[0]["own"]), weights.shape
        most = weights[:, :, -1].max(axis=(0, 1))
        named = [
            word if count <= MOST_NAMED or weight >= NAMED_FROM else ""
            for word, weight in zip(words, most, strict=True)
        ]
        above = 0.055 * max((len(word) for word in named), default=0)
        sides = [f"layer {layer + 1}, head {head + 1}" for layer in range(layers) for head in range(heads)]
        with drawing(path, height=0.17 * layers * heads + above + 0.7) as canvas:
            axes = canvas.subplots()
            rows = weights[:, :, -1].reshape(layers * heads, count)
            draw_weights(axes, rows, columns=named, rows=sides, size=5.5, square=False)
            axes.tick_params(axis="y", labelsize=8)
            axes.axvline(memory - 0.5, color="#D55E00", linewidth=1.2)
            axes.set_xlabel(f"{number_of(count, 'word')}; “{_word(texts[0]['next'].item())}” follows", fontsize=8.5)
            bar_of_weights(canvas, [axes])
        maps = [each for number, text in enumerate(texts, start=1) for each in _maps(self.variant, str(number), text)]
        return [Explored(path, f"{self.caption.rstrip('.')}. {ATTENDED}", maps=maps)]


def _maps(variant: str, number: str, text: Mapping[str, NDArray[Any]]) -> list[Attention]:
    """From each of the last words to those before it, by layer and head; a bar parts memory and segment."""
    words, own = list(map(_word, text["symbols"])), int(text["own"])
    memory = len(words) - own
    weights = np.insert(text["weights"].astype(np.float32), memory, 0.0, axis=-1)
    columns, rows = [*words[:memory], BORDER, *words[memory:]], words[-weights.shape[2] :]
    return maps_of_heads({"Model": name_and_id(variant), "Text": number}, rows, columns, weights)


def _word(word: object) -> str:
    return LINE_END if word == SPECIAL[EOS] else str(word)


class Samples(OfVariants):
    """Tables of texts that models (of their first seeds) wrote, beside what they were to continue."""

    def draw(self, results: Results, folder: Path) -> Sequence[Block]:
        """A table for all variants that continue the same beginnings in the same way: those, theirs, and the true text.

        Raises:
            ReplicationError: a file of samples cannot be read.
        """
        groups: dict[tuple[str, str], dict[str, list[dict[str, str]]]] = defaultdict(dict)
        for run in (found for variant in self.shown if (found := first_run(results, variant)) is not None):
            if samples := _samples(run):
                asked = json.dumps([(sample["prompt"], sample["true"]) for sample in samples])
                drawn = how_drawn(evaluation(run, run.seeds[0])["samples"])
                groups[drawn, asked][run.variant] = samples
        blocks: list[Block] = []
        for (drawn, _), written in groups.items():
            first = next(iter(written.values()))
            columns = [
                [sample["prompt"] for sample in first],
                *([sample["text"] for sample in samples] for samples in written.values()),
                [sample["true"] for sample in first],
            ]
            rows: list[list[Text]] = [[_one_line(text) for text in row] for row in zip(*columns, strict=True)]
            heads = ("Beginning", *(f"Continued by {variant}" for variant in written), "True continuation")
            blocks += [Paragraph(WRITTEN.format(drawn=drawn)), Table(heads, rows, "t" * len(heads))]
        return blocks


def evaluation(run: RunResults, seed: int) -> Mapping[str, Any]:
    """The settings that a seed is evaluated with."""
    return run.runs[seed]["parameters"]["evaluation"]


def _samples(run: RunResults) -> list[dict[str, str]]:
    """The samples of the first seed; empty if it wrote none."""
    path = run.judged(run.seeds[0], "samples.json")
    return read_json(path, "run its evaluate stage again", list) if path.exists() else []


def _one_line(text: str) -> str:
    """As cells of tables are."""
    return f" {LINE_END} ".join(line.strip() for line in text.split("\n"))
