"""`jumar precision noise` ranks ops by what their rounding does, and leaves a run as it is."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.in_process import Done, here, settings, train

OWN = ("--import", "tests.cli.small_recipe", "--device", "cpu")


def noise(what: str | Path, *arguments: str | Path, cwd: Path, code: int = 0) -> Done:
    return here("precision", "noise", what, *OWN, *arguments, cwd=cwd, code=code)


def report(what: str | Path, *arguments: str | Path, cwd: Path) -> dict[str, Any]:
    return json.loads(noise(what, *arguments, "--json", cwd=cwd).out)


def test_recipe_is_ranked_and_written_as_table_and_page(tmp_path: Path) -> None:
    files = ("--to", tmp_path / "rows.csv", "--page", tmp_path / "page.html")
    done = noise("small", *files, "--top", "3", cwd=tmp_path)
    assert "noise of bfloat16 in everything at once moves the gradients by" in done.out
    assert "other rows with smaller changes" in done.out
    assert "written: " in done.err
    rows = list(csv.DictReader((tmp_path / "rows.csv").open()))
    assert {"body.0", "body.1", "classifier"} <= {row["layer"] for row in rows}
    assert {row["phase"] for row in rows} == {"forward", "backward"}
    largest = max(rows, key=lambda row: float(row["gradient_change"]))
    assert largest["op"] in done.out
    page = (tmp_path / "page.html").read_text()
    assert page.count("<circle") == len(rows) + 2
    assert "<script" not in page
    assert "aten.convolution.default" in page
    assert not list(tmp_path.glob("dumps*"))


def test_run_resumes_from_its_checkpoint_and_is_not_modified(tmp_path: Path) -> None:
    train("--run-dir", "r", *settings(training__duration="4it"), cwd=tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / "r").rglob("*") if path.is_file()}
    longer = settings(training__duration="6it")
    first = report("r", *longer, "--by", "layer", cwd=tmp_path)
    assert first["step"] == 4
    later = report("r", *longer, "--step", "5", "--by", "layer", cwd=tmp_path)
    assert later["step"] == 5
    assert later["loss"] != first["loss"]
    assert first["floor"] == {"loss_change": 0.0, "gradient_change": 0.0}
    after = {path: path.read_bytes() for path in (tmp_path / "r").rglob("*") if path.is_file()}
    assert after == before


def test_dtype_is_that_of_the_mode_and_step_that_of_float32(tmp_path: Path) -> None:
    plain = report("small", "--by", "op", cwd=tmp_path)
    mixed = settings(precision__mode="allow_mix_precision", precision__loss_scale="fixed")
    half = report("small", "--by", "op", *mixed, cwd=tmp_path)
    assert (plain["dtype"], half["dtype"]) == ("bfloat16", "float16")
    assert half["loss"] == plain["loss"]
    assert half["gradient_norm"] == plain["gradient_norm"]
    assert report("small", "--by", "op", "--dtype", "float16", cwd=tmp_path)["rows"] == half["rows"]


def test_partial_batches_give_the_same_gradients(tmp_path: Path) -> None:
    network = settings(model__width="2")
    whole = report("small", *network, "--by", "layer", cwd=tmp_path)
    parts = settings(training__micro_batch_size="2")
    halves = report("small", *network, *parts, "--by", "layer", cwd=tmp_path)
    assert {row["layer"] for row in halves["rows"]} == {row["layer"] for row in whole["rows"]}
    assert halves["floor"] == {"loss_change": 0.0, "gradient_change": 0.0}


def test_run_started_from_other_weights_is_measured_with_them(tmp_path: Path) -> None:
    train("--run-dir", "r", *settings(training__duration="4it"), cwd=tmp_path)
    start = settings(transfer__start_from="r", training__duration="1it")
    train("--run-dir", "t", *start, cwd=tmp_path)
    (line,) = (tmp_path / "t" / "metrics.jsonl").read_text().splitlines()[:1]
    trained = json.loads(line)["loss"]
    assert report("small", *start, "--by", "layer", cwd=tmp_path)["loss"] == pytest.approx(trained)
    assert report("small", "--by", "layer", cwd=tmp_path)["loss"] != pytest.approx(trained)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["small", "--step", "2"], "step 2 is beyond the end: the run has 2 steps"),
        (["small", "--dtype", "fp8"], "unknown dtype 'fp8'"),
        (["small", "--by", "weight"], "unknown unit 'weight'"),
        (["small", "--top", "-1"], "cannot be -1"),
        (["smal"], "unknown recipe 'smal'"),
    ],
)
def test_user_errors_are_a_single_message(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    assert message in noise(arguments[0], *arguments[1:], cwd=tmp_path, code=2).message
