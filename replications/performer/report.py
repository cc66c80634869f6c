"""What the report of this paper shows beside the tables that every report has."""

from shared.reports.curves import StudyLines, StudyPanel
from shared.tasks.sequences.report import curves

_ESTIMATORS = {
    "trigonometric_iid": "trigonometric, iid", "trigonometric_orthogonal": "trigonometric, orthogonal",
    "positive_iid": "positive, iid", "positive_orthogonal": "positive, orthogonal",
}  # fmt: skip
_LAYERS = {
    "softmax": "Transformer", "softmax_plain": "Transformer, all weights kept", "positive": "Performer (softmax)",
    "relu": "Performer (ReLU)", "identity": "identity, the optimum",
}  # fmt: skip
_DEPTHS = {f"features_{count}": f"{count} features" for count in (4, 8, 16, 64, 256)}
_ANGLE, _FEATURES, _LENGTH = "Angle between x and y, degrees", "Random features m", "Length of the sequence"
FIGURES = [
    StudyLines("Estimates of the softmax kernel, with 95 % intervals over draws", [
        StudyPanel("kernels", "mse", _ANGLE, "Squared error / kernel²", _ESTIMATORS, log_x=False),
    ], claim="C21-C2", counterpart="Figure 2"),
    StudyLines("Error of attention's output, with 95 % intervals over samples", [
        StudyPanel("kernels", "output_mse_small", _FEATURES, "Error at inputs of 0.5", _ESTIMATORS),
        StudyPanel("kernels", "output_mse_large", _FEATURES, "Error at inputs of 1.0", _ESTIMATORS),
    ], claim="C21-C3", counterpart="Figure 4"),
    StudyLines("One layer with its feed-forward network, forward and backward", [
        StudyPanel("scaling", "seconds", _LENGTH, "Seconds", _LAYERS),
        StudyPanel("scaling", "mebibytes", _LENGTH, "Peak memory, MiB", _LAYERS),
    ], claim="C21-C4", counterpart="Figure 3"),
    curves({
        "Weights handed over when training of the Transformer ends": ["copy-transformer", "transferred", "scratch"],
    }, only="handed-over", claim="C21-C5", counterpart="Figure 5 (left)"),
    curves({
        "Stability of training": ["copy-transformer", "copy-positive", "copy-fixed", "copy-trigonometric"],
    }, only="stability", claim="C21-C6", counterpart="Figure 5 (right)"),
    curves({
        "Proteins, from left to right": ["transformer", "relu", "concatenated-transformer", "concatenated-relu"],
        "Proteins, masked": ["masked-transformer", "masked-relu", "masked-positive"],
    }, only="proteins", claim="C21-C7", counterpart="Figure 6"),
    StudyLines("Error of the last layer's states by depth, with 95 % intervals over draws", [
        StudyPanel("depth", "error", "Layers", "Relative error", _DEPTHS, log_x=False),
    ], claim="C21-C8", counterpart="Figure 14"),
]  # fmt: skip
