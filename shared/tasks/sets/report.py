"""What reports of papers on sets show: learning curves, whose loss is what the task asks for."""

from shared.reports.curves import Curve, LearningCurves
from shared.reports.exhibits import KindReport

CURVES = (Curve("loss", "Loss on the validation split against updates", "Validation loss (per {token})"),)
"""What validation finds."""
REPORT = KindReport(figures=(LearningCurves(curves=CURVES),))
