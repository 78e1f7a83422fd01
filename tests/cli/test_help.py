"""Every help page, as a user without knowledge of Python reads it."""

import io
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from cyclopts import App
from rich.console import Console

from jumar.cli.main import app, document_in_full
from tests.cli.in_process import here


def _commands(command: App = app, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name in command:
        if not name.startswith("-"):
            yield from _commands(command[name], (*path, name))


COMMANDS = [" ".join(path) for path in _commands()]


@cache
def _page(command: str, width: int = 80) -> str:
    out = io.StringIO()
    tokens = command.split()
    document_in_full(tokens)
    app.help_print(tokens, console=Console(file=out, width=width))
    return out.getvalue()


def test_commands_of_all_packages_are_found() -> None:
    assert {"", "train", "profile gate", "port check", "precision ops", "data tfrecord"} <= set(
        COMMANDS
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_help_page_shows_no_python_values(command: str) -> None:
    defaults = re.findall(r"\[default:\s+([^]]*)\]", " ".join(_page(command, 200).split()))
    values_of_python = re.compile(r"\(.*\)|\[.*|\{.*|True|False|None|''|\"\"|<.*|\w+\(.*|")
    assert not [default for default in defaults if values_of_python.fullmatch(default)]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_page_names_arguments_and_their_targets(command: str) -> None:
    placeholders = re.findall(r"\bARGS\b|--\S+ (?:STR|ANY|TUPLE|LIST)\b", _page(command))
    assert not placeholders
    assert "─ Parameters ─" not in _page(command)


@pytest.mark.parametrize("command", COMMANDS)
def test_negative_form_is_offered_only_for_options_on_by_default(command: str) -> None:
    page = " ".join(_page(command, 200).split())
    rows = [row for row in page.split("│") if re.match(r"\s*--\S+ --(?:no|empty)-", row)]
    assert all("[default: on]" in row for row in rows), rows
    assert len(re.findall(r"--(\S+) --(?:no|empty)-", page)) == len(rows)


@pytest.mark.parametrize("width", [72, 80, 120])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_page_does_not_break_words(command: str, width: int) -> None:
    def words(page: str) -> Counter[str]:
        return Counter(re.sub(r"[╭╮╰╯─│]", " ", page).split())

    assert words(_page(command, width)) == words(_page(command, 400))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_argument_and_option_is_explained(command: str) -> None:
    rows = re.findall(r"^│ (?:\* +)?((?:--|[A-Z]).*?)│$", _page(command, 300), re.MULTILINE)
    unexplained = [row for row in rows if len(re.split(r" {2,}", row.strip())) < 2]
    assert not unexplained
    explanations = [re.split(r" {2,}", row.strip(), maxsplit=1)[1] for row in rows]
    assert not [text for text in explanations if text.startswith("[")]


def test_help_page_of_a_command_says_more_than_its_summary_line() -> None:
    assert "resumes from its newest checkpoint" in " ".join(_page("train").split())
    assert "resumes from its newest checkpoint" not in " ".join(_page("").split())


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_flag_shows_what_the_command_promises(flag: str, tmp_path: Path) -> None:
    page = " ".join(here("port", flag, cwd=tmp_path).out.split())
    assert "byte for byte" in page
    assert "Symbolic links are never followed" in page


def test_help_flag_has_one_explanation() -> None:
    pages = [_page(""), here("--help", cwd=Path.cwd()).out]
    assert all("Display this message and exit." in page for page in pages)
    assert not any("Print the help page." in page for page in pages)
