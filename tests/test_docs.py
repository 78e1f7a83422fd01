"""Every command that the documents show is executed; CONTRIBUTING.md has the convention."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from scripts.documents import PROGRAMS, Command, UnreadableError, WrittenFile, read, shows

CHECKOUT = Path(__file__).resolve().parents[1]
DOCUMENTS = [
    path.relative_to(CHECKOUT).as_posix()
    for path in (*CHECKOUT.glob("*.md"), *sorted((CHECKOUT / "docs").rglob("*.md")))
]
TRANSLATIONS = [name for name in DOCUMENTS if name.endswith(".zh-CN.md")]


def readable_steps() -> Iterator[Command | WrittenFile]:
    """What the documents show; those that cannot be read fail a test of their own.

    Translations show the same commands and output, which a test below holds: run once.
    """
    for name in DOCUMENTS:
        if name in TRANSLATIONS:
            continue
        with contextlib.suppress(UnreadableError):
            yield from read(CHECKOUT / name, name)


STEPS = list(readable_steps())
STORIES = {name for name in DOCUMENTS if name.startswith("docs/stories/")}
LIMIT_S = 600
"""Ends what hangs."""


class Result(NamedTuple):
    """What became of a command."""

    status: int
    printed: str


class Runner:
    """Runs commands, those of `jumar` in forks of one process."""

    def __init__(self, scratch: Path) -> None:
        self.printed = scratch / "printed.txt"
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("MAKE", "MFLAGS", "PYTEST", "PYTHON"))
        }
        self.environment |= {"PYTHONPATH": str(CHECKOUT / "src"), "PYTHONUNBUFFERED": "1"}
        self.environment |= {"OMP_NUM_THREADS": "1", "COLUMNS": "100", "NO_COLOR": "1"}
        self.server: subprocess.Popen[str] | None = None

    def run(self, command: Command, folder: Path) -> Result:
        """Execute a command in a folder."""
        environment = {**self.environment, **command.variables}
        program, *arguments = command.words
        if command.dry:
            arguments.append("--dry-run")
        arguments += command.small
        if program == "jumar":
            status = self._fork(arguments, folder, environment)
        else:
            with self.printed.open("w", encoding="utf-8") as printed:
                status = subprocess.run(
                    [*PROGRAMS.get(program, (program,)), *arguments],
                    check=False,
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=printed,
                    stderr=subprocess.STDOUT,
                    timeout=LIMIT_S,
                ).returncode
        return Result(status, self.printed.read_text(encoding="utf-8"))

    def _fork(self, arguments: list[str], folder: Path, environment: dict[str, str]) -> int:
        if self.server is None:
            self.server = subprocess.Popen(
                [sys.executable, "-m", "tests.prefork"],
                cwd=CHECKOUT,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self.server.stdin
        assert self.server.stdout
        request = {
            "arguments": arguments,
            "folder": str(folder),
            "environment": environment,
            "printed": str(self.printed),
            "limit_s": LIMIT_S,
        }
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        return int(self.server.stdout.readline())

    def close(self) -> None:
        """End the process that forks."""
        if self.server is not None:
            self.server.communicate(timeout=10)


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    runner = Runner(tmp_path_factory.mktemp("printed"))
    yield runner
    runner.close()


class Folders:
    """The working folder of each document, as if it were a checkout."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self._factory = factory
        self._document = ""
        self._folder = Path()

    def of(self, document: str) -> Path:
        """Return a document's folder; that of the document before is removed."""
        if document != self._document:
            if self._document:
                shutil.rmtree(self._folder.parent, ignore_errors=True)
            self._document = document
            self._folder = self._factory.mktemp(Path(document).stem) / "jumar"
            self._folder.mkdir()
            (self._folder / "benchmarks").symlink_to(CHECKOUT / "benchmarks")
        return self._folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return Folders(tmp_path_factory)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_document_follows_the_convention(name: str) -> None:
    read(CHECKOUT / name, name)


@pytest.mark.parametrize("name", TRANSLATIONS)
def test_a_translation_shows_the_same_commands_files_and_output(name: str) -> None:
    original = f"{name.removesuffix('.zh-CN.md')}.md"
    one, other = (
        [replace(step, document="", line=0) for step in read(CHECKOUT / page, page)]
        for page in (original, name)
    )
    assert one == other


@pytest.mark.parametrize(
    "step",
    [pytest.param(step, id=f"{step.document}:{step.line}") for step in STEPS],
)
def test_documented_commands_work(
    step: Command | WrittenFile,
    runner: Runner,
    folders: Folders,
    request: pytest.FixtureRequest,
) -> None:
    folder = folders.of(step.document)
    if isinstance(step, WrittenFile):
        (folder / step.name).parent.mkdir(parents=True, exist_ok=True)
        (folder / step.name).write_text(step.text, encoding="utf-8")
        return
    if step.not_run:
        pytest.skip(f"{' '.join(step.words)}: {step.not_run}")
    if step.variable:
        pytest.skip(f"{' '.join(step.words)}: left to make stories, with {step.variable}")
    # A story goes on with what its earlier commands made of the data.
    if step.document in STORIES or any("../shared" in word for word in step.words):
        link = folder.parent / "shared"
        if not link.exists():
            link.symlink_to(request.getfixturevalue("shared"))
    result = runner.run(step, folder)
    assert result.status == step.status, f"{' '.join(step.words)}\n{result.printed}"
    if step.output is not None:
        assert shows(step.output, result.printed, exact=step.exact), result.printed
    for picture in step.pictures:
        assert (folder / picture).is_file(), f"{' '.join(step.words)}: no {picture}"


def steps_of(text: str, folder: Path) -> list[Command | WrittenFile]:
    path = folder / "page.md"
    path.write_text(text, encoding="utf-8")
    return read(path, "page.md")


def test_document_is_parsed_into_files_and_commands(tmp_path: Path) -> None:
    text = (
        "<!-- file: mine.py -->\n```python\nx = 1\n```\n\n"
        "Then:\n\n<!-- run: exit 2 -->\n<!-- check: output -->\n```console\n"
        "$ A=1 jumar train \\\n    --set 'a=b c'  # why\nout\n$ jumar doctor\n```\n"
    )
    file, first, second = steps_of(text, tmp_path)
    assert file == WrittenFile(document="page.md", line=2, name="mine.py", text="x = 1\n")
    assert isinstance(first, Command)
    assert isinstance(second, Command)
    assert first.words == ["jumar", "train", "--set", "a=b c"]
    assert (first.variables, first.status, first.output) == ({"A": "1"}, 2, ["out"])
    assert (second.line, second.words, second.output) == (14, ["jumar", "doctor"], [])


def test_story_marks_what_is_smaller_in_the_tests(tmp_path: Path) -> None:
    text = (
        "<!-- small: --set 'a=b c' -->\n<!-- picture: out/a.png -->\n"
        "```console\n$ jumar doctor\n```\n"
        "<!-- run: with SOME_TOOL -->\n```console\n$ jumar doctor\n```\n"
    )
    first, second = steps_of(text, tmp_path)
    assert isinstance(first, Command)
    assert isinstance(second, Command)
    assert (first.small, first.pictures, first.variable) == (["--set", "a=b c"], ["out/a.png"], "")
    assert (second.small, second.variable, second.not_run) == ([], "SOME_TOOL", "")


@pytest.mark.parametrize(
    "text",
    [
        "```bash\njumar doctor\n```\n",
        "```\n$ jumar doctor\n```\n",
        "```console\njumar doctor\n```\n",
        "```console\n$ jumar doctor | head\n```\n",
        "```console\n$ jumar doctor\n",
        "<!-- run: maybe -->\n```console\n$ jumar doctor\n```\n",
        "<!-- run: no -->\n```console\n$ make demo\n```\n",
        "<!-- run: no, it is slow -->\n```console\n$ jumar doctor\n```\n",
        "<!-- run: dry -->\nSome text.\n```console\n$ jumar doctor\n```\n",
    ],
)
def test_blocks_that_would_not_be_executed_are_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableError):
        steps_of(text, tmp_path)


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        (["step 10  loss -1.5e-3"], "step 200 loss 0.25\n", True),
        (["mode   loss", "-----", "...", "done"], "mode loss\n\n---\na\nb\ndone\n", True),
        (["loss 1"], "accuracy 1\n", False),
        (["loss 1"], "loss 1\nmore\n", False),
    ],
)
def test_shown_output_is_compared_except_for_numbers(
    expected: list[str], printed: str, same: bool
) -> None:
    assert shows(expected, printed) is same


def test_numbers_are_compared_if_the_document_says_so(tmp_path: Path) -> None:
    text = "<!-- check: numbers -->\n```console\n$ jumar doctor\n12 cores\n```\n"
    (command,) = steps_of(text, tmp_path)
    assert isinstance(command, Command)
    assert command.exact
    assert command.output is not None
    assert shows(command.output, "12   cores\n", exact=True)
    assert not shows(command.output, "13 cores\n", exact=True)
    assert not shows(command.output, "12 cores\n1 card\n", exact=True)
