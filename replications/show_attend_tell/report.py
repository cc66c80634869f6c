"""What the report of this paper shows beside the tables that every report has."""

from __future__ import annotations

from replications.show_attend_tell.figures import Overlays, Stopping
from shared.reports.curves import LearningCurves
from shared.reports.exhibits import Shows
from shared.tasks.captioning.report import CURVES

_OPENMOJI = "Pictures: OpenMoji (openmoji.org), CC BY-SA 4.0. This figure has the same licence."
PANELS = {
    "Attention and none": ["soft", "soft-no-gate", "soft-penalty-0", "hard", "mean"],
    "What attention learns by": ["soft", "soft-penalty-code", "soft-penalty-0", "supervised", "hard"],
    "On photographs": ["flickr8k-soft", "flickr8k-soft-penalty-0", "flickr8k-hard", "flickr8k-mean"],
}
_WORDS, _WORDS_HARD = "Figures 2, 3 and 5", "Figures 2 and 5"
FIGURES = [
    Shows(
        Overlays("soft", f"Soft attention, word by word, with the paper's penalty. {_OPENMOJI}"),
        claim="X15-C4", counterpart=_WORDS,
    ),
    Shows(
        Overlays("soft-penalty-0", f"Soft attention without the penalty, in the same pictures. {_OPENMOJI}"),
        claim="X15-C5",
    ),
    Shows(
        Overlays("hard", f"Hard attention in the same pictures: the probability of every place. {_OPENMOJI}"),
        claim="X15-C2", counterpart=_WORDS_HARD,
    ),
    Shows(Overlays("flickr8k-soft", "Soft attention on photographs."), claim="X15-C4", counterpart=_WORDS),
    Shows(
        Overlays("flickr8k-hard", "Hard attention on the same photographs."),
        claim="X15-C2", counterpart=_WORDS_HARD,
    ),
    Shows(Stopping(["soft", "flickr8k-soft", "flickr8k-quarter-soft"]), claim="X15-C6"),
    Shows(LearningCurves(PANELS, CURVES)),
]  # fmt: skip
