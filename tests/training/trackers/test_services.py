"""What a tracking service gets of a run: every number once, also of a run that was resumed."""

import importlib.util
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.observer import Observer
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory, write_json
from jumar.training.trackers.chosen import SERVICES, create_services
from jumar.training.trackers.services import Service, ServiceTracker, flat
from tests.training.trackers.test_trackers import RECORD, SCORES

SETTINGS = {"seed": 1, "optimizer": {"kind": "adam", "learning_rate": 0.1}}


class Diary(Service):
    """A service that remembers, and fails from a step on."""

    def __init__(self, fails_at: int = 10**9) -> None:
        self.begun: list[object] = []
        self.sent: list[tuple[int, Mapping[str, float]]] = []
        self._fails_at = fails_at

    def begin(
        self, run_id: str | None, name: str, settings: Mapping[str, object], folder: Path
    ) -> str:
        if self._fails_at < 0:
            raise ConnectionError("nobody answers\nat all")
        self.begun.append((run_id, name, dict(settings), folder))
        return run_id or "new"

    def send(self, step: int, numbers: Mapping[str, float]) -> None:
        if step >= self._fails_at:
            raise TimeoutError("gone")
        self.sent.append((step, dict(numbers)))

    def end(self) -> None:
        self.begun.append("end")


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory(tmp_path / "first")
    run.path.mkdir()
    write_json(run.recipe, {"name": "small", "settings": SETTINGS})
    return run


def track(run: RunDirectory, service: Service, steps: range) -> str:
    """Send log lines and one evaluation; returns what was said."""
    console = Console()
    console.keep_log(run.log)
    tracker = ServiceTracker("diary", service, run, console)
    try:
        tracker.open(steps.start)
        for step in steps:
            tracker.record(replace(RECORD, step=step))
        tracker.record(replace(SCORES, step=steps.stop - 1))
    finally:
        tracker.close()
        console.close()
    return run.log.read_text(encoding="utf-8")


def test_a_service_gets_settings_and_every_number_with_its_step(run: RunDirectory) -> None:
    service = Diary()
    track(run, service, range(1, 3))
    settings = {"seed": 1, "optimizer.kind": "adam", "optimizer.learning_rate": 0.1}
    assert service.begun == [(None, "first", settings, run.path), "end"]
    assert [step for step, _ in service.sent] == [1, 2, 2]
    first, _, scores = (numbers for _, numbers in service.sent)
    assert first["train/loss"] == 2.3456
    assert scores["evaluation/top1"] == 91.25
    assert not any(name.endswith("/step") for _, numbers in service.sent for name in numbers)


def test_a_resumed_run_goes_on_in_the_same_one_without_what_was_sent(run: RunDirectory) -> None:
    track(run, Diary(), range(1, 4))
    again = Diary()
    track(run, again, range(2, 6))
    assert again.begun[0] == ("new", "first", dict(flat(SETTINGS)), run.path)
    assert [(step, next(iter(numbers)).split("/")[0]) for step, numbers in again.sent] == [
        (4, "train"),
        (5, "train"),
        (5, "evaluation"),
    ]


def test_a_service_that_fails_costs_its_records_and_not_the_training(run: RunDirectory) -> None:
    service = Diary(fails_at=3)
    said = track(run, service, range(1, 6))
    assert said.count("diary failed, and gets no more of this run") == 1
    assert "TimeoutError: gone" in said
    assert [step for step, _ in service.sent] == [1, 2]
    again = Diary()
    track(run, again, range(3, 5))
    assert [step for step, _ in again.sent] == [3, 4, 4]


def test_a_service_that_cannot_be_reached_at_the_start_is_an_error(run: RunDirectory) -> None:
    with pytest.raises(UserError, match=r"diary cannot track.*ConnectionError: nobody answers"):
        track(run, Diary(fails_at=-1), range(1, 3))
    assert not run.tracked.exists()


def chosen(asked: list[str], run: RunDirectory) -> tuple[list[Observer], list[str]]:
    lines: list[str] = []
    return create_services(asked, run, lines.append, Console(silent=True)), lines


def test_nothing_is_tracked_unasked(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in SERVICES.values():
        monkeypatch.delenv(kind.variable, raising=False)
    assert chosen([], run) == ([], [])


@pytest.mark.parametrize("name", SERVICES)
def test_its_own_variable_or_a_name_asks_for_a_service_that_may_be_missing(
    name: str, run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in SERVICES.values():
        monkeypatch.delenv(kind.variable, raising=False)
    monkeypatch.setattr("jumar.training.trackers.chosen.find_spec", lambda _: None)
    with pytest.raises(UserError, match=f"{name} is not installed") as caught:
        chosen([name], run)
    assert f'"jumar[{name}]"' in caught.value.todo
    monkeypatch.setenv(SERVICES[name].variable, "somewhere")
    observers, lines = chosen([], run)
    assert observers == []
    (line,) = lines
    assert line.startswith(f"{SERVICES[name].variable} is set, but {name} is not installed")
    monkeypatch.setattr("jumar.training.trackers.chosen.find_spec", lambda _: object())
    assert len(chosen([name], run)[0]) == len(chosen([], run)[0]) == 1


def test_a_resumed_run_needs_no_option_and_an_unknown_name_is_refused(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jumar.training.trackers.chosen.find_spec", lambda _: object())
    write_json(run.tracked, {"wandb": {"id": "x"}})
    assert len(chosen([], run)[0]) == 1
    with pytest.raises(UserError, match="no tracker 'wand'"):
        chosen(["wand"], run)


def test_mlflow_holds_every_step_once_after_a_resume(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="needs mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{run.path}/tracked.db")
    for steps in (range(1, 4), range(2, 6)):
        track(run, SERVICES["mlflow"].create(), steps)
    client = mlflow.MlflowClient(f"sqlite:///{run.path}/tracked.db")
    run_id = json.loads(run.tracked.read_text(encoding="utf-8"))["diary"]["id"]
    history = client.get_metric_history(run_id, "train/loss")
    assert [(point.step, point.value) for point in history] == [(n, 2.3456) for n in range(1, 6)]
    stored = client.get_run(run_id)
    assert stored.data.params["optimizer.learning_rate"] == "0.1"
    assert (stored.info.run_name, stored.info.status) == ("first", "FINISHED")


@pytest.mark.parametrize(
    ("name", "pattern"), [("wandb", "wandb/offline-run-*-{}"), ("swanlab", "swanlab/run-*-{}")]
)
def test_runs_are_written_into_the_run_directory_without_a_network(
    name: str, pattern: str, run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"needs {name}")
    monkeypatch.setenv(f"{name.upper()}_MODE", "offline")
    track(run, SERVICES[name].create(), range(1, 3))
    run_id = json.loads(run.tracked.read_text(encoding="utf-8"))["diary"]["id"]
    (folder,) = run.path.glob(pattern.format(run_id))
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) > 1000
