#!/usr/bin/env python3
"""From a bare machine to a report.

  python3.11 replicate.py                      make the environment if needed, then dvc repro report@bahdanau
  python3.11 replicate.py check bahdanau       any command of python -m shared.pipeline, in the same environment
  python3.11 replicate.py repro report@luong   any other command of DVC; dvc list where both have one of that name
  python3.11 replicate.py test                 ruff, mypy and every test; further arguments go to pytest
  python3.11 replicate.py setup                make the environment and stop

The environment lies beside this file in .venv, or in $REPLICATE_VENV. Running a command again is always
safe: what is complete is kept, what was interrupted is done again. Python 3.11 or 3.12 and a package registry
are all that is needed.
"""

# Standard library only, and nothing that Python 3.6 cannot parse or define: a wrong Python shall get a
# sentence and not a SyntaxError.

import difflib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
SUPPORTED = ("3.11", "3.12")
PAPER = "bahdanau"
# The project's own commands, also where DVC has one of that name; then those of DVC.
OF_PIPELINE = (
    "check compare costs data estimate evaluate export features fetch freeze list new pack prepare publish "
    "reference report search show summarize train try unpack use verdicts"
)
OF_DVC = (
    "add artifacts cache check-ignore checkout commit completion config daemon dag data dataset destroy diff doctor "
    "ds du exp experiments fetch freeze gc get get-url git-hook import import-db import-url init install list "
    "list-url ls ls-url metrics move mv params plots pull push queue remote remove repro rm root stage status studio "
    "test-db unfreeze unprotect update version"
)
PIPELINE, DVC = OF_PIPELINE.split(), OF_DVC.split()
SHOWN_LAST = "REPLICATE_SHOWS_VERDICTS"  # tells the pipeline's own stage that the verdicts come at the end
# In one process, so that signals reach DVC itself; what it says of git would otherwise be the last word.
REPORT_THEN_VERDICTS = f"""
import os, runpy, sys
try:
    runpy.run_module("dvc", run_name="__main__", alter_sys=True)
except SystemExit as ended:
    if ended.code:
        raise
del os.environ["{SHOWN_LAST}"]
sys.stdout.flush()
os.execv(sys.executable, [sys.executable, "-m", "shared.pipeline", "verdicts", "{PAPER}"])
"""
CHECKS = (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"])
LOCKED = (".ci/requirements.lock", ".ci/constraints.txt")
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"
CPU_SIZE, CUDA_SIZE = 3, 8  # GB


class Missing(Exception):
    """Something this machine lacks, or a command that there is not: one sentence, and what to do about it."""


def main(arguments: "list[str]") -> None:
    """Make the environment if it is not complete, then become the command that ``arguments`` ask for."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return
    try:
        check_command(arguments)
        if VERSION not in SUPPORTED:
            continue_with_supported_python(arguments)
        venv = Path(os.environ.get("REPLICATE_VENV") or ROOT / ".venv").expanduser().absolute()
        install(venv)
        if arguments == ["setup"]:
            say(f"ready: source {venv / 'bin' / 'activate'}")
        else:
            run(venv, arguments)
    except Missing as missing:
        print(f"error: {missing}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        say("interrupted; run the same command again")
        sys.exit(130)


def check_command(arguments: "list[str]") -> None:
    """Refuse a word that is no command, which DVC would do only when all is installed; it has options of its own.

    Raises:
        Missing: there is no such command; names the nearest one.
    """
    word, known = arguments[0] if arguments else "-", ["dvc", "test", *PIPELINE, *DVC]
    if not (word.startswith("-") or word in known or arguments == ["setup"]):
        nearest = difflib.get_close_matches(word, ["setup", *known], n=1, cutoff=0.7)
        meant = f" (did you mean '{nearest[0]}'?)" if nearest and nearest != [word] else ""
        shown = " ".join(arguments) if word == "setup" else word
        raise Missing(f"there is no command '{shown}'{meant}; give setup alone, or a command such as check or repro.")


def run(venv: Path, arguments: "list[str]") -> None:
    """Replace this process by a command of the project or of DVC, or by the tests once the quick checks have passed."""
    python, word = str(venv / "bin" / "python"), arguments[0] if arguments else ""
    path = str(venv / "bin") + os.pathsep + os.environ.get("PATH", os.defpath)
    # DVC walks sets: with one hash seed the order stays the same.
    environment = dict(os.environ, VIRTUAL_ENV=str(venv), PYTHONHASHSEED="0", PATH=path)
    if word == "data":
        environment["REPLICATE_FROM"] = str(Path.cwd())  # where the files lie that data new is given
    environment.pop("PYTHONHOME", None)
    os.chdir(str(ROOT))
    if word == "test":
        for check in CHECKS:
            say(" ".join(check))
            status = subprocess.call([python, "-m", *check], env=environment)
            if status:
                sys.exit(status)
        command = ["-m", "pytest", "--numprocesses=2", "--dist=worksteal", *arguments[1:]]
    elif word in PIPELINE:
        command = ["-m", "shared.pipeline", *arguments]
    else:
        let_dvc_work_without_git()
        remove_broken_locks(ROOT / ".dvc")
        command = ["-m", "dvc", *(arguments[word == "dvc" :] or ["repro", "report@" + PAPER])]
    say(" ".join(command[1:]))
    if not arguments:
        environment[SHOWN_LAST] = "1"
        command = ["-c", REPORT_THEN_VERDICTS, *command[2:]]
    # No child process: signals and the exit status are the command's own.
    os.execve(python, [python, *command], environment)


def let_dvc_work_without_git() -> None:
    """Tell DVC, which otherwise refuses to work outside of a git checkout, that this archive is none."""
    local = ROOT / ".dvc" / "config.local"
    if not local.exists() and not any((folder / ".git").exists() for folder in (ROOT, *ROOT.parents)):
        say("note: this is no git checkout; dvc metrics diff, params diff and exp need one, all else works")
        say("note: after a git init, remove .dvc/config.local")
        local.write_text("[core]\n    no_scm = true\n", encoding="utf-8")


def remove_broken_locks(folder: Path) -> None:
    """Remove DVC's list of locks where an interrupt has cut it off while DVC wrote it: DVC would refuse to start."""
    locks = folder / "tmp" / "rwlock"
    for seconds in (0.5, 0):  # another DVC may be writing it
        try:
            json.loads(locks.read_text(encoding="utf-8"))
            return
        except FileNotFoundError:
            return
        except ValueError:
            time.sleep(seconds)
    locks.unlink()


def continue_with_supported_python(arguments: "list[str]") -> None:
    """Start this file again under a supported Python of the search path.

    Raises:
        Missing: there is none; says how to get one.
    """
    for version in SUPPORTED:
        found = shutil.which("python" + version)
        # A version manager's python3.11 may only print that it has no such version: try it.
        if found and version_of(found) == version:
            say(f"this is Python {VERSION}; continuing with {found}")
            os.execv(found, [found, str(ROOT / "replicate.py"), *arguments])
    raise Missing(
        f"Python 3.11 or 3.12 is needed; this is {VERSION}, and no python3.11 or python3.12 is on the PATH. "
        "Install one (Debian, Ubuntu: apt-get install python3.11 python3.11-venv; macOS: brew install "
        "python@3.11; anywhere: pyenv install 3.11 or uv python install 3.11) and run the same command again."
    )


def stamp_of(venv: Path) -> "tuple[Path, str, str]":
    """Return the file that marks a complete environment, and its two lines: whose it is, made of what."""
    pins = b"\0".join((ROOT / name).read_bytes() for name in ("pyproject.toml", *LOCKED))
    return venv / "replicate.stamp", f"Python {VERSION} at {venv}\n", hashlib.sha256(pins).hexdigest() + "\n"


def install(venv: Path) -> None:
    """Create ``venv`` unless it is complete, or bring it up to date; one that was moved, or left unfinished, anew.

    Raises:
        Missing: the machine lacks something, or pip could not install; says which.
    """
    stamp, owner, pins = stamp_of(venv)
    said = stamp.read_text(encoding="utf-8") if stamp.is_file() else owner
    if said == owner + pins:
        return
    driver = bool(shutil.which("nvidia-smi")) or Path("/proc/driver/nvidia/version").exists()
    small = not driver and answers(CPU_WHEELS + "/torch/")
    check_machine(venv, CPU_SIZE if small else CUDA_SIZE)
    python = str(venv / "bin" / "python")
    if not said.startswith(owner) or version_of(python, "pip") != VERSION:
        say(f"{'rebuilding' if venv.exists() else 'creating'} {venv} with Python {VERSION}")
        if subprocess.call([sys.executable, "-m", "venv", "--clear", str(venv)]):
            raise Missing("the virtual environment could not be created (see above).")
        with (venv / "bin" / "activate").open("a", encoding="utf-8") as activate:
            activate.write("export PYTHONHASHSEED=0\n")
    # A pip that is killed may leave half a package that looks whole; one that fails has undone what it began.
    stamp.write_text("unfinished\n", encoding="utf-8")
    if small:
        say("no NVIDIA driver: taking the CPU build of torch, which is gigabytes smaller")
    elif not driver:
        say("note: torch's CPU wheels are out of reach; unless pip has others, CUDA wheels come, about 8 GB")
    lock, constraints = (str(ROOT / name) for name in LOCKED)
    wheels = ["--extra-index-url", CPU_WHEELS] if small else []
    steps = {
        "step 1 of 2: the pinned packages": ["--require-hashes", "--no-deps", "--requirement", lock],
        "step 2 of 2: torch and the project itself": ["-c", constraints, "--editable", f"{ROOT}[dev]", *wheels],
    }
    for step, packages in steps.items():
        say(f"installing, {step}, about a minute")
        quiet = [] if sys.stdout.isatty() else ["--quiet"]
        pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *quiet]
        if subprocess.call([*pip, *packages]):
            stamp.write_text(owner, encoding="utf-8")
            raise Missing("pip could not install the packages (see above); check network and disk, then repeat.")
    stamp.write_text(owner + pins, encoding="utf-8")
    java = "" if shutil.which("java") else "; there is no Java: METEOR, of the captioning papers, needs it"
    say("installed" + java)


def check_machine(venv: Path, size: int) -> None:
    """Check, before any long work, that ``venv`` can be made and that its disk has ``size`` GB left.

    Raises:
        Missing: names what is missing and how to get it.
    """
    if not version_of(sys.executable, "ensurepip, venv"):
        raise Missing(f"this Python has no venv module; Debian, Ubuntu: apt-get install python{VERSION}-venv.")
    inside = {path.name for path in venv.iterdir()} if venv.is_dir() else set()
    if venv.is_file() or (inside - {"bin", "include", "lib", "lib64"} and "pyvenv.cfg" not in inside):
        raise Missing(f"{venv} exists and is no virtual environment; set REPLICATE_VENV to another folder.")
    existing = next(folder for folder in (venv, *venv.parents) if folder.exists())
    free = shutil.disk_usage(str(existing)).free / 1e9
    if free < size and not any(venv.glob("lib/*/site-packages/torch")):
        raise Missing(
            f"about {size} GB are needed and {existing} has {free:.1f} GB left; free some, or set REPLICATE_VENV to a "
            "folder on a larger disk."
        )


def answers(address: str) -> bool:
    """Return whether ``address`` can be opened within three seconds, looking up its name included."""
    program = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=3)"
    try:
        # A child process: urlopen's own time limit does not cover a name server that stays silent.
        return not subprocess.call([sys.executable, "-c", program, address], stderr=subprocess.DEVNULL, timeout=3)
    except subprocess.TimeoutExpired:
        return False


def version_of(python: str, modules: str = "os") -> str:
    """Return the version of a Python that can import these modules; nothing if it cannot, or cannot be run."""
    program = f"import sys, {modules}; print('%d.%d' % sys.version_info[:2])"
    try:
        return subprocess.check_output([python, "-c", program], stderr=subprocess.DEVNULL).decode().strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def say(text: str) -> None:
    """Print one line of progress at once, so that it stays in order with what child processes print."""
    print(f"replicate: {text}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
