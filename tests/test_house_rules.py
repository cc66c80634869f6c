"""The rules that keep this a house: what may import what, how long things may be, what must be there."""

import ast
import functools
import graphlib
import importlib
import io
import re
import tokenize
from collections import Counter
from pathlib import Path
from typing import NamedTuple

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
    {"errors", "config", "records", "torchvision_compat"}, {"attention", "layers", "vision", "decoding"}, {"data"},
    {"metrics", "training"}, {"claims"}, {"reports"}, {"tasks"}, {"pipeline"},
)  # fmt: skip
# Lines of code, without blanks, comments and docstrings: what a room may have today, and what it is to come to. A
# change that needs more takes them from another room, or says in its message why the first number grows; it falls with
# the code.
BUDGETS = {
    ("shared/config.py", "shared/errors.py", "shared/records.py"): (248, 130),
    ("shared/data",): (3628, 2200),
    ("shared/attention", "shared/layers", "shared/decoding"): (2131, 2000),
    ("shared/vision",): (269, 180),
    ("shared/metrics",): (796, 720),
    ("shared/training",): (896, 600),
    ("shared/claims",): (1544, 1350),
    ("shared/tasks",): (4556, 3600),
    ("shared/reports",): (2741, 1900),
    ("shared/pipeline",): (2902, 1500),
    ("replications",): (4940, 3400),
    ("benchmarks",): (1312, 700),
    ("replicate.py",): (190, 120),
    ("tests",): (26120, 22000),
}
REPLICATION_FILES = {
    "__init__.py", "README.md", "model.py", "replication.py", "report.py", "paper.yaml", "claims.yaml", "variants.yaml",
    *(f"{scale}/params.yaml" for scale in ("smoke", "quick")),
}  # fmt: skip
# What nothing but tests uses, and why it stays.
FOR_TESTS = {
    "expected_kernel": "the closed form that estimates of the kernel are tested against",
    "at_root": "notebooks begin with it",
}
# Parts of shared that one paper alone uses, and why they stay: by file.
OF_ONE_PAPER = {
    "shared/attention/additive.py": "Bahdanau's score; Xu's form of it takes logarithms",
    "shared/attention/alignments.py": "a reader looks for Luong's scores and windows among the attentions",
    "shared/attention/favor.py": "a reader looks for random features among the attentions",
    "shared/attention/feature_maps.py": "the maps that linear attention is compared with",
    "shared/attention/linear.py": "a reader looks for linear attention among the attentions",
    "shared/attention/lsh.py": "a reader looks for attention by hashing among the attentions",
    "shared/attention/relative.py": "a reader looks for relative positions among the attentions",
    "shared/layers/gated_recurrence.py": "the gated unit of 2014 is no torch layer, and others compare with it",
    "shared/layers/lstm.py": "layers that torch has not in this form",
    "shared/layers/outputs.py": "all that a network may end with",
    "shared/metrics/operations.py": "counting operations and their longest chain is one thing",
    "shared/tasks/captioning/corpus.py": "any paper on captions shows what is seen",
    "shared/tasks/classification/figures.py": "any paper on texts shows the words that it reads",
}
# Places of one machine; written so that this file does not match itself. Pages lead to attentions and layers.
PLACES = re.compile(
    r"/[w]ork/|/[f]arm\b|\.\./[s]hared(?!/(?:attention|layers)/)|/[r]oot/|/[h]ome/\w|/[o]pt/(?:wheels|pypi)"
)

# The files of shared/data that open files, and which.
OPENS = {
    "opening.py": "whatever people bring", "archives.py": "archives, member by member", "sources.py": "what was loaded",
    "fetch.py": "files that it has written", "storage.py": "prepared files", "tokenizers.py": "its own files",
    "cards.py": "cards", "generated/scenes.py": "what a drawing is rendered to",
    "generated/sets.py": "what it has packed",
}  # fmt: skip

DOTTED = re.compile(r"\w+(?:[.:]\w+)*")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Facts(NamedTuple):
    """What the rules ask of a file; its tree is not kept.

    Attributes:
        lines: of the file.
        functions: (name, number of lines) of each, methods and inner functions included.
        imports: full name of every imported module, and of every name taken from one.
        silent: public classes and functions at the top level without a docstring.
        defines: top-level class or function to the names that it uses.
        uses: names that the other top-level statements use.
        idle: tests that assert nothing; the file itself where it has no test.
    """

    lines: int
    functions: list[tuple[str, int]]
    imports: frozenset[str]
    silent: list[str]
    defines: dict[str, set[str]]
    uses: set[str]
    idle: list[str]


@functools.cache
def facts(path: Path) -> Facts:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text, str(path), feature_version=(3, 11))
    nodes = list(ast.walk(tree))
    functions = [node for node in nodes if isinstance(node, Function)]
    asserted = asserting({node.name: node for node in functions})
    tests = [node.name for node in functions if node.name.startswith("test_")]
    public = [node for node in tree.body if isinstance(node, Function | ast.ClassDef)]
    return Facts(
        lines=len(text.splitlines()),
        functions=[(node.name, (node.end_lineno or 0) - node.lineno + 1) for node in functions],
        imports=frozenset(name for node in nodes for name in imported(path, node)),
        silent=[node.name for node in public if not node.name.startswith("_") and not ast.get_docstring(node)],
        defines={node.name: words(node) for node in public},
        uses=set().union(*(words(node) for node in tree.body if node not in public)),
        idle=[name for name in tests if name not in asserted] if tests else ["no test"],
    )


def imported(path: Path, node: ast.AST) -> list[str]:
    """Return the modules that a statement imports, and the names that it takes from one."""
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"{path}:{node.lineno} imports relatively"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def listed(offenders: list[str]) -> str:
    """Return all offenders, one a line; pytest itself shows the first one only."""
    return "\n" + "\n".join(sorted(offenders))


def name_of(path: Path) -> str:
    """Return the dotted name of the module in ``path``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(module: str) -> str:
    """Return ``attention`` for ``shared.attention.additive``; nothing for a module outside of shared."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "shared" else ""


def test_files_and_functions_are_short() -> None:
    long = []
    for path in [*PROGRAMS, *TESTS]:
        long += [f"{path} has {facts(path).lines} lines"] if facts(path).lines > 500 else []
        long += [f"{path}: {name} has {lines} lines" for name, lines in facts(path).functions if lines > 60]
    assert not long, listed(long)


def test_rooms_keep_to_their_budgets() -> None:
    rows = [(", ".join(room), sum(map(code_lines, files_of(room))), *budget) for room, budget in BUDGETS.items()]
    print(*(f"{room:55}{lines:7}{most:7}{goal:7}" for room, lines, most, goal in rows), sep="\n")
    over = [f"{room}: {lines} lines of code, {most} allowed" for room, lines, most, _ in rows if lines > most]
    idle = [f"{room}: {lines} lines, so {most} is too much" for room, lines, most, _ in rows if lines < 0.9 * most]
    assert not over + idle, listed(over + idle)


def files_of(room: tuple[str, ...]) -> list[Path]:
    """List the Python files of a room, which is folders or files."""
    return [path for part in room for path in ([ROOT / part] if part.endswith(".py") else (ROOT / part).rglob("*.py"))]


def code_lines(path: Path) -> int:
    """Count the lines that have code: tokens other than comments, and texts that are no docstring."""
    text = path.read_text(encoding="utf-8")
    layout = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {line for token in tokens if token.type not in layout for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def test_data_that_people_bring_is_opened_in_one_place() -> None:
    """Readers open no file themselves: they would forget marks, line ends, names that begin with a dot, or the line."""
    opening = {"open", "iterdir", "glob", "rglob", "read_text", "read_bytes", "connect", "ZipFile", "load", "imread"}
    wrong = []
    for path in (ROOT / "shared/data").rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
        for call in calls if path.relative_to(ROOT / "shared/data").as_posix() not in OPENS else ():
            method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            writes = any(isinstance(each, ast.Constant) and str(each.value).startswith("w") for each in call.args)
            if not writes and (method in opening or getattr(call.func, "id", "") == "open"):
                wrong.append(f"{path}:{call.lineno} opens a file; call shared.data.opening")
    assert not wrong, listed(wrong)


def test_nothing_imports_dvc() -> None:
    wrong = [str(p) for p in [*PROGRAMS, *TESTS] if any(name.split(".")[0] == "dvc" for name in facts(p).imports)]
    assert not wrong, listed(wrong)


def test_everything_public_says_what_it_is() -> None:
    silent = [f"{path}: {name}" for path in [ROOT / "replicate.py", *CODE] for name in facts(path).silent]
    assert not silent, listed(silent)


def test_every_module_imports() -> None:
    wrong = [name for name in map(name_of, CODE) if importlib.import_module(name).__name__ != name]
    assert not wrong, listed(wrong)


def test_shared_is_made_of_known_packages_only() -> None:
    inside = {package_of(name_of(path)) for path in SHARED} - {""}
    assert inside == set().union(*LEVELS)


def test_inside_shared_imports_go_one_way() -> None:
    level = {package: number for number, packages in enumerate(LEVELS) for package in packages}
    graph: dict[str, set[str]] = {package: set() for package in level}
    wrong = []
    for path in SHARED:
        package = package_of(name_of(path))
        used = {name: package_of(name) for name in facts(path).imports if package}
        used = {name: other for name, other in used.items() if other not in ("", package)}
        wrong += [f"{name_of(path)} imports {name}" for name, other in used.items() if level[other] > level[package]]
        graph.get(package, set()).update(used.values())
    assert not wrong, listed(wrong)
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
            f"{name_of(path)} imports {name}" for name in facts(path).imports if (name + ".").startswith(tuple(foreign))
        ]
    assert not wrong, listed(wrong)


def test_shared_knows_no_replication_and_a_replication_no_other() -> None:
    wrong = []
    for path in CODE:
        top, *inner = path.relative_to(ROOT).parts
        for name in facts(path).imports:
            parts = name.split(".")
            same = top == "replications" and len(parts) > 1 and parts[1] == inner[0]
            if parts[0] == "replications" and not same:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not wrong, listed(wrong)


def test_a_replication_has_its_files() -> None:
    lacking = [f"{folder}: {name}" for folder in PAPERS for name in REPLICATION_FILES if not (folder / name).exists()]
    assert not lacking, listed(lacking)


def test_every_test_asserts_something() -> None:
    idle = [f"{path}: {name}" for path in TESTS if path.name.startswith("test_") for name in facts(path).idle]
    assert not idle, listed(idle)


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
    assert not named, listed(named)


def texts() -> list[Path]:
    """List the project's own text files: not what was fetched, made by a run, or hidden (which .ci is)."""
    folders = ("shared", "replications", "benchmarks", "tests", "reports")
    inside = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    candidates = [*ROOT.iterdir(), *(ROOT / "data").glob("*.yaml"), *inside]
    tried = ROOT / "reports" / "tried"  # pages of what readers have tried
    return [path for path in candidates if path.suffix in TEXT and path.is_file() and tried not in path.parents]


def test_the_marks_of_one_machine_are_recognised() -> None:
    for parts in (["open('", "work", "data')"], ["..", "shared"], ["", "root", ""], ["at ", "home", "someone"]):
        assert PLACES.search("/".join(parts))
    assert not PLACES.search("from shared.attention, the framework, the root and a home, ../other/shared")


def test_no_two_tests_have_one_name() -> None:
    """Pytest imports the files by their names alone, wherever they lie."""
    names = Counter(path.name for path in TESTS if path.name != "conftest.py")
    twice = [name for name, count in names.items() if count > 1]
    assert not twice, listed(twice)


def test_nothing_is_there_for_tests_alone() -> None:
    """Every class and function is reached from a module's own statements, replicate.py or a benchmark."""
    start: set[str] = set().union(*(facts(path).uses for path in PROGRAMS))
    start |= set().union(*(used for path in PROGRAMS if path not in CODE for used in facts(path).defines.values()))
    bodies = definitions(CODE)
    live = reached(start, bodies)
    dead = [f"{name} is used by tests alone" for name in bodies.keys() - live - FOR_TESTS.keys()]
    dead += [f"{name} is no longer used by tests alone: remove it from FOR_TESTS" for name in FOR_TESTS.keys() & live]
    assert not dead, listed(dead)


def test_what_one_paper_alone_uses_is_in_its_folder() -> None:
    bodies = definitions(SHARED)
    general = reached(set().union(*(facts(path).uses for path in SHARED)), bodies)
    users: Counter[str] = Counter()
    for folder in PAPERS:
        inside = map(facts, folder.rglob("*.py"))
        users.update(reached(set().union(*(file.uses.union(*file.defines.values()) for file in inside)), bodies))
    alone = {name for name, papers in users.items() if papers == 1} - general
    parts = {
        str(path.relative_to(ROOT)): names for path in SHARED if (names := sorted(alone & facts(path).defines.keys()))
    }
    print(*(f"{file}: {', '.join(names)}" for file, names in parts.items()), sep="\n")
    wrong = [f"{file} has what one paper alone uses: {parts[file]}" for file in parts.keys() - OF_ONE_PAPER.keys()]
    wrong += [f"{file} has nothing that one paper alone uses" for file in OF_ONE_PAPER.keys() - parts.keys()]
    assert not wrong, listed(wrong)


def definitions(files: list[Path]) -> dict[str, set[str]]:
    """Return the names that each top-level class and function uses; two of one name count as one."""
    bodies: dict[str, set[str]] = {}
    for path in files:
        for name, used in facts(path).defines.items():
            bodies[name] = bodies.get(name, set()) | used
    return bodies


def reached(start: set[str], bodies: dict[str, set[str]]) -> set[str]:
    """Return what is defined of ``start``, and of all that it uses in turn."""
    fresh = start & bodies.keys()
    live = set(fresh)
    while fresh:
        fresh = set().union(*(bodies[name] for name in fresh)) & bodies.keys() - live
        live |= fresh
    return live


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
