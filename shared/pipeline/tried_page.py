"""Writes what a model made of one input as one HTML page that needs nothing else."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from PIL import Image

from shared.tasks.tried import Pixels, Tried, Weights

STRONGEST = 5
"""Inputs with the largest weights that are named for each output."""


def write_tried(tried: Tried, title: str, path: Path) -> None:
    """Write the page, as a whole; its folder is made.

    Every text of the reader's or of the model's is escaped; nothing is loaded from elsewhere.

    Args:
        tried: what came of the input.
        title: the model.
        path: of the page.
    """
    environment = Environment(
        loader=PackageLoader("shared.pipeline"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    pictures = [(each.title, data_uri(each.pixels)) for each in tried.pictures]
    blocks = [_block(weights) for weights in tried.weights]
    text = environment.get_template("tried/page.html.j2").render(
        tried=tried, title=title, pictures=pictures, blocks=blocks
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8", errors="replace")
    partial.replace(path)


def data_uri(pixels: Pixels) -> str:
    """A picture (H, W, 3) as the address of a PNG that holds it."""
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, format="PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode('ascii')}"


def _block(weights: Weights) -> dict[str, Any]:
    """What the template shows of weights: of each output its shades in hundredths, and what it looked at in words."""
    shades = np.rint(100 * weights.shades()).astype(int)
    rows = [
        {
            "name": name,
            "shades": shades[i].tolist(),
            "said": f"{name}: {weights.strongest(i, STRONGEST)}" if weights.columns else name,
        }
        for i, name in enumerate(weights.rows)
    ]
    picture = None if weights.picture is None else data_uri(weights.picture)
    across = None if weights.grid is None else weights.grid[1]
    return {"caption": weights.caption, "columns": weights.columns, "rows": rows, "picture": picture, "across": across}
