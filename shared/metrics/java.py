"""pycocoevalcap (Chen et al. 2015), and the programs in Java that it brings: METEOR, the PTB tokeniser and SPICE.

They are run from here and not through pycocoevalcap's own classes, which write into the folder they are installed in
and leave open what they start.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

from shared.errors import ReplicationError


def require_package() -> None:
    """See to it that pycocoevalcap can be imported.

    Raises:
        ReplicationError: it is not installed; says how to.
    """
    if importlib.util.find_spec("pycocoevalcap") is None:
        raise ReplicationError(
            "captions are scored with pycocoevalcap, which is not installed; "
            "run 'python -m pip install -e .' in the project's folder."
        )


def require_java() -> None:
    """See to it that Java runs.

    Raises:
        ReplicationError: there is none; says how to install it.
    """
    java = shutil.which("java")
    # macOS has a java that does nothing but ask for one.
    if java is None or subprocess.run([java, "-version"], capture_output=True).returncode:
        raise ReplicationError(
            "METEOR, SPICE and the PTB tokeniser need Java, and there is no 'java' that works on the PATH; install a "
            "Java runtime (Debian, Ubuntu: apt-get install default-jre-headless)."
        )


def coco(module: str) -> Any:
    """A module of pycocoevalcap; says how to install it if it is missing."""
    require_package()
    return importlib.import_module(f"pycocoevalcap.{module}")


def beside(module: str, *path: str) -> Path:
    """A file in the folder of a module of pycocoevalcap."""
    return Path(coco(module).__file__).parent.joinpath(*path)


def command(memory: str, *arguments: str | Path) -> list[str]:
    """Command line that runs Java with a heap of at most ``memory`` ("1G"); says how to install it if it is missing.

    The serial collector, as the default one takes twice the memory; UTF-8 whatever the locale is.
    """
    require_java()
    return ["java", "-XX:+UseSerialGC", f"-Xmx{memory}", "-Dfile.encoding=UTF-8", *map(str, arguments)]


def run(arguments: list[str], text: str = "") -> str:
    """What a program writes that is given ``text``.

    Raises:
        ReplicationError: it fails; with the last it said.
    """
    done = subprocess.run(arguments, input=text.encode(), capture_output=True)
    if done.returncode:
        raise failed(done.stderr or done.stdout)
    return done.stdout.decode()


def failed(said: bytes) -> ReplicationError:
    """The error to raise where a program has ended with these last words."""
    lines = [line.strip() for line in said.decode(errors="replace").splitlines()]
    # An exception is told before the calls that led to it.
    told = [line for line in lines if line and not line.startswith(("at ", "... "))]
    last = told[-1] if told else "it does not say why"
    return ReplicationError(
        f"a Java program that scores captions has failed ({last}); see that Java is version 8 or newer and that "
        "there is 1 GB of memory for it, or 8 GB for SPICE."
    )
