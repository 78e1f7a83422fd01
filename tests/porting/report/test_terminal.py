import io
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from jumar.porting.edits import FileReport, Language, TreeReport
from jumar.porting.report.terminal import command_to_write, print_diff, print_summary
from jumar.porting.report.unified import diff_lines
from tests.porting.report.reports import hostile_report, ported_file, tree_report

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def plain() -> tuple[Console, io.StringIO]:
    """A console that is no terminal, such as a pipe."""
    written = io.StringIO()
    return Console(file=written, width=40), written


def terminal(monkeypatch: pytest.MonkeyPatch) -> tuple[Console, io.StringIO]:
    """A console that is a terminal with colours."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    written = io.StringIO()
    console = Console(file=written, width=40, force_terminal=True, color_system="standard")
    return console, written


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_piped_diff_is_the_plain_patch(end: str) -> None:
    file = ported_file()
    file = FileReport(
        path=file.path,
        status="ported",
        before=file.before.replace("\n", end),
        after=file.after.replace("\n", end),
    )
    console, written = plain()
    print_diff(TreeReport(root=".", files=(file,)), console)
    assert written.getvalue() == "".join(diff_lines(file))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("program", [("patch", "-p1", "--fuzz=0"), ("git", "apply", "-p1")])
def test_diff_with_summary_can_be_piped_into_patch(
    program: tuple[str, ...], language: Language, tmp_path: Path
) -> None:
    if not shutil.which(program[0]):
        pytest.skip(f"needs {program[0]}")
    console, written = plain()
    print_diff(tree_report(), console)
    print_summary(tree_report(), console, language, next_command="jumar port . --to ../ported")
    (tmp_path / "train.py").write_text(ported_file().before, encoding="utf-8")
    subprocess.run(
        program,
        check=True,
        input=written.getvalue().encode(),
        cwd=tmp_path,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)},
        capture_output=True,
    )
    assert (tmp_path / "train.py").read_text(encoding="utf-8") == ported_file().after


def test_piped_diff_keeps_the_files_encoding() -> None:
    before = "# coding: latin-1\n# caf\xe9\na = 1\n"
    file = FileReport(path="a.py", status="ported", before=before, after=before + "b = 2\n")
    written = io.BytesIO()
    console = Console(file=io.TextIOWrapper(written, encoding="utf-8"))
    print_diff(TreeReport(root=".", files=(file,)), console)
    assert b"# caf\xe9\n" in written.getvalue()


def test_terminal_diff_is_coloured_with_the_same_content(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    console, written = terminal(monkeypatch)
    print_diff(tree_report(), console)
    assert "\x1b[32m+from npu_bridge" in written.getvalue()
    assert "\x1b[31m-    config.gpu_options" in written.getvalue()
    assert ESCAPE.sub("", written.getvalue()) == "".join(diff_lines(ported_file())) + "\n"


def test_no_color_output_equals_piped_output(monkeypatch: pytest.MonkeyPatch) -> None:
    piped, as_pipe = plain()
    terminal(monkeypatch)
    monkeypatch.setenv("NO_COLOR", "1")
    written = io.StringIO()
    console = Console(file=written, width=40, force_terminal=True)
    for to in (piped, console):
        print_diff(tree_report(), to)
        print_summary(tree_report(), to)
    assert written.getvalue() == as_pipe.getvalue()
    assert "\x1b" not in written.getvalue()


def test_source_cannot_move_the_cursor_or_change_text_direction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    console, written = terminal(monkeypatch)
    print_diff(hostile_report(), console)
    print_summary(hostile_report(), console, next_command=command_to_write(hostile_report()))
    assert not set(ESCAPE.sub("", written.getvalue())) & set("\x1b\u202e")


def test_summary_counts_findings_worst_first() -> None:
    console, written = plain()
    print_summary(tree_report(), console, next_command=command_to_write(tree_report()))
    assert written.getvalue().splitlines() == [
        "files: 4  ported 1 · unchanged 1 · copied 1 · unreadable 1 · files added 1",
        "edits: 4  dropout 1 · gpu-options 1 · imports 1 · session-config 1",
        "findings: 2  feed-dict 1 · queue-input 1",
        "left on purpose: 1  dropout 1",
        "",
        "To do by hand",
        "  blocking  train.py:15:13  queue-input  "
        "tf.train.string_input_producer(names, shuffle=True)",
        "    Queues run on the host; the device cannot hold them.",
        "    → Read with `tf.data`, or set mix_compile_mode=True.",
        "  speed  train.py:25:13  feed-dict  session.run('train')",
        "    Each run waits for the host.",
        "    → Set iterations_per_loop.",
        "",
        "Next: jumar port --precision allow_mix_precision --devices 8 networks/small "
        "--to networks/small-npu",
    ]


def test_omitted_findings_are_counted() -> None:
    console, written = plain()
    print_summary(tree_report(), console, findings_shown=1)
    assert "feed-dict  " not in written.getvalue()
    assert "1 more; write a report to list them all: --report FILE.html" in written.getvalue()


def test_equal_findings_are_shown_once_with_all_locations() -> None:
    files = tuple(replace(ported_file(), path=f"{name}.py") for name in "abcdefghi")
    console, written = plain()
    print_summary(TreeReport(root=".", files=files), console)
    assert written.getvalue().count("Queues run on the host") == 1
    assert "a.py:15:13  queue-input  " in written.getvalue()
    assert (
        "    and 8 more: b.py:15:13, c.py:15:13, d.py:15:13, e.py:15:13, f.py:15:13, g.py:15:13, …"
        in written.getvalue()
    )


@pytest.mark.parametrize(
    ("language", "said"), [("en", "Queues run on the host"), ("zh", "队列算子只能在主机侧运行")]
)
def test_summary_is_in_the_requested_language(language: Language, said: str) -> None:
    console, written = plain()
    print_summary(tree_report(), console, language)
    assert said in written.getvalue()
    assert ("阻塞" in written.getvalue()) == (language == "zh")


@pytest.mark.parametrize(
    ("root", "typed"),
    [
        ("networks/small/", "networks/small --to networks/small-npu"),
        ("train.py", "train.py --to train-npu.py"),
        (".", ". --to ../ported"),
        ("../..", "../.. --to ../ported"),
        ("my tree/$HOME", "'my tree/$HOME' --to 'my tree/$HOME-npu'"),
    ],
)
def test_suggested_next_command_is_runnable(root: str, typed: str) -> None:
    report = TreeReport(root=root, files=(), options=("--mixlist", "ops;rm.json"))
    assert command_to_write(report) == f"jumar port --mixlist 'ops;rm.json' {typed}"


def test_tree_with_nothing_to_do_says_so_in_four_lines() -> None:
    console, written = plain()
    print_summary(TreeReport(root=".", files=()), console)
    assert written.getvalue() == "files: 0\nedits: 0\nfindings: 0\nleft on purpose: 0\n"
