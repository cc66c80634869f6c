"""What refuses wrong input: an error of our own, whose message is one sentence."""

import re

from shared.errors import ReplicationError


def outcome(read, /, *arguments, **options) -> tuple[object, str]:
    """What is read, and the sentence that refuses it, of which one is missing."""
    try:
        return read(*arguments, **options), ""
    except ReplicationError as error:
        said = str(error)
        assert said.endswith(".")
        assert len(said.splitlines()) == 1
        return None, said


def sentence_of(read, /, *arguments, **options) -> str:
    """What refuses these arguments: one sentence, whatever text it shows."""
    found, said = outcome(read, *arguments, **options)
    assert said, f"{found!r} was read"
    return said


def assert_refused(words: str, read, /, *arguments, **options) -> str:
    """These arguments are refused in one sentence, in which the regular expression ``words`` is found; returns it."""
    said = sentence_of(read, *arguments, **options)
    assert re.search(words, said), said
    return said
