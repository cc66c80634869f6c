"""What reports of language-modelling papers show, and how texts that models write are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.reports.curves import LearningCurves
from shared.reports.exhibits import KindReport

LINE_END = "¶"


def how_drawn(settings: Mapping[str, Any]) -> str:
    """How symbols are drawn, by the settings of sampling."""
    said = [f"at temperature {settings['temperature']:g}"]
    if settings["top_k"] is not None:
        said.append(f"from the {settings['top_k']} likeliest")
    if settings["top_p"] is not None:
        said.append(f"from the likeliest that have {settings['top_p']:g} of the probability together")
    return ", ".join(said)


REPORT = KindReport(figures=(LearningCurves(),))
