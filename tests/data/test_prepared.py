"""A prepared task knows the settings that it was made with."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.config import build
from shared.data.storage import check_prepared, read_summary, write_summary
from shared.errors import ReplicationError
from shared.tasks.translation.settings import ParallelCorpusConfig

CORPUS = {"dataset": "toy", "source": "a", "target": "b", "tokenizer": {"kind": "words", "size": 12}}


def corpus(**changes: object) -> ParallelCorpusConfig:
    return build(ParallelCorpusConfig, CORPUS | changes, where="test")


def test_the_same_settings_pass_and_defaults_count_as_given(tmp_path: Path) -> None:
    summary = write_summary(tmp_path, corpus(), {"vocabulary": 12})
    assert read_summary(tmp_path) == summary
    assert summary["vocabulary"] == 12
    check_prepared(tmp_path, corpus(max_words=10_000))


def test_other_settings_are_refused_key_by_key(tmp_path: Path) -> None:
    write_summary(tmp_path, corpus(), {})
    other = corpus(max_ratio=2.0, tokenizer={"kind": "sentencepiece", "size": 20})
    with pytest.raises(ReplicationError) as refused:
        check_prepared(tmp_path, other)
    assert str(refused.value) == (
        f"{tmp_path} was prepared with other settings: key max_ratio is 9.0 there and 2.0 here; key tokenizer.kind is "
        '"words" there and "sentencepiece" here; key tokenizer.model_type is not set there and "bpe" here; key '
        'tokenizer.size is 12 there and 20 here; key tokenizer.split is "space" there and not set here; run prepare '
        "again."
    )


@pytest.mark.parametrize(
    ("content", "message"), [(None, "is incomplete"), ("{", "is incomplete"), ("{}", "does not say")]
)
def test_what_cannot_be_compared_is_refused(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "summary.json").write_text(content)
    with pytest.raises(ReplicationError, match=message):
        check_prepared(tmp_path, corpus())
