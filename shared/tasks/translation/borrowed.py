"""Models of one paper on the data of another: the rivals that a paper compares itself with."""

from __future__ import annotations

from typing import Any

from shared.tasks.protocol import load_replication
from shared.tasks.routed import Routed
from shared.tasks.translation.settings import BorrowedConfig, TranslationRun
from shared.tasks.translation.task import Translation


def borrowed_route(config: TranslationRun) -> tuple[Translation[Any], TranslationRun]:
    """The route of variants ``model: {paper: <other>, settings: {…}}``; see :mod:`shared.tasks.routed`.

    The other paper builds the model; corpus, training, decoding and evaluation stay those of the variant.
    """
    section = config.checked_model(BorrowedConfig)
    section.lender(config.where)
    replication = load_replication(section.paper)
    lender: Translation[Any] = replication.default if isinstance(replication, Routed) else replication  # type: ignore[assignment]
    return lender, config.with_model(section.settings)
