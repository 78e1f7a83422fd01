"""`jumar precision diverge` names the first step and op at which two runs differ."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from jumar.training.checkpoint import RECORD
from jumar.training.checkpoint_files import sealed
from jumar.training.checkpoint_parts import write_part
from jumar.training.run_directory import read_json, write_json
from tests.cli.in_process import Done, any_end, here, settings, train

OWN = ("--import", "tests.cli.small_recipe", "--device", "cpu")


def diverge(*arguments: str | Path, cwd: Path, code: int = 1) -> Done:
    return here("precision", "diverge", *arguments, *OWN, cwd=cwd, code=code)


def report(*arguments: str | Path, cwd: Path, code: int = 1) -> dict[str, Any]:
    content = json.loads(diverge(*arguments, "--json", cwd=cwd, code=code).out)
    for count in content["replays"].values():
        assert count <= math.log2(8) + 2
    return content


def changed_from(run: Path, other: Path, step: int, *options: str) -> None:
    """A copy of a run that went on from a checkpoint with other settings."""
    shutil.copytree(run, other)
    for folder in (other / "checkpoints").iterdir():
        if int(folder.name.removeprefix("step-")) > step:
            shutil.rmtree(folder)
    (other / "results.json").unlink()
    content = read_json(other / "recipe.json")
    for option in options[1::2]:
        field, _, value = option.partition("=")
        *path, last = field.split(".")
        place = content["settings"]
        for name in path:
            place = place[name]
        place[last] = json.loads(value)
    write_json(other / "recipe.json", content)
    here("train", "--resume", "--run-dir", other, *OWN, cwd=run.parent)


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run `a` of ten steps with checkpoints of steps 1, 2 and 10, and others beside it."""
    folder = tmp_path_factory.mktemp("runs")
    steps = settings(training__duration="10it", checkpoints__every="2it")
    train("--run-dir", "a", *steps, cwd=folder)
    for step in (4, 6, 8):
        shutil.rmtree(folder / "a" / "checkpoints" / f"step-{step:08d}")
    shutil.copytree(folder / "a", folder / "same")
    low = settings(precision__mode='"allow_mix_precision_bf16"')
    changed_from(folder / "a", folder / "low", 2, *low)
    return folder


def test_equal_runs_need_no_replay(place: Path) -> None:
    content = report("a", "same", cwd=place, code=0)
    assert (content["equal"], content["equal_steps"]) == (True, [2, 10])
    assert content["replays"] == {"A": 0, "B": 0}
    assert "no divergence" in diverge("a", "same", cwd=place, code=0).out


def test_low_precision_starting_midway_is_located_to_step_and_op(
    place: Path, tmp_path: Path
) -> None:
    before = {name: files(place / name) for name in ("a", "low")}
    content = report("a", "low", "--to", tmp_path / "d", cwd=place)
    assert (content["equal_steps"], content["unequal_checkpoint"]) == ([2], 10)
    assert content["settings"] == [
        {"field": "precision.mode", "a": "must_keep_origin_dtype", "b": "allow_mix_precision_bf16"}
    ]
    assert content["step"] == 2
    op = content["op"]
    assert (op["layer"], op["op"], op["phase"]) == (
        "body.0",
        "aten.convolution.default",
        "forward",
    )
    assert not op["inputs_equal"]
    assert "_to_copy" in op["only_in_one"]
    errors = [value["relative_error"] for value in content["values"] if value["role"] == "output"]
    assert 1e-4 < errors[0] < 0.05
    assert content["unlike_own_checkpoint"] == {}
    assert content["replays"] == {"A": 3, "B": 3}
    assert before == {name: files(place / name) for name in ("a", "low")}
    done = any_end("precision", "compare", tmp_path / "d" / "A", tmp_path / "d" / "B", cwd=place)
    assert "first unequal by hashes: body.0: aten.convolution.default forward" in done.out


def test_setting_that_makes_the_difference_is_found_by_changing_it_back(place: Path) -> None:
    back = ("--set-b", "precision.mode=must_keep_origin_dtype")
    content = report("a", "low", *back, "--to", "back", cwd=place, code=0)
    assert (content["equal"], content["step"]) == (True, None)
    assert content["replays"] == {"A": 1, "B": 1}


def test_checkpoint_changed_by_one_bit_is_distinguished_from_a_divergence(place: Path) -> None:
    shutil.copytree(place / "a", place / "bit")
    folder = place / "bit" / "checkpoints" / "step-00000010"
    tensors = load_file(folder / "model.safetensors")
    tensors["classifier.bias"].view(torch.int32)[0] ^= 1
    record = read_json(folder / RECORD)
    for name, mark in write_part(folder, "model.safetensors", tensors).items():
        record["files"][name] = vars(mark)
    write_json(folder / RECORD, sealed({k: v for k, v in record.items() if k != "crc32c"}))
    done = diverge("a", "bit", cwd=place)
    assert "B's replay does not reproduce its own checkpoint of step 10: weights/class" in done.out
    assert "A's replay" not in done.out
    assert "both replays are equal" in done.out
    assert "first unequal" not in done.out
    assert "--hashes FILE --first 2 --steps 8" in done.out


def test_interval_of_one_step_takes_two_replays_and_may_differ_in_the_update(
    place: Path,
) -> None:
    steps = settings(training__duration="2it", checkpoints__every="1it")
    train("--run-dir", "short", *steps, cwd=place)
    faster = settings(optimizer__learning_rate="0.03")
    changed_from(place / "short", place / "faster", 1, *faster)
    content = report("short", "faster", "--to", "one", cwd=place)
    assert content["step"] == 1
    assert content["op"]["phase"] == "update"
    assert content["op"]["inputs_equal"] is True
    assert "change 0" in content["op"]["values"]
    assert {"weights", "counters"} <= set(content["parts"])
    assert content["replays"] == {"A": 2, "B": 2}


def test_non_deterministic_run_is_reported_as_such(tmp_path: Path) -> None:
    own = ("--import", "tests.cli.unrepeatable_recipe", "--device", "cpu")
    steps = settings(training__duration="3it")
    for name in "ab":
        here("train", "unrepeatable", *own, "--run-dir", name, *steps, cwd=tmp_path)
    done = here("precision", "diverge", "a", "b", *own, cwd=tmp_path, code=1)
    assert "A is not reproducible" in done.out
    assert "A's replay does not reproduce its own checkpoint of step 3" in done.out


def test_hashes_of_two_machines_are_compared_as_files(place: Path) -> None:
    span = ("--first", "2", "--steps", "8")
    for name, chosen in (("a", ()), ("low", span)):
        done = diverge(name, "--hashes", f"{name}.json", *chosen, cwd=place, code=0)
        assert f"8 steps hashed: {name}.json" in done.out
    content = report("a.json", "low.json", cwd=place)
    assert (content["step"], content["op"]) == (2, None)
    done = diverge("a.json", "low.json", cwd=place)
    assert "jumar precision dump RUN --digests --steps 2" in done.out
    chosen = ("--first", "5", "--steps", "2", "--hashes", "some.json")
    assert "2 steps hashed" in diverge("a", *chosen, cwd=place, code=0).out
    assert report("a.json", "some.json", cwd=place, code=0)["equal_steps"] == [6, 7]


def test_runs_that_cannot_be_equal_are_refused(place: Path) -> None:
    steps = {"training__duration": "4it", "checkpoints__every": "2it"}
    train("--run-dir", "shorter", *settings(**steps), cwd=place)
    train("--run-dir", "seed", *settings(seed=9, **steps), cwd=place)
    train("--run-dir", "odd", *settings(training__duration="1it"), cwd=place)
    shutil.copytree(place / "a", place / "threes")
    recipe = read_json(place / "threes" / "recipe.json")
    recipe["settings"]["data"]["batch_size"] = 3
    write_json(place / "threes" / "recipe.json", recipe)
    (place / "folder").mkdir()
    (place / "no.json").write_text("{}")
    for arguments, message in (
        (["a", "nowhere"], "there is no such run directory"),
        (["a", "folder"], "'folder' is not a run directory"),
        (["a", "threes"], "4 samples per step, which is not a multiple of its batch size 3"),
        (["a"], "the second run is missing"),
        (["a", "shorter"], "they have 10 and 4 steps"),
        (["shorter", "seed"], "they train on different samples: the seed is 1 and 9"),
        (["a", "odd"], "they have no checkpoint of the same step: 2, 10; 1"),
        (["a", "same", "--hashes", "x.json"], "--hashes applies to a single run"),
        (["a.json", "no.json"], "no.json: has no hashes of steps"),
        (["a", "--hashes", "no.json"], "no.json: already exists"),
        (["a", "low", "--to", "folder"], "folder: already exists"),
        (["a", "low", "--set-b", "modell=3"], "modell"),
        (["a", "--hashes", "y.json", "--first", "10"], "step 10 is beyond the end"),
    ):
        assert message in diverge(*arguments, cwd=place, code=2).message
