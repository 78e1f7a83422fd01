import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar.porting.edits import FileReport
from jumar.porting.report.unified import diff_bytes, diff_lines
from tests.porting.report.reports import ported_file

PROGRAMS = [
    pytest.param(
        ("patch", "-p1", "--fuzz=0", "--silent", "--no-backup-if-mismatch"),
        marks=pytest.mark.skipif(not shutil.which("patch"), reason="needs patch"),
        id="patch",
    ),
    pytest.param(
        ("git", "apply", "-p1"),
        marks=pytest.mark.skipif(not shutil.which("git"), reason="needs git"),
        id="git apply",
    ),
]


def applied(
    program: tuple[str, ...], file: FileReport, folder: Path, encoding: str = "utf-8"
) -> bytes:
    """What a program makes of the original with our diff."""
    path = folder / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.before.encode(encoding))
    # Within a checkout `git apply` would leave out what is not of that checkout.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    done = subprocess.run(
        program,
        check=False,
        input=diff_bytes(file),
        capture_output=True,
        cwd=folder,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return path.read_bytes()


def file_of(before: str, after: str, path: str = "a.py") -> FileReport:
    return FileReport(path=path, status="ported", before=before, after=after)


def lines(end: str) -> st.SearchStrategy[str]:
    """Texts that differ little from each other, with the lines that confuse a patch."""
    line = st.sampled_from(
        ["", "a", "b", "c = 1", "--- a/a.py", "+++ b/a.py", "@@ -1 +1 @@", "\\ No newline",
         "-- sign", "diff --git a/a b/a", "\x0c", "x\ry", "完成 \u2028", " ", "\t"]
    )  # fmt: skip
    ending = st.sampled_from(["", end])
    return st.builds(
        lambda many, last: end.join(many) + (last if many and many[-1] else end),
        st.lists(line, min_size=1, max_size=25),
        ending,
    )


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_diff_applied_to_the_original_gives_the_port_byte_for_byte(
    program: tuple[str, ...], end: str, data: st.DataObject, tmp_path: Path
) -> None:
    file = file_of(data.draw(lines(end)), data.draw(lines(end)))
    if file.before == file.after:
        assert list(diff_lines(file)) == []
    else:
        assert applied(program, file, tmp_path) == file.after.encode()


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("a\nb", "a\nc", id="no line end on either side"),
        pytest.param("a\nb\n", "a\nb", id="the last line end goes"),
        pytest.param("a\r\nb", "a\r\nb\r\n", id="a line end of Windows comes"),
        pytest.param("", "a\n", id="from nothing"),
        pytest.param("a\r\nb\nc\r\n", "a\r\nB\nc\r\n", id="mixed line ends"),
        pytest.param("a\rb\r", "a\rc\r", id="line ends of old Macs"),
    ],
)
def test_line_endings_are_kept(
    program: tuple[str, ...], before: str, after: str, tmp_path: Path
) -> None:
    file = file_of(before, after)
    assert applied(program, file, tmp_path) == after.encode()


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "path", ["a b/train it.py", "网络/训练.py", 'quo"te.py', "back\\slash.py", "tab\there.py"]
)
def test_file_names_of_all_kinds_are_supported(
    program: tuple[str, ...], path: str, tmp_path: Path
) -> None:
    file = ported_file(path)
    assert applied(program, file, tmp_path) == file.after.encode()


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    ("encoding", "comment"), [("latin-1", "caf\xe9"), ("gbk", "完成"), ("utf-8", "完成 é")]
)
def test_diff_is_in_the_encoding_of_the_file(
    program: tuple[str, ...], encoding: str, comment: str, tmp_path: Path
) -> None:
    before = f"#!/usr/bin/python\n# -*- coding: {encoding} -*-\n# {comment}\na = 1\n"
    file = file_of(before, before.replace("a = 1", f"a = 2  # {comment}"), path="网络/é.py")
    assert applied(program, file, tmp_path, encoding) == file.after.encode(encoding)


def test_name_cannot_add_lines_to_the_diff() -> None:
    file = file_of("a\n", "b\n", path="a.py\n+++ b/other.py")
    assert sum(line.startswith("+++ ") for line in diff_lines(file)) == 1
    assert next(diff_lines(file)) == '--- "a/a.py\\012+++ b/other.py"\n'


def test_diff_of_a_large_file_has_only_the_lines_around_its_edits() -> None:
    before = [f"value_{number % 700} = {number % 90}\n" for number in range(5000)]
    after = list(before)
    for number in range(250, 5000, 500):
        after[number] = "changed = True\n"
    diff = list(diff_lines(file_of("".join(before), "".join(after))))
    assert len(diff) == 2 + 10 * (1 + 2 + 6)
