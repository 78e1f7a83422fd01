"""Commands under torchrun: the ranks work together, or the first one works alone."""

import json
import shlex
import signal
from pathlib import Path

import numpy as np
import pytest

from jumar.cli.several_ranks import takes_part
from jumar.training.parallel.ranks import Ranks
from jumar.training.resume_hint import resume_hint
from jumar.training.run_directory import RunDirectory
from tests.cli.command_line import on_two_ranks, start_ranks
from tests.cli.in_process import here, settings
from tests.data.photographs import png
from tests.data.pictures import write_files

TORCHELASTIC = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_MAX_RESTARTS", "MASTER_ADDR", "MASTER_PORT")


@pytest.mark.slow
def test_images_are_denoised_once_by_the_first_rank(tmp_path: Path) -> None:
    inverse = ("inverse", "--import", "tests.cli.small_denoisers", "--device", "cpu")
    here("train", *inverse, "--run-dir", "run", cwd=tmp_path)
    flat = {f"{n}.png": png(np.full((8, 8, 3), n, np.uint8)) for n in range(20)}
    source = write_files(tmp_path / "noisy", flat)
    command = ("denoise", "run", source, "--to", "clean", *inverse[1:])
    code, out, err = on_two_ranks(*command, cwd=tmp_path)
    assert code == 0, out + err
    assert out.count("20 frames with") == 1
    assert err.count("rank 0 of 2 does all of it") == 1
    assert len(list((tmp_path / "clean").iterdir())) == 20


@pytest.mark.slow
def test_sweep_is_refused_once_with_the_reason(tmp_path: Path) -> None:
    command = ("sweep", "alexnet-demo", "--vary", "seed=1,2", "--to", "swept")
    code, out, err = on_two_ranks(*command, cwd=tmp_path)
    assert code != 0
    assert (out + err).count("a sweep starts a separate process for each run") == 1
    assert "exitcode  : 2" in err
    assert not (tmp_path / "swept").exists()


@pytest.mark.slow
def test_resume_command_of_a_stopped_training_keeps_its_ranks(tmp_path: Path) -> None:
    options = settings(
        training__log_every="1it",
        training__duration="400it",
        data__eval_path="none",
        model__width=8,
    )
    small = ["train", "vqvae-mnist", "--device", "cpu", "--run-dir", "run", *options]
    small += settings(data__path="digits", data__batch_size=2, checkpoints__keep_best="false")
    process = start_ranks(
        ["--standalone", "--nproc-per-node", "2", "-m", "jumar", *small], tmp_path
    )
    assert process.stdout is not None
    line = next(line for line in process.stdout if line.startswith("step: "))
    assert line
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    printed = next(line for line in out.splitlines() if "Resume with: " in line)
    words = shlex.split(printed.partition("Resume with: ")[2])
    assert words[0] == "torchrun"
    stopped = json.loads((tmp_path / "run" / "results.json").read_text())["steps"]
    again = start_ranks([*words[1:], "--set", f"training.duration={stopped + 2}it"], tmp_path)
    out, err = again.communicate(timeout=120)
    assert again.returncode == 0, out + err
    assert f"resuming from step {stopped}" in out
    assert f"finished after step {stopped + 2}" in out


@pytest.mark.parametrize(
    ("ranks", "variables", "words"),
    [
        (Ranks(), {}, "Resume with: jumar train"),
        (
            Ranks(world=2, local_world=2),
            {"TORCHELASTIC_RUN_ID": "none"},
            "Resume with: torchrun --nproc-per-node 2 -m jumar train",
        ),
        (
            Ranks(world=4, local_world=2),
            {"MASTER_ADDR": "node0", "MASTER_PORT": "29500"},
            "Resume on every machine with: torchrun --nnodes 2 --nproc-per-node 2 --node-rank "
            "NODE_RANK --master-addr node0 --master-port 29500 -m jumar train",
        ),
        (Ranks(world=4, local_world=2), {}, "--master-addr ADDRESS --master-port PORT"),
        (
            Ranks(world=1, local_world=1),
            {"TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_MAX_RESTARTS": "5"},
            "Resume on every machine with: torchrun --nnodes MIN:MAX --nproc-per-node 1 "
            "--max-restarts 5 --rdzv-backend c10d --rdzv-endpoint ADDRESS:PORT -m jumar train",
        ),
    ],
)
def test_resume_command_reflects_the_ranks_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, ranks: Ranks, variables: dict[str, str], words: str
) -> None:
    for name in TORCHELASTIC:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    line = resume_hint(RunDirectory(Path("run")), "auto", ranks)
    assert words in line
    assert line.endswith("train --resume --run-dir run")


@pytest.mark.parametrize(
    ("command", "first", "second"),
    [
        (("train",), True, True),
        (("evaluate",), True, True),
        (("profile",), True, True),
        (("profile", "show"), True, False),
        (("predict",), True, False),
        (("weights", "export"), True, False),
        ((), True, True),
    ],
)
def test_second_rank_runs_only_commands_that_divide_their_work(
    monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], first: bool, second: bool
) -> None:
    for rank, expected in ((1, second), (0, first)):
        for name in ("RANK", "LOCAL_RANK"):
            monkeypatch.setenv(name, str(rank))
        for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"):
            monkeypatch.setenv(name, "2")
        assert takes_part(command) is expected


def test_scheduler_machine_numbers_are_not_ranks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert takes_part(("data", "tfrecord"))
