"""What the report of this paper shows beside the tables that every report has."""

from __future__ import annotations

from replications.vision_transformer.figures import Growth, RollOuts
from shared.reports.curves import LearningCurves
from shared.reports.exhibits import Shows
from shared.tasks.classification.figures import CURVES

SIZES = (100, 1000, 10_000, 60_000)
FIGURES = [
    Shows(
        Growth({f"{kind}-10000": {size: f"{kind}-{size}" for size in SIZES} for kind in ("vit", "cnn")}),
        claim="D21-C2", counterpart="Figure 4",
    ),
    Shows(RollOuts("vit-10000", "What the class token of the Vision Transformer attends to."), counterpart="Figure 6"),
    Shows(
        LearningCurves(
            {
                **{f"{size:,} pictures": [f"vit-{size}", f"cnn-{size}"] for size in SIZES},
                "Class token and positions": ["vit-10000", "pooled", "no-positions", "positions-2d"],
            },
            CURVES,
        ),
    ),
]  # fmt: skip
