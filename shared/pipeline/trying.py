"""Trained models by name, and the command ``try``: what one makes of an input, in the terminal and on a page.

They are those of this machine, else the one of each paper whose weights come with the project. The page needs nothing
else. In the terminal every shade is a character as well as a colour, so that it is there without colours, too.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from rich.columns import Columns
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from shared.errors import ReplicationError
from shared.pipeline.config import ScaleFile, scales_of
from shared.pipeline.files import REPLICATIONS, made_anew, paper_folder, write_json, write_text
from shared.pipeline.runs import check_weights, chosen_seeds, load_runner, refusing_other_weights, runnable
from shared.pipeline.stages import prepared_for
from shared.records import read_record
from shared.reports import document as doc
from shared.reports.explorer import Attention, explorer_of
from shared.reports.page import as_one_file, render
from shared.tasks.kinds import open_data, part_of
from shared.tasks.settings import trains_network
from shared.tasks.tried import UNSEEN, Floats, Pixels, Tried, Weights

PUBLISHED = "pretrained"
"""``replications/<paper>/pretrained/<scale>/`` has a model as ``runs`` has it, and of its data what ``try`` reads."""
ABOUT = {"seed": int, "git_commit": str, "finished": str, "fingerprint": str}
"""What is kept of the record of a published run, beside the hash of its weights before they were rounded."""
PAGES = Path("reports/tried")
BLOCKS = " ░▒▓█"
PALE, STRONG = np.array([255, 250, 235]), np.array([245, 158, 11])  # of grounds, with black letters on them
BAR_COLOUR, BAR = "rgb(245,158,11)", 24  # and cells of the longest bar
LEAST = 0.1  # of the largest weight of a line: less is shown as nothing
HEAD = 12  # letters of a word above or before a matrix
MOST_LISTED, STRONGEST = 12, 3  # rows below a shaded text, and words that each of them names
PLACES = 8  # rows and columns of a map; larger grids are averaged
WIDEST = 32  # pixels of a picture


class TrainedModel(NamedTuple):
    """A trained network, ready to be given input.

    Attributes:
        network: in evaluation mode.
        data: the prepared task, of which a published model has the test splits alone.
        config: the variant's settings.
        seed: of the run.
        origin: a sentence that says whose weights these are.
    """

    network: Any
    data: Any
    config: Any
    seed: int
    origin: str


def load_model(name: str, scale: str = "quick", seed: int | None = None) -> TrainedModel:
    """The trained model of ``<paper>.<variant>``: one of this machine's, else the one that comes with the project.

    Args:
        name: the paper and the variant.
        scale: of its runs.
        seed: of the run; the first that has a checkpoint unless given.

    Raises:
        ReplicationError: there is none, the variant trains no network, or its weights are not those of its settings.
    """
    settings, variant, config = _network(name, scale)
    if run := _own_run(settings, variant, config, seed):
        prepared, origin = prepared_for(settings, config, _seed_of(run)), f"The weights are this machine's, of {run}."
    else:
        run = _published_run(settings, variant, seed)
        prepared = run.parents[2] / "tasks" / config.task
        about = read_record(run / "about.json", "take it from git again", ABOUT)
        origin = (
            f"The weights come with the project, which trained them at commit {about['git_commit'][:8]} "
            f"({about['finished'][:10]}) and rounded them to half precision; those that you train go first."
        )
    runner, config = load_runner(settings.paper, config)
    data = runner.open(config, prepared)
    check_weights(_weights(run, config))
    with refusing_other_weights(variant, [run]):
        (network,) = runner.trained_models(config, data, [run])
    return TrainedModel(network, data, config, _seed_of(run), origin)


def at_root() -> None:
    """Make the project's folder the current one, as a notebook begins in the folder that it lies in."""
    here = Path.cwd()
    os.chdir(next((folder for folder in (here, *here.parents) if (folder / REPLICATIONS).is_dir()), here))


def publish_stage(name: str, scale: str, *, seed: int | None = None) -> None:
    """Let the weights of one run come with the project, in half precision, in place of what the paper had.

    Raises:
        ReplicationError: the run is not on this machine, or is damaged.
    """
    from shared.training.checkpoints import load_checkpoint, save_checkpoint

    settings, variant, config = _network(name, scale)
    run = _own_run(settings, variant, config, seed)
    if run is None:
        raise ReplicationError(f"{name} has no such run here; run '{_training(settings.paper, scale, variant)}' first.")
    prepared, weights = prepared_for(settings, config, _seed_of(run)), _weights(run, config)
    check_weights(weights)
    record = read_record(run / "run.json", "train it again", ABOUT)
    about = {key: record[key] for key in ABOUT} | {"weights_sha256": hashlib.sha256(weights.read_bytes()).hexdigest()}
    state = load_checkpoint(weights)["state_dict"]
    halves = {key: value.half() if value.is_floating_point() else value for key, value in state.items()}
    with made_anew(folder := paper_folder(settings.paper) / PUBLISHED / scale) as out:
        of = out / variant / "train" / run.name
        (of / "checkpoints").mkdir(parents=True)
        save_checkpoint({"state_dict": halves}, of / "checkpoints" / weights.name)
        write_json(of / "about.json", about)
        tasks = out / "tasks" / config.task
        shutil.copytree(prepared, tasks, ignore=shutil.ignore_patterns("train", "valid"))
        trial = part_of(settings.kind, "trial")
        if hasattr(trial, "publish"):
            trial.publish(open_data(config, prepared), config, tasks)
    print(f"{folder}: the weights of {name}, seed {record['seed']}.")


def _network(name: str, scale: str) -> tuple[ScaleFile, str, Any]:
    """The settings of the paper of ``<paper>.<variant>``, the variant, and its own settings if it trains a network."""
    settings, variant = ScaleFile.named(name, scale)
    paper = settings.paper
    if variant in settings.left_out:
        scales = sorted(scales_of(paper), key=lambda each: each not in ("quick", "bench"))
        if others := [each for each in scales if variant in ScaleFile(paper, each).variants]:
            first = f"'python -m shared.pipeline use {others[0]} && {_training(paper, others[0], variant)}'"
            raise ReplicationError(
                f"{name} does not run at the scale {scale}; give --scale {others[0]}, after {first}."
            )
    config = runnable(settings, variant)
    if not trains_network(config, settings.models):
        raise ReplicationError(f"{name} is a study, which trains no network to be tried; choose another variant.")
    return settings, variant, config


def _training(paper: str, scale: str, variant: str) -> str:
    return f"dvc repro replications/{paper}/{scale}/dvc.yaml:train@{variant}"


def _seed_of(run: Path) -> int:
    return int(run.name.removeprefix("seed"))


def _weights(run: Path, config: Any) -> Path:
    return run / "checkpoints" / f"{config.evaluation.checkpoint}.ckpt"


def _own_run(settings: ScaleFile, variant: str, config: Any, seed: int | None) -> Path | None:
    """The folder of the first run, or of the seed given, whose checkpoint is on this machine."""
    seeds = chosen_seeds(config.seeds, seed if seed is None else [seed], f"{settings.path}: '{variant}'")
    runs = (settings.folder(variant) / "train" / f"seed{each}" for each in seeds)
    return next((run for run in runs if _weights(run, config).is_file()), None)


def _published_run(settings: ScaleFile, variant: str, seed: int | None) -> Path:
    """The folder of the run of this variant, and seed if one is given, that comes with the project."""
    runs = sorted((paper_folder(settings.paper) / PUBLISHED / settings.scale).glob("*/train/seed*"))
    for run in runs:
        if run.parents[1].name == variant and seed in (None, _seed_of(run)):
            return run
    paper, scale, of = settings.paper, settings.scale, "" if seed is None else f" of seed {seed}"
    lacks = f"{paper}.{variant} has no trained model{of} at the scale {scale}"
    there = "".join(f", or try {paper}.{run.parents[1].name}, whose weights are there" for run in runs)
    raise ReplicationError(f"{lacks}; run '{_training(paper, scale, variant)}' first{there}.")


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
    model = load_model(name, scale, seed)
    tried, title = answer(model, input), f"{name}, scale {scale}, seed {model.seed}"
    print_tried(tried, title)
    if page:
        path = PAGES / f"{name}.html"
        write_tried(tried, title, path)
        print(f"The same is on the page {path}; open it in a browser.")


def answer(model: TrainedModel, text: str) -> Tried:
    """What a model makes of an input, with whose weights these are in its last line; errors as of :func:`try_stage`."""
    trial = part_of(model.config.kind, "trial")
    tried: Tried = trial.try_input(model.network, model.data, model.config, text, model.seed)
    return replace(tried, lines=[*tried.lines, model.origin])


def print_tried(tried: Tried, title: str, console: Console | None = None) -> None:
    """Print what came of an input, under the name of the model."""
    console = console or Console(highlight=False)
    console.print(Text(title, style="bold"))
    for name, said in (("Input", tried.input), ("Output", tried.output)):
        console.print(Text.assemble((f"{name:<7} ", "bold"), printable(said)), soft_wrap=True)
    width = min(2 * HEAD, max((len(name) for name, _ in tried.shares), default=0))
    for name, share in tried.shares:
        bar = "█" * round(BAR * share) or "▏"
        line = Text.assemble((f"{_short(name, width):<{width}} ", "bold"), (bar, BAR_COLOUR), f" {100 * share:.1f} %")
        console.print(Padding(line, (0, 0, 0, 8)))
    if tried.pictures:
        most, coloured = console.width // 2 - 2, console.color_system is not None
        _print_beside([(title, [*_drawn(pixels, most, coloured)]) for title, pixels in tried.pictures.items()], console)
    for weights in tried.weights:
        if set(weights.choices) & {"Layer", "Head"}:
            continue  # the page has them
        console.print()
        console.print(Text(printable(weights.caption), style="italic"))
        if weights.grid is not None:
            maps = [coarse(row.reshape(weights.grid)) for row in weights.values]
            drawn = [[Text.assemble(*(_cell(s, "· ") for s in row)) for row in each.tolist()] for each in maps]
            _print_beside([*zip(weights.rows, drawn, strict=True)], console)
        else:
            _print_words(weights, console)
    console.print()
    for sentence in tried.lines:
        console.print(Text(printable(sentence)), soft_wrap=True)


def printable(text: str) -> str:
    """The text with a space for each character that a terminal would obey, and for line ends."""
    return "".join(each if each.isprintable() else " " for each in text)


def block(shade: float) -> str:
    """The character for a shade from 0 to 1."""
    return BLOCKS[0] if shade < LEAST else BLOCKS[min(len(BLOCKS) - 1, 1 + int(shade * (len(BLOCKS) - 1)))]


def _ground(shade: float) -> str:
    """The style of letters on the ground of a shade."""
    red, green, blue = (PALE + shade * (STRONG - PALE)).round().astype(int).tolist()
    return "" if shade < LEAST else f"black on rgb({red},{green},{blue})"


def _cell(shade: float, nothing: str = "  ") -> tuple[str, str]:
    return (2 * block(shade) if shade >= LEAST else nothing), _ground(shade)


def _short(text: str, width: int = HEAD) -> str:
    text = printable(text)
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}…"


def _print_words(weights: Weights, console: Console) -> None:
    """The words shaded by the first row, or a cell for each pair of words; and the largest weights of each row."""
    shades, width, rows = weights.shades(), min(HEAD, max(map(len, weights.rows))), len(weights.rows)
    if weights.layout == "text":
        words = zip(weights.columns, shades[0], strict=True)
        shaded = [Text(f"{printable(word)}{block(shade).strip()}", _ground(shade)) for word, shade in words]
        console.print(Padding(Text(" ").join(shaded), (0, 0, 0, 2)))
        rows = min(rows, MOST_LISTED)
    room = max(1, (console.width - width - 4) // 2)  # columns beside each other; further ones go on below
    for begin in range(0, len(weights.columns), room) if weights.layout == "matrix" else ():
        part = slice(begin, begin + room)
        heads = [Column("\n".join(_short(word)), width=2, vertical="bottom") for word in weights.columns[part]]
        table = Table(Column(style="bold", width=width + 3), *heads, box=None, padding=0, pad_edge=False)
        for name, row in zip(weights.rows, shades[:, part].tolist(), strict=True):
            table.add_row(f"  {_short(name, width):>{width}}", *(Text(*_cell(shade)) for shade in row))
        console.print(table)
    for row, name in enumerate(weights.rows[:rows]):
        console.print(Text(f"  {_short(name, width):<{width}}  {printable(weights.strongest(row, STRONGEST))}"))
    if rows < len(weights.rows):
        console.print(f"  … and {len(weights.rows) - rows} more; --page shows all.")


def _print_beside(drawings: list[tuple[str, list[Text]]], console: Console) -> None:
    """Drawings with their titles above, beside each other where there is room."""
    parts = [
        Group(Text(_short(title, max(map(len, lines))), style="bold"), *lines, fit=True) for title, lines in drawings
    ]
    console.print(Padding(Columns(parts, padding=(0, 2)), (0, 0, 0, 2)))


def coarse(weights: Floats) -> Floats:
    """Weights (rows, columns) as shades of at most :data:`PLACES` rows and columns, means of squares."""
    means = np.asarray(Image.fromarray(weights.astype(np.float32)).reduce(-(-max(weights.shape) // PLACES)))
    return means / (means.max() or 1.0)


def _drawn(pixels: Pixels, most: int, coloured: bool) -> Iterator[Text]:
    """The lines of a picture, two blocks to a pixel: of its colour or, without colours, the fuller the brighter.

    Brightness is taken from the darkest pixel to the brightest. Unseen pixels are dots. A picture that is too wide is
    made smaller: means of squares.
    """
    pixels = np.asarray(Image.fromarray(np.ascontiguousarray(pixels)).reduce(-(-pixels.shape[1] // min(most, WIDEST))))
    bright = pixels @ np.array([2, 5, 1])
    levels = np.rint((bright - bright.min()) / max(1, np.ptp(bright)) * (len(BLOCKS) - 1)).astype(int)
    for colours, row in zip(pixels.tolist(), levels.tolist(), strict=True):
        if coloured:
            yield Text.assemble(*((2 * BLOCKS[-1], "rgb({},{},{})".format(*colour)) for colour in colours))
        else:
            cells = zip(colours, row, strict=True)
            yield Text("".join("··" if tuple(colour) == UNSEEN else 2 * BLOCKS[level] for colour, level in cells))


def write_tried(tried: Tried, title: str, path: Path) -> None:
    """Write the page, as a whole, in one file, with the explorer that reports have; its folder is made.

    Every text of the reader's or of the model's is escaped; nothing is loaded from elsewhere.

    Args:
        tried: what came of the input.
        title: the model.
        path: of the page.
    """
    with TemporaryDirectory() as folder:
        page = Path(folder) / "index.html"
        text = render([*_blocks(tried, title, Path(folder))], "html", title=title, folder=Path(folder))
        page.write_bytes(text.encode(errors="replace"))  # a lone surrogate of a command line is no text
        write_text(path, as_one_file(page))


def _blocks(tried: Tried, title: str, folder: Path) -> Iterator[doc.Block]:
    """What the page shows; its pictures are written into the folder."""

    def picture(pixels: Pixels) -> Path:
        file = folder / f"{hashlib.sha256(pixels.tobytes()).hexdigest()}.png"
        Image.fromarray(np.ascontiguousarray(pixels)).save(file)
        return file

    yield doc.Heading(title, level=1)
    for name, said in (("Input", tried.input), ("Output", tried.output)):
        yield from (doc.Paragraph(name), doc.CodeBlock(said))
    if tried.shares:
        yield doc.Table(("Answer", "Probability"), [(name, f"{100 * share:.1f} %") for name, share in tried.shares])
    if tried.pictures:
        yield doc.Columns([("", [doc.Figure(picture(pixels), title)]) for title, pixels in tried.pictures.items()])
    maps = [
        Attention(
            each.choices, each.rows, each.columns, each.values.tolist(), of_largest=True,
            picture=None if each.picture is None else picture(each.picture), across=each.grid[1] if each.grid else 0,
        )
        for each in tried.weights
    ]  # fmt: skip
    if maps:
        yield from (doc.Paragraph(tried.weights[0].caption), explorer_of(maps))
    yield doc.Bullets(tried.lines)
