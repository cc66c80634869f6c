"""All blocks of several exhibits, as a report draws them; and what is wrong with the files of a page's figures."""

import re
from html import unescape


def draw_all(exhibits, results, folder):
    return [block for exhibit in exhibits for block in exhibit.draw(results, folder)]


def amiss(folder):
    """Files in the page's ``figures`` that neither of its two forms shows or offers, and those that it lacks."""
    pages = "".join(unescape((folder / name).read_text(encoding="utf-8")) for name in ("README.md", "index.html"))
    used = set(re.findall(r"""["(]figures/([^")]+)""", pages))
    return sorted({path.name for path in (folder / "figures").glob("*")} ^ used)
