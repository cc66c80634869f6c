"""What reports of classification papers show: accuracies with intervals, and paired tests of them."""

from __future__ import annotations

from shared.reports.curves import LearningCurves
from shared.reports.exhibits import KindReport
from shared.tasks.classification.accuracy import accuracies, paired_tests
from shared.tasks.classification.figures import CURVES

REPORT = KindReport(tables=accuracies, sections=paired_tests, figures=(LearningCurves(curves=CURVES),))
