import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import SMALL, jumar
from tests.cli.in_process import here, settings, train
from tests.cli.warm import Server, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Starts commands in processes that can be signalled and killed."""
    with running(tmp_path_factory.mktemp("printed")) as server:
        yield server


def test_run_trains_evaluates_and_is_not_run_twice(tmp_path: Path) -> None:
    command = ["train", "alexnet-demo", "--device", "cpu", "--run-dir", "a run", *SMALL]
    command += ["--set", "training.duration=3it", "--set", "checkpoints.every=1it"]
    first = jumar(*command, cwd=tmp_path)
    lines = first.stdout.splitlines()
    assert lines[0].startswith("device: cpu (")
    assert "precision: allow_mix_precision computed in bfloat16" in lines[0]
    assert "batch: 8 = 1 rank x 8" in lines[0]
    assert lines[1].startswith("warning: the learning rate is the recipe's 0.01")
    assert lines[2] == "data: digits (1501 samples) · evaluation: digits (296 samples)"
    assert lines[3].endswith(" parameters, all trained")
    assert lines[4].startswith("first batch: image uint8 8x3x63x63")
    assert "Step   Epoch   Speed   Loss   FinLoss   LR" in lines
    assert sum(line.startswith("step: ") for line in lines) == 3
    results = json.loads((tmp_path / "a run" / "results.json").read_text())
    assert results["state"] == "finished"
    assert results["precision"]["computed"] == "bfloat16"
    assert results["precision"]["substituted"] is True
    again = here(*command, cwd=tmp_path)
    assert "is finished: 3 steps" in again.out
    table = here("evaluate", "a run", "--device", "cpu", cwd=tmp_path).out
    rows = [line.split() for line in table.splitlines()[-2:]]
    assert rows[0] == ["step", "epoch", "top1", "top5", "loss", "checkpoint_time(UTC)"]
    assert rows[1][0] == "3"
    assert float(rows[1][2]) == pytest.approx(results["metrics"]["top1"], abs=1e-3)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_finishes_the_step_saves_and_exits_with_its_code(
    server: Server, tmp_path: Path, number: int, code: int
) -> None:
    command = ["train", "alexnet-demo", "--device", "cpu", "--run-dir", "r", *SMALL]
    child = server.start(*command, "--set", "training.duration=500it", cwd=tmp_path)
    child.wait_for("step: ")
    child.send_signal(number)
    out, err = child.communicate()
    assert child.returncode == code, out + err
    assert "Traceback" not in err
    assert "Resume with: jumar train --resume --run-dir r --device cpu\n" in out
    step = json.loads((tmp_path / "r" / "results.json").read_text())["steps"]
    assert (tmp_path / "r" / "checkpoints" / f"step-{step:08d}").is_dir()
    resumed = here(
        "train",
        "--resume",
        "--run-dir",
        "r",
        "--device",
        "cpu",
        "--set",
        f"training.duration={step + 2}it",
        cwd=tmp_path,
    )
    assert f"resuming from step {step}" in resumed.out
    records = [json.loads(line) for line in (tmp_path / "r" / "metrics.jsonl").open()]
    steps = [record["step"] for record in records if record["kind"] == "train"]
    assert steps == list(range(1, step + 3))


def test_killed_run_resumes_with_the_same_command_and_ends_as_if_uninterrupted(
    server: Server,
    tmp_path: Path,
) -> None:
    command = ["train", "alexnet-demo", "--device", "cpu", *SMALL]
    command += ["--set", "training.duration=6it", "--set", "checkpoints.every=2it"]
    here(*command, "--run-dir", "whole", cwd=tmp_path)
    child = server.start(*command, "--run-dir", "killed", cwd=tmp_path)
    child.wait_for("step:      4")
    child.kill()
    here(*command, "--run-dir", "killed", cwd=tmp_path)
    last = "checkpoints/step-00000006/model.safetensors"
    assert (tmp_path / "whole" / last).read_bytes() == (tmp_path / "killed" / last).read_bytes()


def test_dry_run_reports_the_resources_needed_and_leaves_no_files(tmp_path: Path) -> None:
    done = here("train", "alexnet-demo", "--device", "cpu", "--dry-run", *SMALL, cwd=tmp_path)
    assert "dry run: data, recipe, weights, disk space and one step are fine" in done.out
    assert "steps to go" in done.out
    assert list(tmp_path.iterdir()) == []


MISTAKES = {
    "an unknown recipe": (["alexnett"], "Did you mean 'alexnet'?"),
    "an unknown field": (["alexnet", "--set", "optimizer.lr=1"], "unknown field 'optimizer.lr'"),
    "a wrong type": (["alexnet", "--set", "data.batch_size=many"], "takes a whole number"),
    "a value out of range": (["alexnet", "--set", "model.dropout=2"], "Allowed: 0 to 0.99"),
    "no recipe": ([], "the recipe is missing"),
    "a missing path": (["alexnet-demo", "--set", "data.path=nowhere"], "nowhere"),
    "a missing device": (["alexnet-demo", "--device", "npu"], "npu"),
    "no run to resume": (
        ["alexnet-demo", "--resume", "--run-dir", "x"],
        "there is no such run directory: x",
    ),
    "a missing module": (["alexnet-demo", "--import", "my_nothing"], "no module 'my_nothing'"),
    "an unknown mode": (["alexnet-demo", "--set", "precision.mode=fp15"], "fp15"),
    "too small an image": (["alexnet-demo", "--set", "data.image_size=20"], "63"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_exit_with_2_and_leave_no_files(tmp_path: Path, name: str) -> None:
    arguments, message = MISTAKES[name]
    device = [] if "--device" in arguments else ["--device", "cpu"]
    done = here("train", *arguments, *device, cwd=tmp_path, code=2)
    assert message in done.err + done.out
    assert not (tmp_path / "runs").exists()


def test_unknown_option_is_named(tmp_path: Path) -> None:
    assert "--sett" in jumar("train", "alexnet-demo", "--sett", "x=1", cwd=tmp_path, code=2).stderr


def test_other_settings_in_the_same_run_directory_are_refused(tmp_path: Path) -> None:
    train("--run-dir", "r", *settings(training__duration="1it"), cwd=tmp_path)
    done = train("--run-dir", "r", *settings(seed=2), cwd=tmp_path, code=2)
    assert "started with seed=1, not 2" in done.err


@pytest.mark.parametrize(
    "field", ["training.duration", "training.evaluate_every", "checkpoints.every"]
)
def test_wrong_duration_is_reported_before_anything_is_printed(tmp_path: Path, field: str) -> None:
    done = train("--set", f"{field}=3x", cwd=tmp_path, code=2)
    assert f"{field}: '3x' is not a duration" in done.message
    assert done.out == ""
    assert not list(tmp_path.iterdir())


def test_folder_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "model.py").touch()
    done = train("--run-dir", "code", cwd=tmp_path, code=2)
    assert "--run-dir: 'code' is not empty and not a run: it contains model.py" in done.message
    assert [path.name for path in (tmp_path / "code").iterdir()] == ["model.py"]
