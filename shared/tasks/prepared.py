"""What a prepared task remembers of itself: a summary, and the settings that it was made with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shared.config import flat
from shared.errors import ReplicationError
from shared.tasks.settings import CorpusConfig

SUMMARY = "summary.json"
_SETTINGS = "settings"


def write_summary(folder: Path, corpus: CorpusConfig, summary: Mapping[str, object]) -> dict[str, object]:
    """Write ``summary.json``, with the settings of the corpus under ``settings``, into the folder of a prepared task.

    Returns:
        What was written.
    """
    whole = {**summary, _SETTINGS: corpus.model_dump(mode="json")}
    text = json.dumps(whole, indent=1, ensure_ascii=False)
    (folder / SUMMARY).write_text(text, encoding="utf-8")
    return whole


def read_summary(folder: Path) -> dict[str, Any]:
    """What :func:`write_summary` wrote.

    Raises:
        ReplicationError: it is missing or damaged.
    """
    try:
        summary: dict[str, Any] = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        raise ReplicationError(f"{folder} is incomplete; run the prepare stage of its task.") from None
    return summary


def check_prepared(folder: Path, corpus: CorpusConfig) -> None:
    """Refuse a prepared task that was not made with these settings.

    Raises:
        ReplicationError: names every key that differs, with both values, or says that there is nothing to compare.
    """
    known = read_summary(folder).get(_SETTINGS)
    if known is None:
        raise ReplicationError(f"{folder} does not say with which settings it was prepared; run prepare again.")
    before, now = flat(known), flat(corpus.model_dump(mode="json"))
    differences = [
        f"key {key} is {_shown(before, key)} there and {_shown(now, key)} here"
        for key in sorted(before.keys() | now.keys())
        if _shown(before, key) != _shown(now, key)
    ]
    if differences:
        raise ReplicationError(
            f"{folder} was prepared with other settings: {'; '.join(differences)}; run prepare again."
        )


def _shown(settings: Mapping[str, Any], key: str) -> str:
    return json.dumps(settings[key], ensure_ascii=False) if key in settings else "not set"
