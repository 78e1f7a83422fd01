"""Runs with damaged files: what the commands say, and what they go on with."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.in_process import any_end, here, settings, train


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six steps, of which 2, 4 and 6 are kept and scored."""
    place = tmp_path_factory.mktemp("whole")
    often = settings(
        training__duration="6it",
        training__evaluate_every="2it",
        checkpoints__every="2it",
        training__ema_decay=0.5,
    )
    train("--run-dir", "run", *often, cwd=place)
    return place / "run"


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def weights(run: Path) -> Path:
    return run / "checkpoints" / "step-00000006" / "model.safetensors"


def test_damaged_checkpoint_is_named_and_the_others_are_scored(run: Path) -> None:
    flip(weights(run))
    done = here("evaluate", "run", "--device", "cpu", cwd=run.parent)
    assert f"skipping damaged checkpoint: {weights(Path('run'))} is damaged" in done.out
    rows = [line.split()[0] for line in done.out.splitlines() if line.startswith("  ")]
    assert rows[rows.index("step") :] == ["step", "2", "4"]
    done = here("evaluate", "run", "--checkpoint", "6", cwd=run.parent, code=2)
    assert str(weights(Path("run"))) in done.err


@pytest.mark.parametrize("name", ["optimizer.safetensors", "state.json"])
def test_run_resumes_from_the_newest_intact_checkpoint_with_equal_results(
    run: Path, whole: Path, name: str
) -> None:
    flip(run / "checkpoints" / "step-00000006" / name)
    (run / "results.json").unlink()
    done = here("train", "--resume", "--run-dir", "run", "--device", "cpu", cwd=run.parent)
    assert f"{name} is damaged" in done.out
    assert "resuming from step 4" in done.out
    assert "set aside: run/checkpoints/damaged-step-00000006" in done.out
    assert weights(run).read_bytes() == weights(whole).read_bytes()
    names = sorted(path.name for path in (run / "checkpoints").iterdir())
    assert names == ["damaged-step-00000006", *(f"step-0000000{step}" for step in (2, 4, 6))]


def test_finished_run_names_a_damaged_newest_checkpoint(run: Path) -> None:
    flip(weights(run))
    done = here("train", "--resume", "--run-dir", "run", "--device", "cpu", cwd=run.parent)
    assert f"skipping damaged checkpoint: {weights(Path('run'))} is damaged" in done.out
    assert "'run' is finished: 6 steps" in done.out


def test_finished_run_without_intact_checkpoint_is_an_error_that_says_so(run: Path) -> None:
    for step in (2, 4, 6):
        flip(run / "checkpoints" / f"step-0000000{step}" / "model.safetensors")
    done = here("train", "--resume", "--run-dir", "run", "--device", "cpu", cwd=run.parent, code=2)
    assert "'run' is finished: 6 steps" in done.err
    assert "no checkpoint in 'run/checkpoints' is intact" in done.err
    assert "train again into another --run-dir" in done.err
    assert "'run' is finished" not in done.out


def test_finished_run_whose_checkpoints_were_deleted_says_so(run: Path) -> None:
    shutil.rmtree(run / "checkpoints")
    done = here("train", "--resume", "--run-dir", "run", "--device", "cpu", cwd=run.parent)
    assert "'run' is finished: 6 steps" in done.out
    assert "it has no checkpoint" in done.out


def test_inspecting_a_run_moves_nothing(run: Path) -> None:
    flip(weights(run))
    (run / "results.json").unlink()
    before = sorted(run.rglob("*"))
    here("train", "--resume", "--run-dir", "run", "--dry-run", cwd=run.parent)
    here("evaluate", "run", cwd=run.parent)
    here("weights", "show", "run", cwd=run.parent)
    assert sorted(path for path in run.rglob("*") if path.name != ".lock") == [
        path for path in before if path.name != ".lock"
    ]


def test_transfer_takes_the_newest_intact_weights_and_refuses_explicit_damaged_ones(
    run: Path,
) -> None:
    flip(weights(run))
    place = weights(Path("run"))
    for source, code in (("run", 0), (place.parent, 2), (place, 2)):
        start = settings(transfer__start_from=source)
        done = train("--dry-run", "--run-dir", "new", *start, cwd=run.parent, code=code)
        assert str(place) in done.err
        assert ("step-00000004" in done.out) == (code == 0)


def test_no_command_resumes_if_all_checkpoints_are_damaged(run: Path) -> None:
    for file in run.glob("checkpoints/*/model.safetensors"):
        flip(file)
    (run / "results.json").unlink()
    for command in (("train", "--resume", "--run-dir", "run"), ("evaluate", "run")):
        done = here(*command, "--device", "cpu", cwd=run.parent, code=2)
        assert "no checkpoint in 'run/checkpoints' is intact" in done.err


def put_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


WRITES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "nulls": lambda path: path.write_bytes(b"\0" * 100),
    "not UTF-8": lambda path: path.write_bytes(b'{"recipe": "\xff\xfe"}'),
    "a list": lambda path: path.write_bytes(b"[1, 2]"),
    "too deep": lambda path: path.write_bytes(b"[" * 100_000),
    "no fields": lambda path: path.write_bytes(b"{}"),
    "wrong types": lambda path: path.write_text(
        json.dumps(dict.fromkeys(json.loads(path.read_text().splitlines()[-1]), "5"))
        if path.suffix == ".jsonl"
        else json.dumps(dict.fromkeys(json.loads(path.read_text()), 5))
    ),
    "a folder": put_folder,
}
COMMANDS = (
    ("evaluate", "run", "--device", "cpu"),
    ("evaluate", "run", "--checkpoint", "best", "--device", "cpu"),
    ("train", "--resume", "--run-dir", "run", "--device", "cpu"),
    ("profile", "run", "--device", "cpu", "--steps", "1"),
    ("weights", "export", "run", "--to", "tf1"),
)


@pytest.mark.parametrize("damage", WRITES.values(), ids=WRITES.keys())
def test_damaged_recipe_error_names_the_file(run: Path, damage: Callable[[Path], object]) -> None:
    damage(run / "recipe.json")
    for command in COMMANDS:
        done = here(*command, cwd=run.parent, code=2)
        assert "recipe.json" in done.err or "there is no run in 'run'" in done.err


@pytest.mark.parametrize("damage", WRITES.values(), ids=WRITES.keys())
@pytest.mark.parametrize("name", ["results.json", "environment.json", "metrics.jsonl"])
def test_other_damaged_files_never_cause_a_traceback(
    run: Path, name: str, damage: Callable[[Path], object]
) -> None:
    """Each file that a command needs is named; which those are is the command's affair."""
    damage(run / name)
    for command in (*COMMANDS[1:3], ("report", "run")):
        done = any_end(*command, cwd=run.parent)
        assert done.code in (0, 2), done
        assert done.code == 0 or name in done.err


@pytest.mark.parametrize(
    ("imports", "message"),
    [
        ("my_module", "'imports' must be a list"),
        (None, "'imports' must be a list"),
        ([5], "'imports' contains 5, which is not a module name"),
        (["a; rm -r x"], "'imports' contains 'a; rm -r x'"),
        (["../up"], "'imports' contains '../up'"),
        (["\u001b[2J"], r"'imports' contains '\x1b[2J'"),
    ],
)
def test_imports_that_are_not_module_names_are_refused(
    run: Path, imports: object, message: str
) -> None:
    stored = json.loads((run / "recipe.json").read_text())
    (run / "recipe.json").write_text(json.dumps({**stored, "imports": imports}))
    assert message in here("evaluate", "run", cwd=run.parent, code=2).err


def test_null_byte_in_a_recipe_path_is_an_error_with_the_field(run: Path) -> None:
    stored = json.loads((run / "recipe.json").read_text())
    stored["settings"]["data"]["path"] = "pictures\0"
    (run / "recipe.json").write_text(json.dumps(stored))
    done = here("evaluate", "run", cwd=run.parent, code=2)
    assert "data.path" in done.err


def test_if_all_updates_are_skipped_the_run_ends_in_an_error_after_the_results(
    tmp_path: Path,
) -> None:
    much = settings(
        training__duration="4it",
        precision__mode="allow_mix_precision",
        precision__loss_scale__kind="fixed",
        precision__loss_scale__init_loss_scale=1e30,
        precision__emulate_fp16=True,
    )
    done = train("--run-dir", "run", *much, cwd=tmp_path, code=2)
    assert "warning: the last 3 updates of 'classification' were skipped" in done.out
    assert "precision.loss_scale: 'classification' was never updated in 4 steps" in done.err
    assert "finished" not in done.out
    assert json.loads((tmp_path / "run" / "results.json").read_text())["state"] == "failed"
    again = here("train", "--resume", "--run-dir", "run", "--device", "cpu", cwd=tmp_path, code=2)
    assert "was never updated" in again.err
