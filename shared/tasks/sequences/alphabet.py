"""The symbols of proteins: the special ones of all vocabularies, the mask, and a letter for each amino acid."""

from __future__ import annotations

from shared.data.homology import AMINO_ACIDS, ANOMALOUS
from shared.data.tokenizers import SPECIAL

MASK = len(SPECIAL)
"""The symbol that stands for a masked one."""
LETTERS = AMINO_ACIDS + ANOMALOUS
FIRST = MASK + 1
"""The symbol of the first of the letters."""
VOCABULARY = FIRST + len(LETTERS)
"""How many symbols there are: the special ones of all vocabularies, the mask, and 25 letters."""
