"""Models of one paper on the data of another: the rivals that a paper compares itself with."""

from __future__ import annotations

from typing import Any

from shared.config import Strict, build, near
from shared.errors import ReplicationError
from shared.tasks.protocol import load_replication, papers
from shared.tasks.routed import Routed
from shared.tasks.translation.settings import TranslationRun
from shared.tasks.translation.task import Translation


class BorrowedConfig(Strict):
    """The ``model`` section of a variant whose model is another paper's.

    Attributes:
        paper: whose model it is.
        settings: a ``model`` section as that paper's own variants have.
    """

    paper: str
    settings: dict[str, Any]


def borrowed_route(config: TranslationRun) -> tuple[Translation[Any], TranslationRun]:
    """The route of variants ``model: {paper: <other>, settings: {…}}``; see :mod:`shared.tasks.routed`.

    The other paper builds the model; corpus, training, decoding and evaluation stay those of the variant.

    Raises:
        ReplicationError: there is no such paper, it has no models that translate, or the settings are not theirs.
    """
    where = f"the model section of task '{config.task}'"
    section = config.checked_model(BorrowedConfig)
    if section.paper not in papers():
        raise ReplicationError(f"{where}: there is no paper '{section.paper}'{near(section.paper, papers())}.")
    lender = load_replication(section.paper)
    translation = lender.default if isinstance(lender, Routed) else lender
    if not isinstance(translation, Translation):
        raise ReplicationError(f"{where}: {section.paper} has no model that translates.")
    build(translation.model_config, section.settings, where=f"{where}, settings for a model of {section.paper}")
    return translation, config.model_copy(update={"model": section.settings})
