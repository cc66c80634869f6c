"""What reports of language-modelling papers show if these list nothing: learning curves."""

from __future__ import annotations

from shared.reports.curves import LearningCurves
from shared.reports.exhibits import KindReport

REPORT = KindReport(figures=(LearningCurves(),))
