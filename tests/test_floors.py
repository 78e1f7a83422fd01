"""Which room may import which: the table of docs/architecture.md, checked against the source."""

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.checkout import CHECKOUT
from tests.sources import code, forget, parsed

PACKAGE = CHECKOUT / "src" / "jumar"
OURS = [PACKAGE, CHECKOUT / "scripts", CHECKOUT / "benchmarks"]


@pytest.fixture(scope="module", autouse=True)
def _trees() -> Iterator[None]:
    yield
    forget()


class House(NamedTuple):
    """The floors in the document."""

    floors: dict[str, int]
    """Room (folder or file without `.py`) to floor, the lowest at the ground."""
    allowed: set[tuple[str, str]]
    """Pairs of rooms on one floor of which the first may import the second."""


class Import(NamedTuple):
    """One import of a module of jumar."""

    place: str
    room: str
    imported: str


def read_house(text: str) -> House:
    """The table of floors and the sentence about exceptions."""
    floors: dict[str, int] = {}
    for floor, rooms in re.findall(r"^\| (\d+) \| (.+?) \|", text, flags=re.MULTILINE):
        for room in re.findall(r"`(\w+)(?:/|\.py)`", rooms):
            floors[room] = int(floor)
    (sentence,) = re.findall(r"^Rooms on one floor do not import each other.*$", text, re.MULTILINE)
    allowed: set[tuple[str, str]] = set()
    name = r"`\w+(?:\.py)?`"
    for user, used in re.findall(
        rf"({name}) (?:may use|uses) ({name}(?:(?:,| and) {name})*)", sentence
    ):
        (first,) = re.findall(r"`(\w+)", user)
        allowed |= {(first, second) for second in re.findall(r"`(\w+)", used)}
    return House(floors, allowed)


def room_of(path: Path, package: Path) -> str:
    """The folder directly below the package, or the file's own name."""
    return path.relative_to(package).with_suffix("").parts[0]


def imports(package: Path) -> Iterator[Import]:
    """Every import of jumar by jumar: at the top, in functions, for type checking, by name."""
    rooms = {room_of(path, package) for path in package.rglob("*.py")}
    for path in sorted(package.rglob("*.py")):
        room = room_of(path, package)
        for node in ast.walk(parsed(path)):
            for module in sorted(set(_modules(node, rooms))):
                place = f"{path.relative_to(package)}:{getattr(node, 'lineno', 0)}"
                yield Import(place, room, module)


def file_imports(package: Path) -> dict[str, set[str]]:
    """The files of the package that each file imports, wherever in it; by dotted names."""
    files = {
        ".".join((package.name, *path.relative_to(package).with_suffix("").parts)): path
        for path in package.rglob("*.py")
    }
    result: dict[str, set[str]] = {name: set() for name in files}
    for name, path in files.items():
        for node in ast.walk(parsed(path)):
            for imported in _names(node):
                known = {imported, imported.rpartition(".")[0]} & set(files)
                result[name] |= {max(known, key=len)} if known else set()
    return result


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"line {node.lineno}: imports are absolute"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def _modules(node: ast.AST, rooms: set[str]) -> Iterator[str]:
    names = _names(node)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        # Commands are loaded by name when they are called: "jumar.cli.train:train".
        names = re.findall(r"^jumar(?:\.\w+)+(?=:\w+$|$)", node.value)
    for name in names:
        parts = name.split(".")
        if parts[0] == "jumar":
            yield parts[1] if len(parts) > 1 and parts[1] in rooms else "__init__"


def violations(package: Path, house: House) -> list[str]:
    """Imports that go up, or sideways without leave."""
    floors = {**house.floors, "__init__": -1, "__main__": max(house.floors.values()) + 1}
    return [
        f"{result.place}: {result.room} imports {result.imported}"
        for result in imports(package)
        if result.room != result.imported
        and floors[result.imported] >= floors[result.room]
        and (result.room, result.imported) not in house.allowed
    ]


HOUSE = read_house((CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8"))


def test_every_package_is_in_the_table_and_every_row_is_a_package() -> None:
    rooms = {room_of(path, PACKAGE) for path in PACKAGE.rglob("*.py")}
    assert rooms - {"__init__", "__main__"} == set(HOUSE.floors)


def test_imports_go_down_only() -> None:
    result = violations(PACKAGE, HOUSE)
    assert not result, "\n".join(result)


def test_no_two_files_import_each_other() -> None:
    TopologicalSorter(file_imports(PACKAGE)).prepare()


def test_import_cycles_are_found(tmp_path: Path) -> None:
    package = tmp_path / "jumar"
    package.mkdir()
    (package / "one.py").write_text("from jumar.two import name\n")
    (package / "two.py").write_text("def late():\n    from jumar import one\n")
    with pytest.raises(CycleError):
        TopologicalSorter(file_imports(package)).prepare()


@pytest.mark.parametrize("room", ["failures", "launching", "porting", "profiling"])
def test_script_and_file_readers_do_not_import_torch(room: str) -> None:
    result = [
        f"{path}: {module}"
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for module in (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
        )
        if module and module.split(".")[0] == "torch"
    ]
    assert not result, "\n".join(result)


def test_models_import_nothing_of_jumar() -> None:
    outside = [
        result
        for result in imports(PACKAGE)
        if result.room == "models" and result.imported != "models"
    ]
    assert not outside, outside


@pytest.mark.parametrize(
    "line",
    [
        "from jumar.cli.main import run",
        "from jumar import cli",
        "import jumar.cli.main",
        "def late():\n    from jumar.cli import main",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from jumar.cli import main",
        "import importlib\nimportlib.import_module('jumar.cli.main')",
        "LAZY = 'jumar.cli.main:run'",
        "from jumar.tasks.task import Task",
    ],
)
def test_upward_or_sideways_import_is_found(line: str, tmp_path: Path) -> None:
    house = read_house(
        "| 2 | `cli/` | commands |\n"
        "| 1 | `data/`, `tasks/`, `experiments/`, `recipes/` | work |\n"
        "Rooms on one floor do not import each other, "
        "except that `experiments` may use `recipes`.\n"
    )
    for name, text in {
        "__init__.py": "",
        "cli/main.py": "from jumar.data import load",
        "tasks/task.py": "",
        "recipes/all.py": "",
        "experiments/sweep.py": "from jumar.recipes.all import find",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "load.py").write_text(line, encoding="utf-8")
    result = violations(tmp_path, house)
    assert result
    assert all(text.startswith("data/load.py") for text in result)


WORDS = ("porting", "profiling")
"""Rooms that read and write these names in the scripts and files of others, and use none."""
STANDIN = PACKAGE / "porting" / "standin"
"""Has the file names of the package for which it stands in."""
RUNNER = PACKAGE / "porting" / "check" / "runner37"
"""Runs the script that the user names, in a process of its own: that is what `port check` is."""


def sources(roots: list[Path], *, outside: tuple[str, ...] = ()) -> Iterator[Path]:
    """The files below these folders, less those in the rooms named."""
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            if root != PACKAGE or room_of(path, PACKAGE) not in outside:
                yield path


@pytest.mark.parametrize(
    ("pattern", "rooms"),
    [
        pytest.param(r"torch_npu", ("devices", *WORDS), id="torch_npu is known to devices alone"),
        pytest.param(
            r"\.cuda\(|torch\.cuda\b", ("devices", *WORDS), id="CUDA is known to devices alone"
        ),
        pytest.param(
            r"\bfloat16\b|\.half\(|torch\.half\b|HalfTensor",
            ("precision", *WORDS),
            id="float16 is known to precision alone",
        ),
    ],
)
def test_restricted_names_are_used_only_in_their_packages(
    pattern: str, rooms: tuple[str, ...]
) -> None:
    result = [
        f"{path.relative_to(CHECKOUT)}: {line.strip()}"
        for path in sources([PACKAGE], outside=rooms)
        for line in code(path).splitlines()
        if re.search(pattern, line)
    ]
    assert not result, "\n".join(map(str, result))


def test_no_file_has_a_catch_all_name() -> None:
    left_over = {"utils", "util", "helpers", "helper", "common", "misc", "base"}
    result = [
        path
        for root in [*OURS, CHECKOUT / "tests"]
        for path in root.rglob("*")
        if path.stem in left_over and STANDIN not in path.parents
    ]
    assert not result, "\n".join(map(str, result))


def _keyword(call: ast.Call, name: str) -> object:
    """The constant value of a keyword argument, or None."""
    for keyword in call.keywords:
        if keyword.arg == name and isinstance(keyword.value, ast.Constant):
            return keyword.value.value
    return None


FORBIDDEN_CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "os.system",
    "os.popen",
    "yaml.load",
    "yaml.unsafe_load",
    "joblib.load",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
}
FORBIDDEN_MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle"}


def unsafe(tree: ast.AST) -> Iterator[str]:
    """Ways in which data could run code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            names = [module or "", *(alias.name for alias in node.names)]
            yield from (
                f"line {node.lineno}: {name}"
                for name in names
                if name.split(".")[0] in FORBIDDEN_MODULES
            )
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        where = f"line {node.lineno}: {called}"
        if called in FORBIDDEN_CALLS:
            yield where
        if called == "torch.load" and _keyword(node, "weights_only") is not True:
            yield f"{where} without weights_only=True"
        if _keyword(node, "shell"):
            yield f"{where} with a shell"
        if _keyword(node, "allow_pickle"):
            yield f"{where} with allow_pickle"


def test_nothing_runs_code_from_data() -> None:
    result = [
        f"{path.relative_to(CHECKOUT)} {text}"
        for path in sources(OURS)
        if not path.is_relative_to(RUNNER)
        for text in unsafe(parsed(path))
    ]
    assert not result, "\n".join(map(str, result))


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from pickle import load",
        "eval('1')",
        "import os; os.system('ls')",
        "yaml.load(text)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "subprocess.run('ls', shell=True)",
        "np.load(path, allow_pickle=True)",
    ],
)
def test_ways_to_run_code_from_data_are_found(line: str) -> None:
    assert list(unsafe(ast.parse(line)))


@pytest.mark.parametrize(
    "line", ["model.eval()", "torch.load(path, weights_only=True)", "re.compile('a')"]
)
def test_safe_code_passes(line: str) -> None:
    assert not list(unsafe(ast.parse(line)))
