"""What reports of language-modelling papers show if these list nothing: learning curves."""

from __future__ import annotations

from shared.reports.kind import KindReport
from shared.reports.learning_curves import LearningCurves

REPORT = KindReport(figures=(LearningCurves(),))
