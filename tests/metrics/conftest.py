"""A Java that does what a test wants, for programs that are slow, absent or broken."""

import sys

import pytest

FAKE = """#!{python}
import sys
if "-version" in sys.argv:
    sys.exit()
{body}
"""


@pytest.fixture
def fake_java(tmp_path, monkeypatch):
    """Return a function that puts a Python program in Java's place."""

    def install(body):
        program = tmp_path / "bin" / "java"
        program.parent.mkdir()
        program.write_text(FAKE.format(python=sys.executable, body=body))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent))

    return install
