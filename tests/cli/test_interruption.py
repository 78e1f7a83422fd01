"""Runs that are killed, stopped while they score, or started twice."""

import json
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jumar.data.images.digits import open_digits
from tests.cli.in_process import SMALL_RECIPE, here, settings, train
from tests.cli.warm import Server, running

SLOW_SCORING = settings(data__eval_batch_size=1)
ENDLESS = settings(training__duration="1000000it", training__log_every="10it")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Starts commands in processes that can be killed."""
    with running(tmp_path_factory.mktemp("printed")) as server:
        yield server


def records(run: Path, kind: str) -> list[dict[str, float]]:
    result = [json.loads(line) for line in (run / "metrics.jsonl").open()]
    return [record for record in result if record["kind"] == kind]


def test_run_killed_mid_epoch_resumes_as_if_uninterrupted(
    server: Server,
    tmp_path: Path,
) -> None:
    """With a worker, whose prepared batches are lost and made again; 375 steps are an epoch."""
    options = settings(
        training__duration="30it",
        checkpoints__every="7it",
        data__workers=1,
        training__ema_decay=0.9,
    )
    command = ("train", *SMALL_RECIPE, *options)
    here(*command, "--run-dir", "whole", cwd=tmp_path)
    child = server.start(*command, "--run-dir", "killed", cwd=tmp_path)
    child.wait_for("step:     17")
    child.kill()
    done = here(*command, "--run-dir", "killed", cwd=tmp_path)
    assert "resuming from step " in done.out
    for name in ("model.safetensors", "ema.safetensors"):
        files = [
            tmp_path / run / "checkpoints" / "step-00000030" / name for run in ("whole", "killed")
        ]
        assert files[0].read_bytes() == files[1].read_bytes()
    losses = [
        [(record["step"], record["loss"]) for record in records(tmp_path / run, "train")]
        for run in ("whole", "killed")
    ]
    assert losses[0] == losses[1]
    left_over = [path.name for path in (tmp_path / "killed" / "checkpoints").glob(".*")]
    assert left_over == []


def test_extended_run_that_was_killed_is_not_treated_as_finished(
    server: Server,
    tmp_path: Path,
) -> None:
    train("--run-dir", "run", cwd=tmp_path)
    options = settings(training__duration="400it", training__log_every="10it")
    longer = ("train", *SMALL_RECIPE, "--run-dir", "run", *options)
    child = server.start(*longer, cwd=tmp_path)
    child.wait_for("step:     20")
    child.kill()
    assert not (tmp_path / "run" / "results.json").exists()
    assert "resuming from step 2" in here(*longer, cwd=tmp_path).out
    assert json.loads((tmp_path / "run" / "results.json").read_text())["steps"] == 400


def test_ctrl_c_during_the_final_scoring_saves_and_resuming_completes_it(
    server: Server,
    tmp_path: Path,
) -> None:
    command = ("train", *SMALL_RECIPE, "--run-dir", "run", *SLOW_SCORING)
    child = server.start(*command, cwd=tmp_path)
    child.wait_for("step:      2")
    child.send_signal(signal.SIGINT)
    out, err = child.communicate()
    assert child.returncode == 130, out + err
    assert "stopped after step 2; the checkpoint is saved" in out
    assert "Traceback" not in err
    assert records(tmp_path / "run", "evaluation") == []
    assert json.loads((tmp_path / "run" / "results.json").read_text())["state"] == "interrupted"
    again = here(*command, cwd=tmp_path)
    assert "evaluation at step 2" in again.out
    assert json.loads((tmp_path / "run" / "results.json").read_text())["state"] == "finished"


def test_interrupted_scoring_in_mid_run_is_repeated_on_resume(
    server: Server,
    tmp_path: Path,
) -> None:
    every = settings(training__duration="4it", training__evaluate_every="2it")
    command = ("train", *SMALL_RECIPE, *SLOW_SCORING, *every)
    here(*command, "--run-dir", "whole", cwd=tmp_path)
    child = server.start(*command, "--run-dir", "run", cwd=tmp_path)
    child.wait_for("step:      2")
    child.send_signal(signal.SIGINT)
    child.communicate()
    assert child.returncode == 130
    here(*command, "--run-dir", "run", cwd=tmp_path)
    scores = [
        [(record["step"], record["top1"]) for record in records(tmp_path / run, "evaluation")]
        for run in ("whole", "run")
    ]
    assert [step for step, _ in scores[0]] == [2, 4]
    assert scores[0] == scores[1]


@pytest.mark.parametrize("workers", [0, 1])
def test_ctrl_c_in_an_evaluation_keeps_the_scores_so_far(
    server: Server, tmp_path: Path, workers: int
) -> None:
    many = settings(training__duration="40it", checkpoints__every="1it", checkpoints__keep=40)
    train("--run-dir", "run", *many, cwd=tmp_path)
    slow = [*SLOW_SCORING, *settings(data__workers=workers)]
    child = server.start("evaluate", "run", *SMALL_RECIPE[1:], *slow, cwd=tmp_path)
    child.wait_for("device: ")
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate()
    # Interrupted while a module that writes code (a dataclass) is imported, Python ends itself by
    # the signal although we caught it. A shell shows 130 for either.
    assert child.returncode in (130, -signal.SIGINT), out + err
    assert "Traceback" not in err
    stopped = re.search(r"^stopped after (\d+) of 40 checkpoints$", out, re.MULTILINE)
    rows = re.findall(r"^ +\d+ .* \d\d:\d\d:\d\d$", out, re.MULTILINE)
    assert len(rows) == (int(stopped[1]) if stopped else 0)


def test_stopped_evaluation_keeps_the_scores_of_finished_checkpoints(
    server: Server, tmp_path: Path
) -> None:
    options = settings(
        data__eval_path="stopping", training__duration="3it", checkpoints__every="1it"
    )
    source = ("--import", "tests.cli.stopping_source")
    train("--run-dir", "run", *source, *options, cwd=tmp_path)
    places = sorted((tmp_path / "run" / "checkpoints").glob("*/checkpoint.json"))
    assert len(places) == 3
    for place in places:
        record = json.loads(place.read_text())
        del record["crc32c"]  # as an earlier version wrote it
        place.write_text(json.dumps({**record, "metrics": {}}))
    samples = len(open_digits("eval"))
    (tmp_path / "stop").write_text(str(samples + samples // 2))
    child = server.start("evaluate", "run", *SMALL_RECIPE[1:], *source, cwd=tmp_path)
    out, err = child.communicate()
    assert (child.returncode, err) == (130, ""), out + err
    assert "stopped after 1 of 3 checkpoints\n" in out
    assert re.findall(r"^ +(\d+) +\d.*:\d\d$", out, re.MULTILINE) == ["1"]
    noted = [bool(json.loads(place.read_text())["metrics"]) for place in places]
    assert noted == [True, False, False]


RAISES = """
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        raise {}
"""
FINALIZER = """
    class Slow:
        def __del__(self):
            time.sleep(600)
    Slow()
    time.sleep(600)
"""


@pytest.mark.parametrize(
    "body",
    [RAISES.format("ValueError('a shape')"), RAISES.format("UserError('cut')"), FINALIZER],
    ids=["error", "user-error", "finalizer"],
)
def test_ctrl_c_that_a_library_swallows_or_turns_into_its_own_error_is_not_lost(
    server: Server, tmp_path: Path, body: str
) -> None:
    """As torch does when it is interrupted while safetensors asks it for a shape."""
    module = (
        "import time\n"
        "from jumar.ground.errors import UserError\n"
        "from jumar.data.images.sources import register_source\n"
        f"def slow(split):\n{body}\n"
        "register_source('slow', slow)\n"
    )
    (tmp_path / "slow_source.py").write_text(module)
    train("--run-dir", "run", cwd=tmp_path)
    slow = ["--import", "slow_source", *settings(data__eval_path="slow")]
    child = server.start("evaluate", "run", *SMALL_RECIPE[1:], *slow, cwd=tmp_path)
    child.wait_for("device: ")
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate()
    assert (child.returncode, err) == (130, ""), out + err


def test_second_process_in_the_same_run_directory_is_refused(
    server: Server, tmp_path: Path
) -> None:
    child = server.start("train", *SMALL_RECIPE, "--run-dir", "run", *ENDLESS, cwd=tmp_path)
    child.wait_for("step:     10")
    done = train("--run-dir", "run", *ENDLESS, cwd=tmp_path, code=2)
    assert "another process is using 'run'" in done.err
    assert (tmp_path / "run" / ".lock").exists()
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate()
    assert child.returncode == 143, out + err
    again = [*ENDLESS, *settings(training__duration="1s", schedule__kind="constant")]
    refused = train("--run-dir", "run", *again, cwd=tmp_path, code=2)
    assert "started with schedule=cosine, not constant" in refused.err


def test_second_process_is_refused_even_before_the_first_step_of_the_first(
    server: Server,
    tmp_path: Path,
) -> None:
    """The run directory holds only the lock then, which the second process must leave alone."""
    slow = settings(data__path="slow", data__eval_path="none")
    module = (
        "import time\n"
        "from jumar.data.images.digits import open_digits\n"
        "from jumar.data.images.sources import register_source\n"
        "def slow(split):\n    time.sleep(1.5)\n    return open_digits(split)\n"
        "register_source('slow', slow)\n"
    )
    (tmp_path / "slow_source.py").write_text(module)
    first = ("train", *SMALL_RECIPE, "--import", "slow_source", "--run-dir", "run", *slow)
    child = server.start(*first, cwd=tmp_path)
    child.wait_for("device: ")
    done = train("--run-dir", "run", cwd=tmp_path, code=2)
    assert "another process is using 'run'" in done.err
    assert (tmp_path / "run" / ".lock").exists()
    out, err = child.communicate()
    assert child.returncode == 0, out + err


def test_run_continues_and_keeps_its_log_after_stdout_is_closed(
    server: Server, tmp_path: Path
) -> None:
    command = [*SMALL_RECIPE, "--run-dir", "r"]
    command += settings(training__duration="200it", training__log_every="10it")
    child = server.start("train", *command, cwd=tmp_path)
    child.wait_for("step: ")
    child.stdout.close()
    assert child.wait() == 0
    assert json.loads((tmp_path / "r" / "results.json").read_text())["steps"] == 200
    assert "finished after step 200" in (tmp_path / "r" / "log.txt").read_text()
