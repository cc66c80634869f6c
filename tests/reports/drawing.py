"""All blocks of several exhibits, as a report draws them; and what is wrong with the files of a page's figures."""

import re
from html import unescape

from shared.reports.exhibits import drawn


def draw_all(exhibits, results, folder):
    return [block for blocks in drawn(exhibits, results, folder) for block in blocks]


def amiss(folder):
    """Files in the page's ``figures`` that neither of its two forms shows or offers, and those that it lacks."""
    pages = "".join(unescape((folder / name).read_text(encoding="utf-8")) for name in ("README.md", "index.html"))
    used = set(re.findall(r"""["(]figures/([^")]+)""", pages))
    return sorted({path.name for path in (folder / "figures").glob("*")} ^ used)
