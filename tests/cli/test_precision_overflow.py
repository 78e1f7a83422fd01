"""`jumar precision overflow` names step, layer and op, and head room where nothing overflows."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.in_process import Done, here, settings, train

EMULATED = settings(precision__mode="force_fp16", precision__emulate_fp16="true")
OWN = ("--import", "tests.cli.overflowing_recipe")


def overflow(what: str | Path, *arguments: str | Path, cwd: Path, code: int = 0) -> Done:
    command = ("precision", "overflow", what, *OWN, "--device", "cpu", *arguments)
    return here(*command, cwd=cwd, code=code)


def report(what: str | Path, *arguments: str | Path, cwd: Path, code: int = 0) -> dict[str, Any]:
    done = overflow(what, *arguments, "--json", cwd=cwd, code=code)
    return json.loads(done.out[done.out.index("{\n") :])


def files(folder: Path) -> list[tuple[Path, int]]:
    return sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*"))


def test_overflow_in_the_forward_pass_is_found_in_its_layer(tmp_path: Path) -> None:
    content = report("overflowing", *EMULATED, cwd=tmp_path, code=1)
    assert (content["step"], content["bad"], content["loss_scale"]) == (0, True, None)
    (origin,) = content["origins"]
    assert (origin["layer"], origin["phase"], origin["made_here"]) == (
        "classifier",
        "forward",
        True,
    )
    assert origin["op"].startswith("aten.addmm")
    assert (tmp_path / content["dump"] / "step-00000000" / "rank-0" / "dump.json").is_file()


def test_parameter_beyond_the_range_is_named(tmp_path: Path) -> None:
    weight = settings(model__weight="1e6")
    done = overflow("overflowing", *EMULATED, *weight, cwd=tmp_path, code=1)
    assert "it casts the parameter classifier.weight" in done.out


def test_overflow_by_the_loss_scale_is_found_in_the_backward_pass(tmp_path: Path) -> None:
    scale = settings(precision__loss_scale="fixed", precision__loss_scale__init_loss_scale="3e7")
    done = overflow("small", *EMULATED, *scale, cwd=tmp_path, code=1)
    assert "step 0: not finite, loss scale 3e+07" in done.out
    assert "rank 0, backward: " in done.out
    assert "try: a smaller loss scale" in done.out


def test_without_an_overflow_the_nearest_ops_are_listed(tmp_path: Path) -> None:
    weight = settings(model__weight="1000")
    content = report("overflowing", *weight, "--steps", "2", cwd=tmp_path)
    assert (content["step"], content["bad"], content["origins"]) == (1, False, [])
    rooms = content["head_room"]
    assert [row["doublings"] for row in rooms] == sorted(row["doublings"] for row in rooms)
    nearest = next(row for row in rooms if row["layer"] == "classifier")
    assert nearest["largest"] > 100
    done = overflow("overflowing", *weight, "--steps", "1", "--to", "again", cwd=tmp_path)
    assert "no overflow up to step 0, loss scale none" in done.out
    assert "classifier" in done.out


def test_run_is_resumed_from_its_checkpoint_and_not_modified(tmp_path: Path) -> None:
    train("--run-dir", tmp_path / "run", *settings(training__duration="4it"), cwd=tmp_path)
    before = files(tmp_path / "run")
    changed = settings(training__duration="6it")
    content = report(tmp_path / "run", *changed, "--steps", "9", cwd=tmp_path)
    assert content["step"] == 5
    assert before == sorted(
        (path, path.stat().st_mtime_ns) for path in (tmp_path / "run").rglob("*")
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "0"], "--steps: 0 steps"),
        (["--first", "7"], "--first: step 7 is beyond the end: the run has 2 steps"),
    ],
)
def test_nonexistent_steps_are_refused(tmp_path: Path, arguments: list[str], message: str) -> None:
    assert message in overflow("overflowing", *arguments, cwd=tmp_path, code=2).message
