"""The command ``try``: what a trained model makes of one input, in the terminal and on a page that needs nothing else.

In the terminal every shade is a character as well as a colour, so that it is there without colours, too.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rich.columns import Columns
from rich.console import Console, Group
from rich.padding import Padding
from rich.text import Text

from shared.data.storage import check_prepared
from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile, scales_of
from shared.pipeline.files import prepared_folder, render, run_folder, split_name, write_text
from shared.pipeline.runs import runnable
from shared.pipeline.weights import check_weights, refusing_other_weights
from shared.tasks.kinds import KINDS, large_imports
from shared.tasks.settings import find_route
from shared.tasks.tried import UNSEEN, Floats, Pixels, Tried, Weights

PAGES = Path("reports/tried")
BLOCKS = " ░▒▓█"
PALE, STRONG = np.array([255, 250, 235]), np.array([245, 158, 11])  # of grounds, with black letters on them
BAR_COLOUR, BAR = "rgb(245,158,11)", 24  # and cells of the longest bar
LEAST = 0.1  # of the largest weight of a line: less is shown as nothing
HEAD = 12  # letters of a word above or before a matrix
MOST_LISTED, STRONGEST, STRONGEST_OF_PAGE = 12, 3, 5  # rows below a shaded text, and words that each of them names
PLACES = 8  # rows and columns of a map; larger grids are averaged
WIDEST = 32  # pixels of a picture


def try_stage(name: str, scale: str, *, input: str, seed: int | None = None, page: bool = False) -> None:
    """Give a trained model of ``<paper>.<variant>`` one input, and show what it makes of it and where it looked.

    Args:
        name: the paper and the variant.
        scale: of its runs.
        input: a text; what else depends on the kind of task, and an empty one is told what is expected.
        seed: of the run; the first that has a checkpoint unless given.
        page: whether ``reports/tried/<paper>.<variant>.html`` is written, too.

    Raises:
        ReplicationError: nothing was trained, the variant trains no network, or the input is not one.
    """
    settings, variant, seed, weights = _trained(name, scale, seed)
    config, title = settings.run(variant), f"{settings.paper}.{variant}, scale {scale}, seed {seed}"
    prepared = prepared_folder(settings.paper, scale, config.task)
    check_prepared(prepared, config.corpus)
    with large_imports():
        from shared.tasks.kinds import load_replication
        from shared.tasks.replication import runner_of

        trial = import_module(f"{KINDS[settings.kind]}.trial")
    runner: Any
    runner, config = runner_of(load_replication(settings.paper), config)
    text, folder = runner.open(config, prepared), weights.parent.parent
    check_weights(weights)
    with refusing_other_weights(variant, [folder]):
        (network,) = runner.trained_models(config, text, [folder])
    tried: Tried = trial.try_input(network, text, config, input, seed)
    print_tried(tried, title, Console(highlight=False))
    if page:
        path = PAGES / f"{name}.html"
        write_tried(tried, title, path)
        print(f"The same is on the page {path}; open it in a browser.")


def _trained(name: str, scale: str, seed: int | None) -> tuple[ScaleFile, str, int, Path]:
    """The paper and variant of a trained model; its seed and its checkpoint."""
    paper, variant = split_name(name)
    settings = ScaleFile(paper, scale)
    name, pipeline = f"{settings.paper}.{variant}", f"replications/{settings.paper}/{{}}/dvc.yaml:train@{variant}"
    if variant in settings.left_out:
        first = sorted(scales_of(settings.paper), key=lambda each: each not in ("quick", "bench"))
        if others := [each for each in first if variant in ScaleFile(settings.paper, each).variants]:
            raise ReplicationError(
                f"{name} does not run at the scale {scale}; give --scale {others[0]}, after 'python -m "
                f"shared.pipeline use {others[0]} && dvc repro {pipeline.format(others[0])}'."
            )
    config = runnable(settings, variant)
    section, _ = find_route(config, settings.models)
    if section is not None and not section[1].trains_network:
        raise ReplicationError(
            f"{name} trains no network, so there is no model to try: it is of the kind '{section[0]}: "
            f"{config.model[section[0]]}', which only computes or counts; choose another variant."
        )
    if seed is not None and seed not in config.seeds:
        listed = ", ".join(map(str, config.seeds))
        raise ReplicationError(f"{settings.path}: '{variant}' has no seed {seed}; its seeds are {listed}.")
    folder, file = run_folder(settings.paper, scale) / variant / "train", f"{config.evaluation.checkpoint}.ckpt"
    paths = {each: folder / f"seed{each}" / "checkpoints" / file for each in config.seeds}
    there = [each for each, path in paths.items() if path.is_file()]
    if not there:
        raise ReplicationError(
            f"{name} has no trained model at the scale {scale}; run 'dvc repro {pipeline.format(scale)}' first."
        )
    if seed is not None and seed not in there:
        listed = ", ".join(map(str, there))
        raise ReplicationError(f"seed {seed} of {name} is not trained; those that are: {listed}.")
    seed = there[0] if seed is None else seed
    return settings, variant, seed, paths[seed]


def print_tried(tried: Tried, title: str, console: Console) -> None:
    """Print what came of an input, under the name of the model."""
    console.print(Text(title, style="bold"))
    for name, said in (("Input", tried.input), ("Output", tried.output)):
        console.print(Text.assemble((f"{name:<7} ", "bold"), printable(said)), soft_wrap=True)
    width = min(2 * HEAD, max((len(name) for name, _ in tried.shares), default=0))
    for name, share in tried.shares:
        bar = "█" * round(BAR * share) or "▏"
        line = Text.assemble((f"{_short(name, width):<{width}} ", "bold"), (bar, BAR_COLOUR), f" {100 * share:.1f} %")
        console.print(Padding(line, (0, 0, 0, 8)))
    if tried.pictures:
        coloured = console.color_system is not None
        most = console.width // 2 - 2
        _beside([(each.title, [*_drawn(each.pixels, most, coloured)]) for each in tried.pictures], console)
    for weights in tried.weights:
        console.print()
        console.print(Text(printable(weights.caption), style="italic"))
        {"matrix": _print_matrix, "text": _print_text, "map": _print_maps}[weights.layout](weights, console)
    console.print()
    for sentence in tried.lines:
        console.print(Text(printable(sentence)), soft_wrap=True)


def printable(text: str) -> str:
    """The text without characters that a terminal would obey; line ends and tabs become spaces."""
    return "".join(
        each if each.isprintable() else " " if each.isspace() else "\N{REPLACEMENT CHARACTER}" for each in text
    )


def block(shade: float) -> str:
    """The character for a shade from 0 to 1."""
    return BLOCKS[0] if shade < LEAST else BLOCKS[min(len(BLOCKS) - 1, 1 + int(shade * (len(BLOCKS) - 1)))]


def _ground(shade: float) -> str:
    """The style of letters on the ground of a shade."""
    red, green, blue = (PALE + shade * (STRONG - PALE)).round().astype(int).tolist()
    return "" if shade < LEAST else f"black on rgb({red},{green},{blue})"


def _cells(shades: Floats, nothing: str = "  ") -> Text:
    """Two characters for each shade."""
    return Text.assemble(*((2 * block(s) if s >= LEAST else nothing, _ground(s)) for s in shades.tolist()))


def _short(text: str, width: int) -> str:
    """The text, cut to so many letters."""
    text = printable(text)
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}…"


def _print_text(weights: Weights, console: Console) -> None:
    """The words, shaded by the first row; of each further row the words with the largest weights."""
    words = (
        (f"{printable(word)}{block(shade).strip()}", _ground(shade))
        for word, shade in zip(weights.columns, weights.shades()[0], strict=True)
    )
    console.print(Padding(Text(" ").join(Text(word, style) for word, style in words), (0, 0, 0, 2)))
    width = min(HEAD, max(map(len, weights.rows)))
    for row, name in enumerate(weights.rows[:MOST_LISTED]):
        console.print(Text(f"  {_short(name, width):<{width}}  {printable(weights.strongest(row, STRONGEST))}"))
    if len(weights.rows) > MOST_LISTED:
        console.print(f"  … and {len(weights.rows) - MOST_LISTED} more; --page shows all.")


def _print_matrix(weights: Weights, console: Console) -> None:
    """A cell for each pair of words, with the columns' words written downwards above; as many as the line takes."""
    shades, width = weights.shades(), min(HEAD, max(map(len, weights.rows)))
    room = max(1, (console.width - width - 4) // 2)
    for begin in range(0, len(weights.columns), room):
        part = slice(begin, begin + room)
        heads = [_short(word, HEAD) for word in weights.columns[part]]
        for letters in zip_longest(*(f"{head:>{max(map(len, heads))}}" for head in heads)):
            console.print(Text(" " * (width + 3) + " ".join(letters)))
        for name, row in zip(weights.rows, shades[:, part], strict=True):
            console.print(Text(f" {_short(name, width):>{width}} ", style="bold") + _cells(row))
    console.print(Text("Each row is shaded by its largest weight:"))
    for row_number, name in enumerate(weights.rows):
        strongest = printable(weights.strongest(row_number, STRONGEST))
        console.print(Text(f" {_short(name, width):>{width}}  {strongest}"))


def _print_maps(weights: Weights, console: Console) -> None:
    """A map of places for each word, side by side."""
    assert weights.grid is not None, "a map has a grid"
    maps = [coarse(row.reshape(weights.grid)) for row in weights.values]
    named = zip(weights.rows, maps, strict=True)
    _beside([(name, [_cells(row, "· ") for row in shades]) for name, shades in named], console)


def _beside(drawings: list[tuple[str, list[Text]]], console: Console) -> None:
    """Drawings with their titles above, beside each other where there is room."""
    parts = [
        Group(Text(_short(title, max(map(len, lines))), style="bold"), *lines, fit=True) for title, lines in drawings
    ]
    console.print(Padding(Columns(parts, padding=(0, 2)), (0, 0, 0, 2)))


def coarse(weights: Floats) -> Floats:
    """Weights (rows, columns) as shades of at most :data:`PLACES` rows and columns, means of squares."""
    side = -(-max(weights.shape) // PLACES)
    padded = np.pad(weights, [(0, -size % side) for size in weights.shape])
    means = padded.reshape(padded.shape[0] // side, side, -1, side).mean((1, 3))
    shades: Floats = means / (means.max() or 1.0)
    return shades


def _drawn(pixels: Pixels, most: int, coloured: bool) -> Iterator[Text]:
    """The lines of a picture, two blocks to a pixel: of its colour or, without colours, the fuller the brighter.

    Brightness is taken from the darkest pixel to the brightest. Unseen pixels are dots. A picture that is too wide is
    made smaller: means of squares; what does not fill one is left out.
    """
    side = -(-pixels.shape[1] // min(most, WIDEST))
    height, width = (size // side for size in pixels.shape[:2])
    squares = pixels[: height * side, : width * side].reshape(height, side, width, side, 3)
    pixels = np.rint(squares.mean((1, 3))).astype(np.uint8)
    bright = pixels @ np.array([2, 5, 1])
    levels = np.rint((bright - bright.min()) / max(1, np.ptp(bright)) * (len(BLOCKS) - 1)).astype(int)
    for colours, row in zip(pixels.tolist(), levels.tolist(), strict=True):
        if coloured:
            yield Text.assemble(*((2 * BLOCKS[-1], "rgb({},{},{})".format(*colour)) for colour in colours))
        else:
            cells = zip(colours, row, strict=True)
            yield Text("".join("··" if tuple(colour) == UNSEEN else 2 * BLOCKS[level] for colour, level in cells))


def write_tried(tried: Tried, title: str, path: Path) -> None:
    """Write the page, as a whole; its folder is made.

    Every text of the reader's or of the model's is escaped; nothing is loaded from elsewhere.

    Args:
        tried: what came of the input.
        title: the model.
        path: of the page.
    """
    pictures = [(each.title, _data_uri(each.pixels)) for each in tried.pictures]
    blocks = [_block(weights) for weights in tried.weights]
    text = render("tried/page.html.j2", tried=tried, title=title, pictures=pictures, blocks=blocks)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text.encode(errors="replace").decode())  # a lone surrogate of a command line is no text


def _block(weights: Weights) -> dict[str, Any]:
    """What the template shows of weights: of each output its shades in hundredths, and what it looked at in words."""
    shades = np.rint(100 * weights.shades()).astype(int).tolist()
    said = [
        f"{name}: {weights.strongest(i, STRONGEST_OF_PAGE)}" if weights.columns else name
        for i, name in enumerate(weights.rows)
    ]
    rows = [{"name": n, "shades": s, "said": t} for n, s, t in zip(weights.rows, shades, said, strict=True)]
    picture = None if weights.picture is None else _data_uri(weights.picture)
    across = None if weights.grid is None else weights.grid[1]
    return {"caption": weights.caption, "columns": weights.columns, "rows": rows, "picture": picture, "across": across}


def _data_uri(pixels: Pixels) -> str:
    """A picture (H, W, 3) as the address of a PNG that holds it."""
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, format="PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode('ascii')}"
