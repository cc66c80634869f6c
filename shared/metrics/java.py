"""pycocoevalcap (Chen et al. 2015), and its Java programs: METEOR, the PTB tokeniser and SPICE.

This module runs the programs itself: the classes of pycocoevalcap write into the installation folder and leave their
processes running.
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
    """Check that pycocoevalcap can be imported.

    Raises:
        ReplicationError: it is not installed; the message says how to install it.
    """
    if importlib.util.find_spec("pycocoevalcap") is None:
        raise ReplicationError(
            "captions are scored with pycocoevalcap, which is not installed; "
            "run 'python -m pip install -e .' in the project's folder."
        )


def require_java() -> None:
    """Check that Java runs.

    Raises:
        ReplicationError: there is no Java; the message says how to install it.
    """
    java = shutil.which("java")
    # macOS has a placeholder named java that only asks the user to install Java.
    if java is None or subprocess.run([java, "-version"], capture_output=True).returncode:
        raise ReplicationError(
            "METEOR, SPICE and the PTB tokeniser need Java, and there is no 'java' that works on the PATH; install a "
            "Java runtime (Debian, Ubuntu: apt-get install default-jre-headless)."
        )


def coco(module: str) -> Any:
    """Import a module of pycocoevalcap; the error says how to install the package if it is missing."""
    require_package()
    return importlib.import_module(f"pycocoevalcap.{module}")


def beside(module: str, *path: str) -> Path:
    """Return the path of a file in the folder of a module of pycocoevalcap."""
    return Path(coco(module).__file__).parent.joinpath(*path)


def command(memory: str, *arguments: str | Path) -> list[str]:
    """Return a command line that runs Java with a heap of at most ``memory`` ("1G").

    It uses the serial garbage collector, because the default one takes twice the memory, and UTF-8 in every locale.
    The error says how to install Java if it is missing.
    """
    require_java()
    return ["java", "-XX:+UseSerialGC", f"-Xmx{memory}", "-Dfile.encoding=UTF-8", *map(str, arguments)]


def run(arguments: list[str], text: str = "") -> str:
    """Run a program with ``text`` as input and return its output.

    Raises:
        ReplicationError: the program fails; the message has the last line of its output.
    """
    done = subprocess.run(arguments, input=text.encode(), capture_output=True)
    if done.returncode:
        raise failed(done.stderr or done.stdout)
    return done.stdout.decode()


def failed(said: bytes) -> ReplicationError:
    """Return the error for a program that has failed with this output."""
    lines = [line.strip() for line in said.decode(errors="replace").splitlines()]
    # Java prints the exception before its stack trace.
    told = [line for line in lines if line and not line.startswith(("at ", "... "))]
    last = told[-1] if told else "it does not say why"
    return ReplicationError(
        f"a Java program that scores captions has failed ({last}); see that Java is version 8 or newer and that "
        "there is 1 GB of memory for it, or 8 GB for SPICE."
    )
