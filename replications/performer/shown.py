"""What the report of this paper shows beside its tables; nothing here is part of training."""

from __future__ import annotations

from shared.reports.study_lines import StudyLines

PANELS = {
    "Proteins, from left to right": ["transformer", "relu", "concatenated-transformer", "concatenated-relu"],
    "Proteins, masked": ["masked-transformer", "masked-relu", "masked-positive"],
    "Weights handed over when training of the Transformer ends": ["copy-transformer", "transferred", "scratch"],
    "Stability of training": ["copy-transformer", "copy-positive", "copy-fixed", "copy-trigonometric"],
}

_ESTIMATORS = {
    "trigonometric_iid": "trigonometric, iid", "trigonometric_orthogonal": "trigonometric, orthogonal",
    "positive_iid": "positive, iid", "positive_orthogonal": "positive, orthogonal",
}  # fmt: skip
_LAYERS = {
    "softmax": "Transformer", "softmax_plain": "Transformer, all weights kept", "positive": "Performer (softmax)",
    "relu": "Performer (ReLU)", "identity": "identity, the optimum",
}  # fmt: skip
_DEPTHS = {f"features_{count}": f"{count} features" for count in (4, 8, 16, 64, 256)}
_ANGLE, _FEATURES = "Angle between x and y, degrees", "Random features m"
_KERNEL = "Estimates of the softmax kernel, with 95 % intervals over draws"
_OUTPUT = "Error of attention's output, with 95 % intervals over samples"
_LAYER = "One layer with its feed-forward network, forward and backward"
LINES = [
    StudyLines(
        _KERNEL, "kernels", "mse", _ANGLE, "Squared error / kernel²", _ESTIMATORS, log_x=False,
        low="mse_low", high="mse_high",
    ),
    StudyLines(
        _OUTPUT, "kernels", "output_mse_small", _FEATURES, "Error at inputs of 0.5", _ESTIMATORS,
        low="output_mse_small_low", high="output_mse_small_high",
    ),
    StudyLines(
        _OUTPUT, "kernels", "output_mse_large", _FEATURES, "Error at inputs of 1.0", _ESTIMATORS,
        low="output_mse_large_low", high="output_mse_large_high",
    ),
    StudyLines(_LAYER, "scaling", "seconds", "Length of the sequence", "Seconds", _LAYERS),
    StudyLines(_LAYER, "scaling", "mebibytes", "Length of the sequence", "Peak memory, MiB", _LAYERS),
    StudyLines(
        "Error of the last layer's states by depth, with 95 % intervals over draws", "depth", "error", "Layers",
        "Relative error", _DEPTHS, log_x=False, low="error_low", high="error_high",
    ),
]  # fmt: skip
