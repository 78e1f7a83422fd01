"""`python benchmarks/accelerator.py --small` on a CPU: every part, with numbers."""

import json
import math
import os
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from accelerator import main
from on_accelerator.parts import PARTS

CHECKOUT = Path(__file__).resolve().parents[2]
NUMBERS = ("rate", "samples_s", "ms", "steps_s", "times_bare", "times_plain")
SHARES = ("of_peak", "of_roofline", "of_best_peer")


def call(*arguments: str, cwd: Path = CHECKOUT) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, without anything installed on the path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, str(CHECKOUT / "benchmarks" / "accelerator.py"), *arguments],
        cwd=cwd,
        env={**environment, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )


class Small:
    """A finished small call.

    Attributes:
        done: The process.
        out: Its output folder.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self.arguments = ("--device", "cpu", "--small", "--minutes", "15", "--out", str(out))
        self.done = call(*self.arguments)
        self.parts = json.loads((out / "results.json").read_text())["parts"]

    def records(self, part: str) -> list[dict[str, Any]]:
        """The records of a part."""
        return self.parts[part]

    def rows(self, part: str) -> list[dict[str, Any]]:
        """All rows of a part."""
        return [row for record in self.records(part) for row in record["rows"]]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return Small(tmp_path_factory.mktemp("small") / "out")


@pytest.mark.slow
def test_every_part_is_measured_and_missing_parts_are_named(small: Small) -> None:
    assert small.done.returncode == 0, small.done.stdout + small.done.stderr
    assert list(small.parts) == [part.name for part in PARTS]
    for name in small.parts:
        assert "measured" in [record["state"] for record in small.records(name)], name
    odd = {
        record["measurement"]: record["reason"]
        for name in small.parts
        for record in small.records(name)
        if record["state"] != "measured"
    }
    assert odd == {
        "ViDeNN at sigma 25": "needs denoise/bsds500-train200.zip in the folder given with --data",
        "BigGAN's cats": "needs cats-dogs-128 in the folder given with --data",
    }


@pytest.mark.slow
def test_rows_hold_real_numbers(small: Small) -> None:
    rows = [row for name in small.parts for row in small.rows(name)]
    numbers = [row[name] for row in rows for name in NUMBERS if name in row]
    assert len(numbers) > 30
    assert all(math.isfinite(number) and number > 0 for number in numbers)
    for row in rows:
        if "samples_s" in row and "ms" in row:
            assert row["samples_s"] == pytest.approx(1000 * row["batch"] / row["ms"])


@pytest.mark.slow
def test_classifiers_and_bert_are_compared_with_peers(small: Small) -> None:
    for part, peer in (("classifiers", "by hand"), ("pretraining", "transformers")):
        rows = small.rows(part)
        of = {row["of"] for row in rows if "of" in row}
        assert {"jumar", peer} <= of
        shares = [row for row in rows if row.get("of") == "jumar"]
        for row in shares:
            assert 0 < row["of_peak"] < 1
            assert row["of_peak"] < row["of_roofline"]
        if peer == "by hand" or find_spec(peer):
            assert any(row["of_best_peer"] is not None for row in shares)


@pytest.mark.slow
def test_time_waiting_for_real_images_is_reported_per_step(small: Small) -> None:
    (row,) = [row for row in small.rows("classifiers") if "ms waiting for data" in row]
    assert 0 <= row["ms waiting for data"] < row["ms"]


@pytest.mark.slow
def test_each_device_test_gets_a_row(small: Small) -> None:
    rows = small.rows("tests")
    assert "test_dropout_mask_matches_the_cpu[dtype0-0.1]" in {row["test"] for row in rows}
    assert {row["outcome"] for row in rows} == {"passed"}


@pytest.mark.slow
def test_profiles_are_packed_for_download(small: Small) -> None:
    with zipfile.ZipFile(small.out / "profiles.zip") as packed:
        names = {name.partition("/")[2] for name in packed.namelist()}
    assert {"trace.json.gz", "environment.json", "op_summary.csv"} <= names
    brought = [path for path in small.out.iterdir() if path.is_file()]
    assert len(brought) <= 8
    assert sum(path.stat().st_size for path in brought) < 16 << 20


@pytest.mark.slow
def test_report_has_a_table_per_part_with_device_date_and_command(small: Small) -> None:
    report = (small.out / "results.md").read_text()
    headings = [line[3:] for line in report.splitlines() if line.startswith("## ")]
    assert headings == [part.title for part in PARTS]
    program = shlex.quote(str(CHECKOUT / "benchmarks" / "accelerator.py"))
    assert f"$ python {program} --device cpu" in report
    assert report.splitlines()[2].startswith("cpu: ")


@pytest.mark.slow
def test_repeated_command_measures_nothing_twice(small: Small) -> None:
    before = (small.out / "rows.jsonl").read_text().splitlines()
    again = call(*small.arguments)
    assert again.returncode == 0
    added = (small.out / "rows.jsonl").read_text().splitlines()[len(before) :]
    assert {json.loads(line)["state"] for line in added} == {"missing"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--device", "tpu"], "unknown device 'tpu'"),
        (["--device", "npu:99"], "--device: "),
        (["--device", "cpu", "--part", "classifier"], "Did you mean 'classifiers'?"),
        (["--device", "cpu", "--minutes", "0"], "--minutes: cannot be 0"),
        (["--device", "cpu", "--data", "nowhere"], "'nowhere' is not a folder"),
        (["--device", "cpu", "--out", "taken"], "'taken' is not a folder"),
    ],
)
def test_user_errors_exit_with_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: Sequence[str],
    said: str,
) -> None:
    (tmp_path / "taken").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["accelerator.py", *arguments])
    assert main() == 2
    assert said in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*.jsonl")] == []
