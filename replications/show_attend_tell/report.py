"""What the report of this paper shows beside the tables that every report has."""

from __future__ import annotations

from shared.reports.learning_curves import LearningCurves
from shared.tasks.captioning.figures import CURVES, Overlays, Stopping

_OPENMOJI = "Pictures: OpenMoji (openmoji.org), CC BY-SA 4.0, which this figure is under too."
PANELS = {
    "Attention and none": ["soft", "soft-penalty-0", "hard", "mean", "initial"],
    "What attention learns by": ["soft", "soft-penalty-tenth", "soft-penalty-0", "supervised", "hard", "hard-sampled"],
    "On photographs": ["flickr8k-soft", "flickr8k-soft-penalty-0", "flickr8k-hard", "flickr8k-mean"],
}
FIGURES = [
    Overlays("soft", f"Soft attention, word by word, with the paper's penalty. {_OPENMOJI}"),
    Overlays("soft-penalty-0", f"Soft attention without the penalty, in the same pictures. {_OPENMOJI}"),
    Overlays("hard", f"Hard attention in the same pictures: the probability of every place. {_OPENMOJI}"),
    Overlays("supervised", f"Soft attention that was told where named objects are, in the same pictures. {_OPENMOJI}"),
    Overlays("flickr8k-soft", "Soft attention on photographs."),
    Overlays("flickr8k-hard", "Hard attention on the same photographs."),
    Stopping(["soft", "flickr8k-soft", "flickr8k-quarter-soft"]),
    LearningCurves(PANELS, CURVES),
]
