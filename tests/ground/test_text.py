"""Sizes and times for people; and what foreign files hold cannot command a terminal."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from jumar.ground.text import (
    first_line,
    plain_text,
    print_aside,
    print_at_once,
    print_plain,
    size_text,
    time_text,
)
from jumar.weights.bundle_writer import write_bundle
from tests.cli.in_process import here

HOSTILE = "conv\x1b[2J\x9b31m\u202egnp\u2028x"
SPELT = "conv\\x1b[2J\\x9b31m\\u202egnp\\u2028x"


def test_terminal_control_characters_are_escaped() -> None:
    assert plain_text(HOSTILE) == SPELT
    assert plain_text("a\r\n\tb\x7f\udc80\u200b") == "a\\r\\n\\tb\\x7f\\udc80\\u200b"


@pytest.mark.parametrize(
    "text", ["ünïcode", "权重/第一层", "全角\u3000空格", "a\u00a0b", "🙂", "\\x1b"]
)
def test_visible_text_is_unchanged(text: str) -> None:
    assert plain_text(text) == text


def test_line_breaks_are_kept_in_printed_text() -> None:
    out = io.StringIO()
    print_plain(f"one\n\t{HOSTILE}", out)
    assert out.getvalue() == f"one\n\t{SPELT}\n"


@given(text=st.text())
def test_no_characters_that_move_or_hide_others_remain(text: str) -> None:
    shown = plain_text(text, keep="\n")
    assert all(letter.isprintable() or letter == "\n" or letter.isspace() for letter in shown)
    assert not set(shown) & {chr(code) for code in (*range(10), *range(11, 32), *range(127, 160))}


def assert_clean(text: str) -> None:
    assert "\x1b" not in text
    assert "\x9b" not in text
    assert "\u202e" not in text
    assert "\\x1b[2J" in text


def test_weight_names_are_escaped_in_tables_and_errors(tmp_path: Path) -> None:
    values = np.zeros((2, 2), np.float32)
    save_file({HOSTILE: values}, tmp_path / "one.safetensors")
    write_bundle(tmp_path / "two", {HOSTILE: values})
    for file in ("one.safetensors", "two"):
        assert_clean(here("weights", "show", file, cwd=tmp_path).out)
    (tmp_path / "two.data-00000-of-00001").unlink()
    assert_clean(here("weights", "show", "two", cwd=tmp_path, code=2).err)
    options = ["--to", "tf1", "--recipe", "vqvae-mnist", "--out", "three"]
    done = here("weights", "export", "one.safetensors", *options, cwd=tmp_path, code=2)
    assert_clean(done.err)


def test_file_names_are_escaped_in_errors(tmp_path: Path) -> None:
    assert_clean(here("weights", "show", HOSTILE, cwd=tmp_path, code=2).err)
    assert_clean(here("evaluate", HOSTILE, cwd=tmp_path, code=2).err)


def test_file_names_are_escaped_in_reports(tmp_path: Path) -> None:
    script = tmp_path / f"{HOSTILE}.py"
    script.write_text("from npu_bridge.npu_init import *\nx = NPURunConfig(no_such=1)\n")
    assert_clean(here("port", "lint", str(script), cwd=tmp_path, code=1).out)
    lists = tmp_path / f"{HOSTILE}.json"
    lists.write_text('{"black-list": {"to-add": ["Conv2D\\u001b[2J"]}}')
    done = here("precision", "lint", str(lists), cwd=tmp_path, code=1)
    assert_clean(done.out)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (2048, "2 KiB"), (3 << 20, "3 MiB"), (5 << 30, "5.0 GiB")]
)
def test_sizes_are_human_readable(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(7, "7 s"), (600, "10 min"), (7200, "2.0 h"), (864000, "10.0 days")]
)
def test_times_are_human_readable(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


@pytest.mark.parametrize(
    ("text", "line"), [("\n one\ntwo", "one"), ("one\rtwo", "one"), (" \n", "none"), ("", "none")]
)
def test_first_line_is_the_first_that_is_not_blank(text: str, line: str) -> None:
    assert first_line(text, "none") == line


def test_a_line_at_once_does_not_wait_for_more(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    with path.open("w", encoding="utf-8") as file:
        print_at_once("one\x1b[2J", file)
        assert path.read_text(encoding="utf-8") == "one\\x1b[2J\n"


def test_what_stands_aside_is_not_among_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    print_aside("written: a\x1b[2J")
    assert capsys.readouterr() == ("", "written: a\\x1b[2J\n")
