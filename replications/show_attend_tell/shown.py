"""What the report of this paper shows beside its tables; nothing here is part of training."""

from __future__ import annotations

OVERLAYS = {
    "soft": "Soft attention, word by word, with the paper's penalty.",
    "soft-penalty-0": "Soft attention without the penalty, in the same pictures.",
    "hard": "Hard attention in the same pictures: the probability of every place.",
    "supervised": "Soft attention that was told where named objects are, in the same pictures.",
    "flickr8k-soft": "Soft attention on photographs.",
    "flickr8k-hard": "Hard attention on the same photographs.",
}
PANELS = {
    "Attention and none": ["soft", "soft-penalty-0", "hard", "mean", "initial"],
    "What attention learns by": ["soft", "soft-penalty-tenth", "soft-penalty-0", "supervised", "hard", "hard-sampled"],
}
STOPPING = ("soft", "flickr8k-soft")
