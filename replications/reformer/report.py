"""What the report of this paper shows beside the tables that every report has."""

from shared.reports.curves import StudyLines, StudyPanel
from shared.tasks.sequences.report import curves

_FORMS = {
    "plain": "autograd", "reversible": "reversible layers", "lsh": "reversible layers, hashes kept",
}  # fmt: skip
FIGURES = [
    curves(
        {"Shared queries and keys, reversible layers": ["full", "shared", "reversible"]}, only="copying",
        claim="Ki20-C1", counterpart="Figure 3",
    ),
    StudyLines("What training keeps of the layers", [
        StudyPanel("reversibility", "kept", "Layers", "MiB kept for the backward pass", _FORMS),
    ], claim="Ki20-C3"),
    curves(
        {"Rounds of hashing": ["long-lsh-1", "long-lsh-2", "long-lsh-4", "long-reversible"]}, only="hashing",
        claim="Ki20-C4",
    ),
]  # fmt: skip
