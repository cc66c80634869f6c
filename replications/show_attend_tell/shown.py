"""What the report of this paper shows beside its tables; nothing here is part of training."""

from __future__ import annotations

_OPENMOJI = "Pictures: OpenMoji (openmoji.org), CC BY-SA 4.0, which this figure is under too."

OVERLAYS = {
    "soft": f"Soft attention, word by word, with the paper's penalty. {_OPENMOJI}",
    "soft-penalty-0": f"Soft attention without the penalty, in the same pictures. {_OPENMOJI}",
    "hard": f"Hard attention in the same pictures: the probability of every place. {_OPENMOJI}",
    "supervised": f"Soft attention that was told where named objects are, in the same pictures. {_OPENMOJI}",
    "flickr8k-soft": "Soft attention on photographs.",
    "flickr8k-hard": "Hard attention on the same photographs.",
}
PANELS = {
    "Attention and none": ["soft", "soft-penalty-0", "hard", "mean", "initial"],
    "What attention learns by": ["soft", "soft-penalty-tenth", "soft-penalty-0", "supervised", "hard", "hard-sampled"],
}
STOPPING = ("soft", "flickr8k-soft")
