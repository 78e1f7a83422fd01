"""`jumar explain` at the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import environment
from tests.cli.in_process import any_end, here

OUT_OF_MEMORY = (
    "[rank3]: Traceback (most recent call last):\n"
    '[rank3]:   File "/job/train.py", line 12, in <module>\n'
    "[rank3]: RuntimeError: NPU out of memory. Tried to allocate 5.03 GiB (NPU 3; 60.96 GiB total\n"
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "job.log"
    path.write_text(OUT_OF_MEMORY)
    return path


def test_first_cause_is_reported_with_place_advice_and_evidence(log: Path, tmp_path: Path) -> None:
    out = here("explain", "job.log", cwd=tmp_path).out
    assert "First cause: The card's memory is exhausted. [npu-out-of-memory]" in out
    assert "where: job.log:3 · rank 3 · device 3 · /job/train.py:12" in out
    assert "try first: Compare allocated and total" in out
    assert "job.log:3: [rank3]: RuntimeError: NPU out of memory." in out
    assert "child-failed" in out.partition("Consequences and later")[2]


def test_explanation_is_available_in_chinese(log: Path, tmp_path: Path) -> None:
    out = here("explain", "job.log", "--lang", "zh", cwd=tmp_path).out
    assert "首要原因：NPU 显存耗尽。 [npu-out-of-memory]" in out
    assert "首先尝试：" in out


def test_json_output_is_complete(log: Path, tmp_path: Path) -> None:
    answer = json.loads(here("explain", "job.log", "--json", cwd=tmp_path).out)
    (candidate,) = answer["candidates"]
    assert candidate["fault"] == "npu-out-of-memory"
    assert candidate["evidence"][0]["rank"] == 3
    assert candidate["evidence"][0]["frame"] == "/job/train.py:12"
    assert candidate["sources"]
    assert [each["fault"] for each in answer["collateral"]] == ["child-failed"]
    assert answer["lines"] == 4


def test_log_without_known_causes_shows_its_first_errors(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text("all well\nthe flux failed to converge\n")
    out = here("explain", "job.log", cwd=tmp_path, code=1).out
    assert "No known fault was recognised." in out
    assert "job.log:2: the flux failed to converge" in out


def test_log_without_errors_says_so(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text("all well\n")
    assert "no line looks like an error" in here("explain", "job.log", cwd=tmp_path, code=1).out


def test_no_input_and_missing_input_are_errors(tmp_path: Path) -> None:
    assert "a log is missing" in here("explain", cwd=tmp_path, code=2).message
    assert "there is no such file" in here("explain", "no.log", cwd=tmp_path, code=2).message


def test_escape_sequences_in_a_log_do_not_reach_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b[2J\x1b]0;x\x07RuntimeError: CUDA out of memory.\u202e\x9b2J [red]x[/red]\n"
    (tmp_path / "job.log").write_text(evil, encoding="utf-8")
    for options in ([], ["--lang", "zh"], ["--json"]):
        out = any_end("explain", "job.log", *options, cwd=tmp_path).out
        assert not set(out) & set("\x1b\x07\x9b\u202e")
    assert "\\x1b[2J" in any_end("explain", "job.log", cwd=tmp_path).out
    answer = json.loads(any_end("explain", "job.log", "--json", cwd=tmp_path).out)
    assert answer["candidates"][0]["evidence"][0]["text"] == evil.rstrip("\n")


def test_hyphen_means_standard_input_and_a_wrong_option_is_named(tmp_path: Path) -> None:
    done = jumar_reading(OUT_OF_MEMORY, "explain", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "where: stdin:3" in done.stdout
    assert "Read: 1 file with 4 lines, rank 3" in done.stdout
    error = here("explain", "--lagn", "zh", "-", cwd=tmp_path, code=2).message
    assert "unknown option '--lagn'" in error


def jumar_reading(text: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `jumar` with something on its standard input."""
    return subprocess.run(
        [sys.executable, "-m", "jumar", *arguments],
        cwd=cwd,
        env=environment(),
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
