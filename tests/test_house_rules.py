"""The rules that keep this a house: what may import what, how long things may be, what must be there."""

from __future__ import annotations

import ast
import functools
import graphlib
import importlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED, REPLICATIONS, BENCHMARKS, TESTS = (
    sorted((ROOT / folder).rglob("*.py")) for folder in ("shared", "replications", "benchmarks", "tests")
)
CODE = [*SHARED, *REPLICATIONS]
PROGRAMS = [ROOT / "replicate.py", *CODE, *BENCHMARKS]
TEXT = {".py", ".md", ".yaml", ".toml", ".txt", ".cff", ".j2", ".html", ".json"}
PAPERS = sorted(path.parent for path in (ROOT / "replications").glob("*/__init__.py"))
KINDS = sorted(path.parent.name for path in (ROOT / "shared" / "tasks").glob("*/__init__.py"))

# A package of shared may import those of its own level and of the levels before it, and never in a circle.
LEVELS = (
    {"errors", "config", "torchvision_compat"},
    {"attention", "layers", "vision", "decoding"},
    {"data"},
    {"metrics", "training"},
    {"claims"},
    {"reports"},
    {"tasks"},
    {"pipeline"},
)
REPLICATION_FILES = {
    "__init__.py", "README.md", "model.py", "replication.py", "paper.yaml", "claims.yaml",
    "smoke.yaml", "quick.yaml", "bench.yaml", "paper_scale.yaml",
}  # fmt: skip
# What nothing but tests uses, and why it stays.
FOR_TESTS = {
    "naive_attentive_recurrence": "the paper's equations, which the fused layer is tested against",
    "naive_gated_recurrence": "the paper's equations, which the fused layer is tested against",
    "naive_lstm_cell": "the paper's equations, which the fused layer is tested against",
}
# Places of one machine; written so that this file does not match itself.
PLACES = re.compile(r"/[w]ork/|/[f]arm\b|\.\./[s]hared|/[r]oot/|/[h]ome/\w|/[o]pt/(?:wheels|pypi)")

DOTTED = re.compile(r"\w+(?:[.:]\w+)*")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 11))


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(parsed(path)))


def functions(path: Path) -> Iterator[Function]:
    return (node for node in nodes(path) if isinstance(node, Function))


def name_of(path: Path) -> str:
    """Return the dotted name of the module in ``path``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def imported(path: Path) -> frozenset[str]:
    """Return the full name of every module that ``path`` may import, and of every name it takes from one."""
    names: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


def package_of(module: str) -> str:
    """Return ``attention`` for ``shared.attention.additive``; nothing for a module outside of shared."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "shared" else ""


def test_files_and_functions_are_short() -> None:
    files = [*PROGRAMS, *TESTS]
    long = [str(path) for path in files if len(path.read_text(encoding="utf-8").splitlines()) > 350]
    for path in files:
        sizes = {node.name: (node.end_lineno or 0) - node.lineno + 1 for node in functions(path)}
        long += [f"{path}: {name} has {lines} lines" for name, lines in sizes.items() if lines > 60]
    assert long == []


def test_nothing_imports_dvc() -> None:
    files = [*PROGRAMS, *TESTS]
    assert [str(path) for path in files if {name.split(".")[0] for name in imported(path)} & {"dvc"}] == []


def test_everything_public_says_what_it_is() -> None:
    silent = [
        f"{path}: {node.name}"
        for path in [ROOT / "replicate.py", *CODE]
        for node in parsed(path).body
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_") and not ast.get_docstring(node)
    ]
    assert silent == []


def test_every_module_imports() -> None:
    assert [name_of(path) for path in CODE if importlib.import_module(name_of(path)).__name__ != name_of(path)] == []


def test_shared_is_made_of_known_packages_only() -> None:
    inside = {package_of(name_of(path)) for path in SHARED} - {""}
    assert inside == set().union(*LEVELS)


def test_inside_shared_imports_go_one_way() -> None:
    level = {package: number for number, packages in enumerate(LEVELS) for package in packages}
    graph: dict[str, set[str]] = {package: set() for package in level}
    wrong = []
    for path in SHARED:
        package = package_of(name_of(path))
        used = {name: package_of(name) for name in imported(path) if package and package_of(name) not in ("", package)}
        wrong += [f"{name_of(path)} imports {name}" for name, other in used.items() if level[other] > level[package]]
        graph.get(package, set()).update(used.values())
    assert wrong == []
    assert set(graphlib.TopologicalSorter(graph).static_order()) == set(level)  # raises CycleError on a circle


def test_no_kind_of_task_knows_another() -> None:
    """One kind's room imports no other's, and what all kinds share imports none."""
    wrong = []
    for path in SHARED:
        _, *inside = name_of(path).split(".")
        if inside[:1] != ["tasks"]:
            continue
        foreign = [f"shared.tasks.{kind}." for kind in KINDS if kind not in inside[1:2]]
        wrong += [
            f"{name_of(path)} imports {name}" for name in imported(path) if (name + ".").startswith(tuple(foreign))
        ]
    assert wrong == []


def test_shared_knows_no_replication_and_a_replication_no_other() -> None:
    wrong = []
    for path in CODE:
        top, *inner = path.relative_to(ROOT).parts
        for name in imported(path):
            parts = name.split(".")
            same = top == "replications" and len(parts) > 1 and parts[1] == inner[0]
            if parts[0] == "replications" and not same:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


def test_a_replication_has_its_files() -> None:
    lacking = {folder.name: REPLICATION_FILES - {path.name for path in folder.iterdir()} for folder in PAPERS}
    assert {paper: files for paper, files in lacking.items() if files} == {}


def test_every_test_asserts_something() -> None:
    idle = []
    for path in TESTS:
        defined = {node.name: node for node in functions(path)}
        tests = [name for name in defined if name.startswith("test_")]
        if path.name.startswith("test_"):
            idle += [f"{path}: {name}" for name in (set(tests) - asserting(defined))] or ([] if tests else [str(path)])
    assert idle == []


def asserting(defined: dict[str, Function]) -> set[str]:
    """Return which of the functions assert something, themselves or through the others that they call."""
    names: set[str] = set()
    while more := {name for name, node in defined.items() if name not in names and asserts(node, names)}:
        names |= more
    return names


def asserts(function: Function, helpers: set[str]) -> bool:
    """Return whether ``function`` has an assert statement, or calls pytest's, an assert_… or a helper."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in {"raises", "warns"} or name.startswith("assert_") or name in helpers:
                return True
        if isinstance(node, ast.Assert):
            return True
    return False


def test_no_text_names_a_place_of_one_machine() -> None:
    named = []
    for path in texts():
        content = path.read_text(encoding="utf-8")
        for match in PLACES.finditer(content):
            named.append(f"{path.relative_to(ROOT)}:{content.count(chr(10), 0, match.start()) + 1}: {match.group()}")
    assert named == []


def texts() -> list[Path]:
    """List the project's own text files: not what was fetched, made by a run, or hidden (which .ci is)."""
    folders = ("shared", "replications", "benchmarks", "tests", "reports")
    inside = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    candidates = [*ROOT.iterdir(), *(ROOT / "data").glob("*.yaml"), *inside]
    return [path for path in candidates if path.suffix in TEXT and path.is_file()]


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


def test_nothing_is_there_for_tests_alone() -> None:
    """Every class and function is reached from a module's own statements, replicate.py or a benchmark."""
    bodies: dict[str, list[ast.stmt]] = {}
    live: set[str] = set().union(*(words(parsed(path)) for path in (ROOT / "replicate.py", *BENCHMARKS)))
    for path in CODE:
        for node in parsed(path).body:
            if isinstance(node, Function | ast.ClassDef):
                bodies.setdefault(node.name, []).append(node)
            else:
                live |= words(node)
    fresh = live & bodies.keys()
    while fresh:
        fresh = set().union(*(words(node) for name in fresh for node in bodies[name])) & bodies.keys() - live
        live |= fresh
    assert bodies.keys() - live == FOR_TESTS.keys()


def words(root: ast.AST) -> set[str]:
    """Return every name that ``root`` uses, those in texts that are names or dotted paths too; imports use none."""
    names: set[str] = set()
    for node in ast.walk(root):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and DOTTED.fullmatch(node.value):
            names |= set(re.split(r"[.:]", node.value))
    return names
