"""All blocks of several exhibits, as a report draws them; and what is wrong with the files of a page's figures."""

import re
from pathlib import Path

from shared.reports.document import Figure


def draw_all(exhibits, results, folder):
    """The blocks, whose figures were drawn to the same bytes again."""
    places = folder, folder / "again"
    blocks, again = ([block for each in exhibits for block in each.draw(results, place)] for place in places)
    for block, other in zip(blocks, again, strict=True):
        assert not isinstance(block, Figure) or block.path.read_bytes() == other.path.read_bytes()
    return blocks


def amiss(folder):
    """Figures of a folder that its page does not show, and those that it lacks; an SVG is offered beside its PNG."""
    page = (folder / "README.md").read_text(encoding="utf-8")
    used = {Path(name).stem for name in re.findall(r"[(]figures/([^)]+)", page)}
    return sorted({path.stem for path in (folder / "figures").glob("*") if not path.stem.startswith("picture_")} ^ used)
