"""Shows in the terminal what a model made of one input.

Every shade is a character as well as a colour, so that it is there without colours, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from shared.tasks.tried import UNSEEN, Floats, Pixels, Tried, Weights

BLOCKS = " ░▒▓█"
PALE, STRONG = np.array([255, 250, 235]), np.array([245, 158, 11])  # of grounds, with black letters on them
LEAST = 0.1  # of the largest weight of a line: less is shown as nothing
HEAD = 12  # letters of a word above or before a matrix
MOST_LISTED, STRONGEST = 12, 3  # rows below a shaded text, and words that each of them names
PLACES = 8  # rows and columns of a map; larger grids are averaged
WIDEST = 32  # pixels of a picture side by side
BAR = 24  # cells of the longest bar


def print_tried(tried: Tried, title: str, console: Console | None = None) -> None:
    """Print it.

    Args:
        tried: what came of the input.
        title: the model.
        console: where to; the terminal by default.
    """
    console = console or Console(highlight=False)
    console.print(Text(title, style="bold"))
    for name, said in (("Input", tried.input), ("Output", tried.output)):
        console.print(Text.assemble((f"{name:<7} ", "bold"), printable(said)), soft_wrap=True)
    if tried.shares:
        _print_shares(tried.shares, console)
    if tried.pictures:
        _print_pictures([(each.title, each.pixels) for each in tried.pictures], console)
    for weights in tried.weights:
        console.print()
        console.print(Text(printable(weights.caption), style="italic"))
        {"matrix": _print_matrix, "text": _print_text, "map": _print_maps}[weights.layout](weights, console)
    console.print()
    for line in tried.lines:
        console.print(Text(printable(line)), soft_wrap=True)


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
    if shade < LEAST:
        return ""
    red, green, blue = (PALE + shade * (STRONG - PALE)).round().astype(int).tolist()
    return f"black on rgb({red},{green},{blue})"


def _print_shares(shares: Sequence[tuple[str, float]], console: Console) -> None:
    width = min(2 * HEAD, max(len(name) for name, _ in shares))
    for name, share in shares:
        bar = "█" * round(BAR * share) or "▏"
        line = Text.assemble(
            (f"{_short(name, width):<{width}} ", "bold"), (bar, "rgb(245,158,11)"), f" {100 * share:.1f} %"
        )
        console.print(Padding(line, (0, 0, 0, 8)))


def _print_text(weights: Weights, console: Console) -> None:
    """The words, shaded by the first row; of each further row the words with the largest weights."""
    shades, line = weights.shades()[0], Text()
    for word, shade in zip(weights.columns, shades, strict=True):
        if line:
            line.append(" ")
        line.append(f"{printable(word)}{block(shade).strip()}", style=_ground(shade))
    console.print(Padding(line, (0, 0, 0, 2)))
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
        tallest = max(map(len, heads))
        for letters in zip_longest(*(f"{head:>{tallest}}" for head in heads)):
            console.print(Text(" " * (width + 3) + " ".join(letters)))
        for name, row in zip(weights.rows, shades[:, part], strict=True):
            line = Text(f" {_short(name, width):>{width}} ", style="bold")
            for shade in row:
                line.append(2 * block(shade), style=_ground(shade))
            console.print(line)
    console.print(Text("Each row is shaded by its largest weight:"))
    for row, name in enumerate(weights.rows):
        console.print(Text(f" {_short(name, width):>{width}}  {printable(weights.strongest(row, STRONGEST))}"))


def _print_maps(weights: Weights, console: Console) -> None:
    """A map of places for each word, side by side."""
    assert weights.grid is not None, "a map has a grid"
    maps = [coarse(row.reshape(weights.grid)) for row in weights.values]
    across = 2 * maps[0].shape[1]
    beside = max(1, (console.width - 2) // (across + 2))
    for begin in range(0, len(maps), beside):
        group = range(begin, min(begin + beside, len(maps)))
        names = Text("  ".join(f"{_short(weights.rows[i], across):<{across}}" for i in group), style="bold")
        console.print(Padding(names, (0, 0, 0, 2)))
        for y in range(maps[0].shape[0]):
            line = Text("  ")
            for i in group:
                for shade in maps[i][y]:
                    line.append(2 * block(shade) if shade >= LEAST else "· ", style=_ground(shade))
                line.append("  ")
            console.print(line)


def coarse(weights: Floats) -> Floats:
    """Weights (rows, columns) as shades of at most :data:`PLACES` rows and columns, means of squares."""
    side = -(-max(weights.shape) // PLACES)
    padded = np.pad(weights, [(0, -size % side) for size in weights.shape])
    means = padded.reshape(padded.shape[0] // side, side, -1, side).mean((1, 3))
    shades: Floats = means / (means.max() or 1.0)
    return shades


def _print_pictures(pictures: Sequence[tuple[str, Pixels]], console: Console) -> None:
    """Pictures beside each other where there is room."""
    small = [(title, _fitting(pixels, console.width // 2 - 2)) for title, pixels in pictures]
    row: list[tuple[str, Pixels]] = []
    for title, pixels in small:
        if row and sum(2 * each.shape[1] + 2 for _, each in [*row, (title, pixels)]) > console.width:
            _print_row(row, console)
            row = []
        row.append((title, pixels))
    _print_row(row, console)


def _fitting(pixels: Pixels, most: int) -> Pixels:
    """A picture that is too wide, made smaller: means of squares; what does not fill one is left out."""
    side = -(-pixels.shape[1] // min(most, WIDEST))
    height, width = (size // side for size in pixels.shape[:2])
    squares = pixels[: height * side, : width * side].reshape(height, side, width, side, 3)
    return np.asarray(np.rint(squares.mean((1, 3))).astype(np.uint8))


def _print_row(pictures: Sequence[tuple[str, Pixels]], console: Console) -> None:
    console.print(
        Padding(Text("  ".join(f"{_short(t, 2 * p.shape[1]):<{2 * p.shape[1]}}" for t, p in pictures)), (0, 0, 0, 2))
    )
    drawn = [list(_drawn(pixels, console.color_system is not None)) for _, pixels in pictures]
    for lines in zip_longest(*drawn, fillvalue=Text()):
        console.print(Text("  ") + Text("  ").join(lines))


def _drawn(pixels: Pixels, coloured: bool) -> Iterator[Text]:
    """The lines of a picture, two blocks to a pixel: of its colour or, without colours, the fuller the brighter.

    Brightness is taken from the darkest pixel to the brightest. Unseen pixels are dots.
    """
    bright = pixels @ np.array([2, 5, 1])
    levels = np.rint((bright - bright.min()) / max(1, np.ptp(bright)) * (len(BLOCKS) - 1)).astype(int)
    for colours, row in zip(pixels.tolist(), levels.tolist(), strict=True):
        line = Text()
        for colour, level in zip(colours, row, strict=True):
            if coloured:
                line.append(2 * BLOCKS[-1], style="rgb({},{},{})".format(*colour))
            else:
                line.append("··" if tuple(colour) == UNSEEN else 2 * BLOCKS[level])
        yield line


def _short(text: str, width: int) -> str:
    """The text, cut to so many letters."""
    text = printable(text)
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}…"
