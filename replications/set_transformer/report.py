"""What the report of this paper shows beside the tables that every report has."""

from __future__ import annotations

from replications.set_transformer.figures import BySize, Clusters
from shared.reports.curves import LearningCurves, StudyLines, StudyPanel
from shared.reports.exhibits import Shows
from shared.tasks.sets.report import CURVES

FIGURES = [
    Shows(
        StudyLines("Multiply-adds of a block of the encoder", [
            StudyPanel("order", "operations", "Elements of the set", "Multiply-adds", {
                "sab": "SAB: every element looks at all", "isab": "ISAB: through inducing points",
            }),
        ]),
        claim="L19-C2",
    ),
    Shows(
        BySize(["maxima-sab", "maxima-max", "maxima-mean"], "absolute_error", "error", "Absolute error"),
        claim="L19-C3",
    ),
    Shows(
        BySize(
            ["digits-sab", "digits-sab-mean", "digits-pma", "digits-max", "digits-mean"],
            "counted_right", "counted", "Sets counted rightly (share)",
        ),
        claim="L19-C5",
    ),
    Shows(
        Clusters("clusters-sab", "Test sets with the mixtures that SAB and PMA read off them."),
        claim="L19-C7", counterpart="Figure 4",
    ),
    Shows(
        Clusters("clusters-mean", "The same sets, with the mixtures that pooling by the mean reads off them."),
        claim="L19-C7", counterpart="Figure 4",
    ),
    Shows(
        LearningCurves(
            {
                "Maximum": ["maxima-sab", "maxima-max", "maxima-mean"],
                "Different digits": ["digits-sab", "digits-sab-mean", "digits-pma", "digits-max", "digits-mean"],
                "Mixtures": ["clusters-sab", "clusters-isab", "clusters-max", "clusters-mean"],
            },
            CURVES,
        ),
    ),
]  # fmt: skip
