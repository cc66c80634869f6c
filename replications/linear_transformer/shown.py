"""What the report of this paper shows beside its tables; nothing here is part of training."""

from __future__ import annotations

from shared.reports.study_lines import StudyLines

PANELS = {
    "Copying": ["copy-softmax", "copy-linear", "copy-lsh-1", "copy-lsh-4"],
    "Digits, pixel by pixel": ["mnist-softmax", "mnist-linear", "mnist-lsh-1"],
}
PICTURES = ["mnist-linear", "mnist-softmax", "mnist-lsh-1", "cifar10-linear"]

_LAYERS = {
    "softmax": "softmax", "softmax_plain": "softmax, all weights kept", "lsh_1": "LSH, 1 round",
    "lsh_4": "LSH, 4 rounds", "linear": "linear (ours)",
}  # fmt: skip
_NETWORKS = {
    "softmax": "softmax, anew for every pixel", "stateful_softmax": "softmax, keys and values kept",
    "lsh_1": "LSH, 1 round", "lsh_4": "LSH, 4 rounds", "linear": "linear",
}  # fmt: skip
_PIXEL = "Time to write one more pixel of a digit"
_LENGTH = "Length of the sequence"
LINES = [
    StudyLines("One layer, forward and backward", "scaling", "seconds", _LENGTH, "Seconds", _LAYERS),
    StudyLines("One layer, forward and backward", "scaling", "mebibytes", _LENGTH, "Peak memory, MiB", _LAYERS),
    StudyLines(_PIXEL, "generation", "milliseconds", "Pixels so far", "Milliseconds, one picture", _NETWORKS),
    StudyLines(
        _PIXEL, "generation", "milliseconds_in_batch", "Pixels so far", "Milliseconds, share of a batch", _NETWORKS
    ),
]
