"""The records of a run: their columns, and the files and lines that are made of them."""

import errno
import importlib.util
import io
import json
import math
import os
import re
import sys
import time
import types
from dataclasses import replace
from pathlib import Path

import pytest

from jumar.devices.load import DeviceLoad
from jumar.ground.errors import UserError
from jumar.observer import Observers
from jumar.precision.loss_scale import FixedLossScale
from jumar.precision.settings import PrecisionSettings
from jumar.training.device_load import LoadRecord
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory
from jumar.training.state import Window
from jumar.training.throughput import Pace
from jumar.training.trackers.chosen import create_trackers
from jumar.training.trackers.console import ConsoleTracker
from jumar.training.trackers.json_lines import JsonLinesTracker
from jumar.training.trackers.records import (
    TRAIN_HEADER,
    EvaluationRecord,
    TrainRecord,
    numbers_of,
    train_record,
)
from jumar.training.trackers.tensorboard import TensorBoardTracker
from jumar.training.trackers.tracker import Tracker
from tests.training.small_tasks import point_task, small_plan, trainer_for

RECORD = TrainRecord(
    step=120,
    epoch=1.5,
    window=Window(
        losses={"classification": 2.3456},
        total_losses={"classification": 3.4567},
        terms={},
        learning_rates={"classification": 0.0125},
        gradient_norms={},
    ),
    pace=Pace(samples_per_second=1234.56, step_ms=25.92, data_ms=0.71),
    loss_scale=None,
    skipped_steps=0,
    elapsed_s=61.23456,
)
TWO = replace(
    RECORD,
    window=Window(
        losses={"d": 1.0, "g": 2.0},
        total_losses={"d": 1.5, "g": 2.0},
        learning_rates={"d": 0.1, "g": 0.2},
        terms={"d/real": 0.25},
        gradient_norms={},
    ),
    loss_scale=1024.0,
    skipped_steps=3,
)
SCORES = EvaluationRecord(
    step=120,
    epoch=1.5,
    metrics={"top1": 91.25, "top5": 99.5, "loss": 0.5},
    weights="ema",
    seconds=3.25,
)


def changed(record: TrainRecord, **changes: dict[str, float]) -> TrainRecord:
    return replace(record, window=replace(record.window, **changes))


def test_line_has_the_columns_of_the_original_logs() -> None:
    assert TRAIN_HEADER.split() == ["Step", "Epoch", "Speed", "Loss", "FinLoss", "LR"]
    assert RECORD.line() == (
        "step:    120  epoch:   1.50  FPS: 1234.6  loss: 2.346  total_loss: 3.457  "
        "lr:0.0125000  batch_time: 25.9 ms  data: 0.7 ms"
    )


def test_line_names_the_parts_of_a_loss_but_no_other_term() -> None:
    terms = {"p/masked_lm_loss": 6.25, "p/next_sentence_loss": 0.5, "p/margin": 3.0}
    line = changed(RECORD, terms=terms).line()
    assert "lr:0.0125000  masked_lm_loss: 6.250  next_sentence_loss: 0.500  batch_time" in line


def test_line_in_the_warm_up_has_no_speed() -> None:
    line = replace(RECORD, pace=None).line()
    assert "FPS:      -" in line
    assert "batch_time" not in line


def test_line_names_each_of_several_objectives_and_the_loss_scale() -> None:
    line = TWO.line()
    assert "d loss: 1.000  total_loss: 1.500  lr:0.1000000" in line
    assert "g loss: 2.000  total_loss: 2.000  lr:0.2000000" in line
    assert line.endswith("loss_scale: 1024  skipped: 3")


def test_evaluation_says_which_weights_were_scored() -> None:
    assert SCORES.line() == (
        "evaluation at step 120, epoch 1.50: top1: 91.250  top5: 99.500  loss: 0.500"
        "  (averaged weights)"
    )


def written(run: RunDirectory) -> list[dict[str, object]]:
    return [json.loads(line) for line in run.metrics.read_text().splitlines()]


def test_metrics_jsonl_has_one_record_per_line_with_all_numbers(tmp_path: Path) -> None:
    run, stream = RunDirectory(tmp_path), io.StringIO()
    events = Observers(create_trackers(run, Console(stream=stream)))
    with events.recording(0):
        for record in (RECORD, TWO, SCORES):
            events.record(record)
            # At once, so that a killed run has lost nothing.
            assert run.metrics.read_text().endswith("}\n")
    one, two, scores = written(run)
    assert one == {
        "kind": "train",
        "step": 120,
        "epoch": 1.5,
        "fps": 1234.56,
        "loss": 2.3456,
        "total_loss": 3.4567,
        "learning_rate": 0.0125,
        "step_ms": 25.92,
        "data_ms": 0.71,
        "skipped": 0,
        "elapsed_s": 61.235,
    }
    assert (two["loss"], two["losses"], two["terms"]) == (
        3.0,
        {"d": 1.0, "g": 2.0},
        {"d/real": 0.25},
    )
    assert (two["loss_scale"], two["skipped"]) == (1024.0, 3)
    assert (scores["kind"], scores["top1"], scores["weights"]) == ("evaluation", 91.25, "ema")
    lines = stream.getvalue().splitlines()
    assert [line for line in lines if line == TRAIN_HEADER] == [TRAIN_HEADER]
    assert lines[-1] == SCORES.line()


def test_nan_loss_is_null_in_the_file(tmp_path: Path) -> None:
    writer = JsonLinesTracker(RunDirectory(tmp_path))
    writer.open(0)
    writer.record(changed(RECORD, losses={"classification": math.nan}))
    writer.close()
    assert written(RunDirectory(tmp_path))[0]["loss"] is None


def test_resumed_run_appends(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    for first_step in (0, 120):
        events = Observers(create_trackers(run, Console(stream=io.StringIO())))
        with events.recording(first_step):
            events.record(RECORD)
    assert len(written(run)) == 2


def test_full_disk_is_a_user_error_and_other_trackers_are_still_closed(
    tmp_path: Path,
) -> None:
    run = RunDirectory(tmp_path)
    run.metrics.symlink_to("/dev/full")
    events = Observers(create_trackers(run, Console(stream=io.StringIO())))
    with pytest.raises(UserError, match="No space left on device") as found, events.recording(0):
        events.record(RECORD)
    assert found.value.where == str(tmp_path)


def test_unwritable_run_directory_is_a_user_error(tmp_path: Path) -> None:
    events = Observers(create_trackers(RunDirectory(tmp_path / "none"), Console(silent=True)))
    with pytest.raises(UserError, match="cannot be written"), events.recording(0):
        pass


def test_unloadable_tensorboard_does_not_stop_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_loader("tensorboard", loader=None)
    broken = types.ModuleType("tensorboard")
    broken.__spec__ = spec
    monkeypatch.setitem(sys.modules, "tensorboard", broken)
    for name in ("compat", "compat.proto", "compat.proto.event_pb2"):
        monkeypatch.setitem(sys.modules, f"tensorboard.{name}", None)
    stream = io.StringIO()
    events = Observers(create_trackers(RunDirectory(tmp_path), Console(stream=stream)))
    with events.recording(0):
        events.record(RECORD)
    assert "no TensorBoard events, because tensorboard cannot be loaded" in stream.getvalue()
    assert len(written(RunDirectory(tmp_path))) == 1


def scalars(run: RunDirectory) -> dict[str, list[tuple[int, float]]]:
    module = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="needs tensorboard: pip install 'jumar[tensorboard]'",
    )
    accumulator = module.EventAccumulator(str(run.tensorboard))
    accumulator.Reload()
    return {
        tag: [(event.step, event.value) for event in accumulator.Scalars(tag)]
        for tag in accumulator.Tags()["scalars"]
    }


def test_tensorboard_gets_every_number_and_hides_rewritten_steps(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs tensorboard: pip install 'jumar[tensorboard]'")
    run = RunDirectory(tmp_path)
    for first_step, steps in ((0, (1, 2, 3)), (2, (3, 4))):
        events = Observers(create_trackers(run, Console(stream=io.StringIO())))
        with events.recording(first_step):
            for step in steps:
                pace = Pace(samples_per_second=10.0 * first_step + step, step_ms=1.0, data_ms=0.0)
                events.record(replace(TWO, step=step, pace=pace))
            events.record(replace(SCORES, step=steps[-1]))
    result = scalars(run)
    assert result["train/fps"] == [(1, 1.0), (2, 2.0), (3, 23.0), (4, 24.0)]
    assert result["train/losses/g"][0] == (1, 2.0)
    assert result["train/terms/d/real"][0] == (1, 0.25)
    assert result["evaluation/top1"][-1] == (4, 91.25)
    assert "train/step" not in result


def test_record_of_several_objectives_and_one_with_norms_have_all_their_numbers() -> None:
    two = replace(changed(TWO, gradient_norms={"d": 3.0, "g": 4.0}), epoch=1 / 3)
    assert two.to_json() == {
        "kind": "train",
        "step": 120,
        "epoch": 0.333333,
        "fps": 1234.56,
        "loss": 3.0,
        "total_loss": 3.5,
        "learning_rate": 0.1,
        "step_ms": 25.92,
        "data_ms": 0.71,
        "skipped": 3,
        "elapsed_s": 61.235,
        "loss_scale": 1024.0,
        "gradient_norms": {"d": 3.0, "g": 4.0},
        "losses": {"d": 1.0, "g": 2.0},
        "learning_rates": {"d": 0.1, "g": 0.2},
        "terms": {"d/real": 0.25},
    }
    one = changed(RECORD, gradient_norms={"classification": 2.5})
    result = one.to_json()
    assert result["gradient_norm"] == 2.5
    assert "losses" not in result
    assert two.line() == (
        "step:    120  epoch:   0.33  FPS: 1234.6  "
        "d loss: 1.000  total_loss: 1.500  lr:0.1000000  grad_norm: 3  "
        "g loss: 2.000  total_loss: 2.000  lr:0.2000000  grad_norm: 4  "
        "batch_time: 25.9 ms  data: 0.7 ms  loss_scale: 1024  skipped: 3"
    )


def test_evaluation_is_written_with_its_scores_and_rounded_times() -> None:
    scores = replace(SCORES, epoch=1 / 3, seconds=1.23456, weights="model")
    assert scores.to_json() == {
        "kind": "evaluation",
        "step": 120,
        "epoch": 0.333333,
        "top1": 91.25,
        "top5": 99.5,
        "loss": 0.5,
        "weights": "model",
        "seconds": 1.235,
    }
    assert scores.line() == (
        "evaluation at step 120, epoch 0.33: top1: 91.250  top5: 99.500  loss: 0.500"
    )


def test_record_of_a_state_is_that_of_its_last_step(tmp_path: Path) -> None:
    precision = PrecisionSettings(loss_scale=FixedLossScale(init_loss_scale=64.0))
    state = trainer_for(point_task(), small_plan(precision=precision), tmp_path).state
    state.step, state.elapsed_s = 7, 12.5
    numbers: list[dict[str, float]] = [{"points": float(number)} for number in range(5)]
    window = Window(
        losses=numbers[0],
        total_losses=numbers[1],
        terms=numbers[2],
        learning_rates=numbers[3],
        gradient_norms=numbers[4],
    )
    pace = Pace(samples_per_second=10.0, step_ms=20.0, data_ms=5.0)
    for speed in (pace, None):
        assert train_record(state, window, speed, steps_per_epoch=5) == TrainRecord(
            step=7,
            epoch=1.4,
            window=window,
            pace=speed,
            loss_scale=64.0,
            skipped_steps=0,
            elapsed_s=12.5,
        )


def test_numbers_are_found_at_any_depth_and_texts_ignored() -> None:
    numbers = {"a": 1, "b": {"c": 2.5, "d": {"e": -1, "f": "x"}, "g": None}, "h": [3]}
    found = numbers_of({"kind": "train", "step": 7, **numbers})
    assert list(found.items()) == [("train/a", 1), ("train/b/c", 2.5), ("train/b/d/e", -1)]


def test_console_prints_a_header_once_and_omits_empty_columns() -> None:
    stream = io.StringIO()
    tracker = ConsoleTracker(Console(stream=stream))
    load = LoadRecord(step=1, readings=1, load=DeviceLoad())
    for record in (load, SCORES, RECORD, load, RECORD, SCORES):
        tracker.record(record)
    assert stream.getvalue().splitlines() == [
        SCORES.line(),
        TRAIN_HEADER,
        RECORD.line(),
        RECORD.line(),
        SCORES.line(),
    ]


def test_closing_finishes_even_if_the_disk_is_full() -> None:
    class Full(Tracker):
        finished = 0

        def start(self, first_step: int) -> None:
            del first_step

        def write(self, record: object) -> None:
            del record

        def finish(self) -> None:
            self.finished += 1
            raise OSError(errno.ENOSPC, "No space left on device")

    tracker = Full("runs/full")
    tracker.close()
    assert tracker.finished == 1


def test_tensorboard_events_start_with_version_and_resume_step(
    tmp_path: Path,
) -> None:
    loader = pytest.importorskip(
        "tensorboard.backend.event_processing.event_file_loader",
        reason="needs tensorboard: pip install 'jumar[tensorboard]'",
    )
    run = RunDirectory(tmp_path)
    tracker = TensorBoardTracker(run, Console(silent=True))
    tracker.open(7)
    tracker.record(replace(SCORES, step=8))
    tracker.close()
    (file,) = run.tensorboard.iterdir()
    assert re.fullmatch(rf"events\.out\.tfevents\.\d{{10}}\..+\.{os.getpid()}", file.name)
    first, start, scores = loader.LegacyEventFileLoader(str(file)).Load()
    assert first.file_version == "brain.Event:2"
    assert (start.step, start.session_log.status) == (8, start.session_log.START)
    assert scores.step == 8
    result = {value.tag: value.simple_value for value in scores.summary.value}
    assert result == {
        "evaluation/epoch": 1.5,
        "evaluation/top1": 91.25,
        "evaluation/top5": 99.5,
        "evaluation/loss": 0.5,
        "evaluation/seconds": 3.25,
    }
    assert abs(scores.wall_time - time.time()) < 60
