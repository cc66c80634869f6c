"""The rules that keep this a house: what may import what, how long things may be, what must be there."""

from __future__ import annotations

import ast
import graphlib
import importlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CODE = sorted(path for folder in ("shared", "replications") for path in (ROOT / folder).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
PYTHON = [ROOT / "replicate.py", *CODE, *TESTS]
REPLICATIONS = sorted(path.parent for path in (ROOT / "replications").glob("*/__init__.py"))
TEXT = {".py", ".md", ".yaml", ".toml", ".txt", ".cff", ".j2", ".html", ".json"}

# A package of shared may import those of its own level and of the levels before it.
LEVELS = (
    {"attention", "layers", "vision", "decoding"},
    {"data", "metrics"},
    {"training"},
    {"claims", "reports"},
    {"pipeline"},
)
REPLICATION_FILES = {
    "__init__.py",
    "README.md",
    "model.py",
    "replication.py",
    "paper.yaml",
    "claims.yaml",
    "smoke.yaml",
    "quick.yaml",
    "bench.yaml",
    "paper_scale.yaml",
}
# Places of one machine; written so that this file does not match itself.
PLACES = re.compile(r"/[w]ork/|/[f]arm\b|\.\./[s]hared|/[r]oot/|/[h]ome/\w|/[o]pt/(?:wheels|pypi)")

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
files = pytest.mark.parametrize("path", PYTHON, ids=lambda path: str(path.relative_to(ROOT)))


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 11))


def functions(path: Path) -> Iterator[FunctionNode]:
    return (node for node in ast.walk(parsed(path)) if isinstance(node, FunctionNode))


def imported(path: Path) -> set[str]:
    """Return the full name of every module that ``path`` may import, and of every name it takes from one."""
    names: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def package_of(module: str) -> str:
    """Return ``attention`` for ``shared.attention.additive``; nothing for what is in no package of shared."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "shared" and (ROOT / "shared" / parts[1]).is_dir() else ""


@files
def test_files_and_functions_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 350
    long = {node.name: node.end_lineno - node.lineno + 1 for node in functions(path) if node.end_lineno}
    assert {name: lines for name, lines in long.items() if lines > 60} == {}


@files
def test_nothing_imports_dvc(path: Path) -> None:
    assert {name for name in imported(path) if name.split(".")[0] == "dvc"} == set()


@pytest.mark.parametrize("path", [ROOT / "replicate.py", *CODE], ids=lambda path: str(path.relative_to(ROOT)))
def test_everything_public_says_what_it_is(path: Path) -> None:
    public = [node for node in parsed(path).body if isinstance(node, FunctionNode | ast.ClassDef)]
    assert [n.name for n in public if not n.name.startswith("_") and ast.get_docstring(n) is None] == []


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_imports(path: Path) -> None:
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    assert importlib.import_module(name).__name__ == name


def test_shared_is_made_of_known_packages_only() -> None:
    packages = {path.parent.name for path in (ROOT / "shared").glob("*/__init__.py")}
    assert packages == set().union(*LEVELS)


def test_inside_shared_imports_go_one_way() -> None:
    level = {package: number for number, packages in enumerate(LEVELS) for package in packages}
    graph: dict[str, set[str]] = {package: set() for package in level}
    wrong = []
    for path in CODE:
        relative = path.relative_to(ROOT)
        if relative.parts[0] != "shared":
            continue
        used = {package_of(name) for name in imported(path)} - {""}
        if len(relative.parts) == 2:  # errors, config: what everything stands on
            wrong += [f"{relative} imports shared.{package}" for package in used]
            continue
        package = relative.parts[1]
        wrong += [f"{relative} imports shared.{other}" for other in used if level[other] > level[package]]
        graph[package] |= used - {package}
    assert wrong == []
    assert set(graphlib.TopologicalSorter(graph).static_order()) == set(level)  # raises CycleError on a cycle


def test_shared_knows_no_replication_and_a_replication_no_other() -> None:
    wrong = []
    for path in CODE:
        top, *inner = path.relative_to(ROOT).parts
        for name in imported(path):
            parts = name.split(".")
            own = top == "replications" and len(parts) > 1 and parts[1] == inner[0]
            if parts[0] == "replications" and not own:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


@pytest.mark.parametrize("folder", REPLICATIONS, ids=lambda folder: folder.name)
def test_a_replication_has_its_files(folder: Path) -> None:
    assert REPLICATION_FILES - {path.name for path in folder.iterdir()} == set()


@pytest.mark.parametrize(
    "path",
    [path for path in TESTS if path.name.startswith("test_")],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_every_test_asserts_something(path: Path) -> None:
    asserting: set[str] = set()
    defined = {node.name: node for node in functions(path)}
    for _ in defined:  # as often as helpers may call helpers
        asserting |= {name for name, node in defined.items() if any(asserts(n, asserting) for n in ast.walk(node))}
    tests = {name for name in defined if name.startswith("test_")}
    assert tests - asserting == set()
    assert tests


def asserts(node: ast.AST, helpers: set[str]) -> bool:
    """Return whether ``node`` is an assert statement, or a call of pytest's, of an assert_… or of a helper's."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return name in {"raises", "warns"} or name.startswith("assert_") or name in helpers
    return isinstance(node, ast.Assert)


def test_no_text_names_a_place_of_one_machine() -> None:
    named = []
    for path in texts():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if PLACES.search(line):
                named.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert named == []


def texts() -> list[Path]:
    """List the project's own text files: not what was fetched, made by a run, or hidden (which .ci is)."""
    inside = [path for folder in ("shared", "replications", "tests", "reports") for path in (ROOT / folder).rglob("*")]
    candidates = [*ROOT.iterdir(), *(ROOT / "data").glob("*.yaml"), *inside]
    return [path for path in candidates if path.is_file() and path.suffix in TEXT]


def test_the_marks_of_one_machine_are_recognised() -> None:
    for parts in (
        ["open('", "work", "data')"],
        ["..", "shared"],
        ["", "root", ""],
        ["at ", "home", "someone"],
    ):
        assert PLACES.search("/".join(parts))
    assert not PLACES.search("from shared.attention, the framework, the root and a home, ../other/shared")


def test_no_two_tests_have_one_name() -> None:
    """Pytest imports the files by their names alone, wherever they lie."""
    names = Counter(path.name for path in TESTS if path.name != "conftest.py")
    assert [name for name, count in names.items() if count > 1] == []
