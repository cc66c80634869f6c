"""A Java that does what a test wants, for programs that are slow, absent or broken."""

import pytest


@pytest.fixture
def fake_java(fake_program):
    """Return a function that puts the body of a Python program in Java's place."""
    return lambda body: fake_program("java", f'if "-version" in sys.argv:\n    sys.exit()\n{body}')
