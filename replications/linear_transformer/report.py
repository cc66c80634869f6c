"""What the report of this paper shows beside the tables that every report has."""

from __future__ import annotations

from replications.linear_transformer.pictures import Pictures
from shared.reports.curves import StudyLines, StudyPanel
from shared.reports.exhibits import Shows
from shared.tasks.sequences.report import curves

_LAYERS = {
    "softmax": "softmax", "softmax_plain": "softmax, all weights kept", "lsh_1": "LSH, 1 round",
    "lsh_4": "LSH, 4 rounds", "linear": "linear (ours)",
}  # fmt: skip
_NETWORKS = {
    "softmax": "softmax, anew for every pixel", "stateful_softmax": "softmax, keys and values kept",
    "lsh_1": "LSH, 1 round", "lsh_4": "LSH, 4 rounds", "linear": "linear",
}  # fmt: skip
_LENGTH, _PIXELS = "Length of the sequence", "Pixels so far"
FIGURES = [
    Shows(
        StudyLines("One layer, forward and backward", [
            StudyPanel("scaling", "seconds", _LENGTH, "Seconds", _LAYERS),
            StudyPanel("scaling", "mebibytes", _LENGTH, "Peak memory, MiB", _LAYERS),
        ]),
        claim="K20-C1", counterpart="Figure 1",
    ),
    Shows(
        StudyLines("Time to write one more pixel of a digit", [
            StudyPanel("generation", "milliseconds", _PIXELS, "Milliseconds, one picture", _NETWORKS),
            StudyPanel("generation", "milliseconds_in_batch", _PIXELS, "Milliseconds, share of a batch", _NETWORKS),
        ]),
        claim="K20-C4",
    ),
    Shows(
        curves({"Copying": ["copy-softmax", "copy-linear", "copy-lsh-1", "copy-lsh-4"]}, only="copying"),
        claim="K20-C2", counterpart="Figure 2",
    ),
    Shows(Pictures(["mnist-linear", "mnist-softmax", "mnist-lsh-1", "cifar10-linear"]), claim="K20-C3"),
    Shows(
        curves({"Digits, pixel by pixel": ["mnist-softmax", "mnist-linear", "mnist-lsh-1"]}, only="digits"),
        claim="K20-C3",
    ),
]  # fmt: skip
