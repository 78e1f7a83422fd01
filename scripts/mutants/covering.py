"""Which tests run a line, and how long each takes: one run of the suite, kept for later ones."""

import ast
import json
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

import coverage

LEFT_OUT = ("tests/test_docs.py", "tests/test_make.py", "tests/test_packaging.py")
"""They prove commands and installations, and would take half of the time."""
BESIDE = {
    "models": ("tests/parity",),
    "tasks": ("tests/parity",),
    "weights": ("tests/runs/test_weights_exchange.py", "tests/runs/test_weights_frozen.py"),
    "porting/rewriting": ("tests/porting/rules/test_examples.py",),
    "porting/script": ("tests/porting/rules/test_examples.py",),
}
"""Tests outside of a room's own folder that are about it, where only some rooms are looked at."""
OF_ALL_FILES = ("tests/test_declarations.py", "tests/test_floors.py")
"""They read the source of every room, and import none."""
_IMPORT = 3.0


@dataclass(frozen=True, kw_only=True)
class Covering:
    """What the run of the suite showed.

    Attributes:
        seconds: How long each test takes, setting up and tearing down included.
        tests: For each file and line the tests that run it.
        importing: For each file the files of tests that import it, where no lines were recorded.
    """

    seconds: Mapping[str, float]
    tests: Mapping[str, Mapping[int, Sequence[str]]]
    importing: Mapping[str, Set[str]] = field(default_factory=dict[str, Set[str]])


def collect(
    copy: Path,
    python: Path,
    folder: Path,
    jobs: int,
    environment: dict[str, str],
    rooms: Sequence[str] = (),
) -> None:
    """Run the suite once, recording which test runs which line.

    Args:
        copy: A copy of the checkout, for the tests to run in.
        python: The Python that runs them.
        folder: Where `coverage` and `seconds.json` are kept.
        jobs: How many files of tests run at a time.
        environment: For the tests.
        rooms: Run and record only the tests of these rooms. That is much cheaper, and misses what
            only tests of other rooms notice: a score by it is at most that of the whole suite.
    """
    sources = [f"src/jumar/{room}" for room in rooms] or ["src/jumar"]
    tests = dict.fromkeys(
        path for room in rooms for path in (f"tests/{room}", *BESIDE.get(room, ()))
    )
    recorded = [f"--cov={source}" for source in sources]
    recorded += ["--cov-context=test", "--cov-report=", *(f"--ignore={name}" for name in LEFT_OUT)]
    environment = {**environment, "COVERAGE_FILE": str(folder / "coverage")}
    _run(copy, python, folder, jobs, environment, [*tests, *recorded])


def time_mirrors(
    copy: Path,
    python: Path,
    folder: Path,
    jobs: int,
    environment: dict[str, str],
    files: Sequence[str],
    keep: bool = False,
) -> Covering:
    """Run only the tests that mirror or import some files, and record how long each takes.

    Args:
        copy: A copy of the checkout, for the tests to run in.
        python: The Python that runs them.
        folder: Where `seconds.json` is kept.
        jobs: How many files of tests run at a time.
        environment: For the tests.
        files: The files, from the checkout's root.
        keep: Take the times of earlier calls, and run only the files of tests that have none.

    Returns:
        Their times, and no lines: what another file's tests notice counts as unnoticed.
    """
    kept = _seconds(folder) if keep and (folder / "seconds.json").exists() else {}
    kept = _of_unchanged_names(kept, copy)
    timed = {name.partition("::")[0] for name in kept}
    importing = importing_tests(copy)
    tests = {test for name in files for test in _own_tests(copy, name) | importing.get(name, set())}
    tests |= {name for name in OF_ALL_FILES if (copy / name).is_file()}
    if left := sorted(tests - timed):
        _run(copy, python, folder, jobs, environment, left)
        kept = {**kept, **_seconds(folder)}
        (folder / "seconds.json").write_text(json.dumps(kept), encoding="utf-8")
    return Covering(seconds=kept, tests={}, importing=importing)


def _of_unchanged_names(seconds: Mapping[str, float], copy: Path) -> dict[str, float]:
    """Times of earlier calls, without those of files in which a test was renamed or removed."""
    texts = {
        file: (copy / file).read_text(encoding="utf-8") if (copy / file).is_file() else ""
        for file in {name.partition("::")[0] for name in seconds}
    }
    stale = {
        file
        for name in seconds
        for file, _, test in [name.partition("[")[0].partition("::")]
        if f"def {test.rpartition('::')[2]}(" not in texts[file]
    }
    return {name: time for name, time in seconds.items() if name.partition("::")[0] not in stale}


def importing_tests(checkout: Path) -> dict[str, set[str]]:
    """For each source file the files of tests that import its module or something of it."""
    importing: dict[str, set[str]] = defaultdict(set)
    for path in sorted((checkout / "tests").rglob("test_*.py")):
        name = path.relative_to(checkout).as_posix()
        if name in LEFT_OUT:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or node.module is None or node.level:
                continue
            # `from jumar.room import module` and `from jumar.room.module import name`.
            modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for module in modules:
                source = Path("src", *module.split(".")).with_suffix(".py")
                if (checkout / source).is_file():
                    importing[source.as_posix()].add(name)
    return importing


def _run(
    copy: Path,
    python: Path,
    folder: Path,
    jobs: int,
    environment: dict[str, str],
    arguments: Sequence[str],
) -> None:
    """Run tests and keep their times."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        *(str(python), "-m", "pytest", "-q", "-n", str(jobs), "--dist", "loadfile"),
        *("--timeout", "900", "--timeout-method", "thread", "-o", "addopts="),
        *("-p", "scripts.mutants.timing", *arguments),
    ]
    environment = {**environment, "JUMAR_TEST_SECONDS": str(folder / "seconds.json")}
    subprocess.run(command, cwd=copy, env=environment, check=False)


def _seconds(folder: Path) -> dict[str, float]:
    return json.loads((folder / "seconds.json").read_text(encoding="utf-8"))


def read(folder: Path, copy: Path, files: Sequence[str]) -> Covering:
    """What `collect` kept.

    Args:
        folder: Its folder.
        copy: The copy that the suite ran in.
        files: The files asked for, from the checkout's root.
    """
    data = coverage.CoverageData(str(folder / "coverage"))
    data.read()
    tests: dict[str, dict[int, list[str]]] = {}
    for name in files:
        lines: dict[int, list[str]] = defaultdict(list)
        for line, contexts in data.contexts_by_lineno(str(copy / name)).items():
            # A context is `test|run`; what is imported runs in none.
            lines[line] = sorted({text.partition("|")[0] for text in contexts if text})
        tests[name] = lines
    return Covering(seconds=_seconds(folder), tests=tests)


def chosen_tests(
    covering: Covering, checkout: Path, file: str, line: int, budget: float
) -> list[str]:
    """The tests to run for a defect in a line, those of the file's own tests first.

    Tests of one file share what they set up, so a file's first test pays for all.

    Args:
        covering: Which tests run which line.
        checkout: The checkout.
        file: The file with the defect.
        line: The line.
        budget: How long they may take, in seconds. The quickest are taken.
    """
    own = _own_tests(checkout, file) | set(OF_ALL_FILES)
    lines = covering.tests.get(file, {})
    names = list(lines.get(line, ()))
    if not names:
        # A line that is only run on import, in a process of its own or as part of the line before.
        names = sorted({name for tests in lines.values() for name in tests})
        names = [name for name in names if name.split("::")[0] in own]
        about = own | covering.importing.get(file, frozenset())
        names += [name for name in covering.seconds if name.split("::")[0] in about]
    names = [name for name in dict.fromkeys(names) if name in covering.seconds]
    names.sort(key=lambda name: (name.split("::")[0] not in own, covering.seconds[name]))
    taken: list[str] = []
    left = budget
    for name in names:
        cost = covering.seconds[name]
        if cost <= left:
            taken.append(name)
            left -= cost
    return taken


def expected_seconds(covering: Covering, tests: Sequence[str]) -> float:
    """How long these tests take without a defect."""
    return _IMPORT + sum(covering.seconds[name] for name in tests)


def _own_tests(checkout: Path, file: str) -> set[str]:
    """The files of tests that mirror a source file, or else those of its room."""
    inside = Path(file.removeprefix("src/jumar/"))
    folder = Path("tests") / inside.parent
    # A small room may have its tests in one file under its own name, as `tasks/scoring` has.
    of_room = f"test_{inside.parent.name}.py"
    parity = Path("tests/parity")
    named = [folder / f"test_{inside.name}", folder.parent / of_room]
    named += [parity / f"test_{inside.name}", parity / of_room]
    if mirrors := {path.as_posix() for path in named if (checkout / path).is_file()}:
        return mirrors
    below = folder / inside.stem
    where = below if (checkout / below).is_dir() else folder
    return {path.relative_to(checkout).as_posix() for path in (checkout / where).glob("test_*.py")}
