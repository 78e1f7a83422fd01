"""What a tracking service gets of a run: every number once, also of a run that was resumed."""

import importlib.util
import json
import os
import re
import sys
import time
import types
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.ground.json_text import flattened
from jumar.observer import Observer
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory, write_json
from jumar.training.trackers.chosen import SERVICES, create_services
from jumar.training.trackers.services import Service, ServiceTracker
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


def test_service_gets_settings_and_every_number_with_its_step(run: RunDirectory) -> None:
    service = Diary()
    track(run, service, range(1, 3))
    settings = {"seed": 1, "optimizer.kind": "adam", "optimizer.learning_rate": 0.1}
    assert service.begun == [(None, "first", settings, run.path), "end"]
    assert [step for step, _ in service.sent] == [1, 2, 2]
    first, _, scores = (numbers for _, numbers in service.sent)
    assert first["train/loss"] == 2.3456
    assert scores["evaluation/top1"] == 91.25
    assert not any(name.endswith("/step") for _, numbers in service.sent for name in numbers)


def test_resumed_run_continues_the_same_tracked_run_without_resending(run: RunDirectory) -> None:
    track(run, Diary(), range(1, 4))
    again = Diary()
    track(run, again, range(2, 6))
    assert again.begun[0] == ("new", "first", flattened(SETTINGS), run.path)
    assert [(step, next(iter(numbers)).split("/")[0]) for step, numbers in again.sent] == [
        (4, "train"),
        (5, "train"),
        (5, "evaluation"),
    ]


def test_failing_service_loses_its_records_but_not_the_training(run: RunDirectory) -> None:
    service = Diary(fails_at=3)
    message = track(run, service, range(1, 6))
    assert message.count("diary failed and gets no further records") == 1
    assert "TimeoutError: gone" in message
    assert [step for step, _ in service.sent] == [1, 2]
    again = Diary()
    track(run, again, range(3, 5))
    assert [step for step, _ in again.sent] == [3, 4, 4]


def test_service_unreachable_at_the_start_is_an_error(run: RunDirectory) -> None:
    with pytest.raises(UserError, match=r"diary cannot track.*ConnectionError: nobody answers"):
        track(run, Diary(fails_at=-1), range(1, 3))
    assert not run.tracked.exists()


def chosen(asked: list[str], run: RunDirectory) -> tuple[list[Observer], list[str]]:
    lines: list[str] = []
    return create_services(asked, run, lines.append, Console(silent=True)), lines


def test_nothing_is_tracked_by_default(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in SERVICES.values():
        monkeypatch.delenv(kind.variable, raising=False)
    assert chosen([], run) == ([], [])


@pytest.mark.parametrize("name", SERVICES)
def test_service_is_requested_by_its_variable_or_by_name(
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


def test_resumed_run_needs_no_option_and_an_unknown_name_is_refused(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jumar.training.trackers.chosen.find_spec", lambda _: object())
    write_json(run.tracked, {"wandb": {"id": "x"}})
    assert len(chosen([], run)[0]) == 1
    with pytest.raises(UserError, match="no tracker 'wand'"):
        chosen(["wand"], run)


def test_mlflow_has_every_step_once_after_a_resume(
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


class Server:
    """A stand-in for the package of a service: it records each call, and fails on request."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[object, ...], dict[str, object]]] = []
        self.error: Exception | None = None

    def called(self, name: str, answer: object = None) -> Callable[..., object]:
        def call(*given: object, **named: object) -> object:
            self.calls.append((name, given, named))
            if self.error is not None and name != "set_terminated":
                raise self.error
            return answer

        return call


@pytest.mark.parametrize("project", [None, "mine"])
def test_wandb_run_starts_in_its_project_and_resumes_by_id(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, project: str | None
) -> None:
    server = Server()
    run = types.SimpleNamespace(log=server.called("log"), finish=server.called("finish"))
    package = types.ModuleType("wandb")
    vars(package).update(init=server.called("init", run), Settings=lambda **given: given)
    monkeypatch.setitem(sys.modules, "wandb", package)
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    if project:
        monkeypatch.setenv("WANDB_PROJECT", project)
    for known in (None, "abc"):
        service = SERVICES["wandb"].create()
        run_id = service.begin(known, "first", {"seed": 1}, tmp_path)
        assert re.fullmatch("[0-9a-f]{8}", run_id) if known is None else run_id == known
        service.send(3, {"train/loss": 0.5})
        service.end()
        begun = {
            "project": project or "jumar",
            "id": run_id,
            "name": "first",
            "resume": "allow",
            "config": {"seed": 1},
            "dir": str(tmp_path),
            "settings": {"console": "off", "silent": True},
        }
        assert server.calls == [
            ("init", (), begun),
            ("log", ({"train/loss": 0.5},), {"step": 3}),
            ("finish", (), {}),
        ]
        server.calls.clear()


@pytest.mark.parametrize("variables", [{}, {"PROJ_NAME": "mine", "MODE": "offline"}])
def test_swanlab_run_starts_in_its_project_and_resumes_by_id(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str]
) -> None:
    server = Server()
    run = types.SimpleNamespace(log=server.called("log"), finish=server.called("finish"))
    package = types.ModuleType("swanlab")
    vars(package).update(init=server.called("init", run))
    monkeypatch.setitem(sys.modules, "swanlab", package)
    for name in ("PROJ_NAME", "MODE"):
        monkeypatch.delenv(f"SWANLAB_{name}", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(f"SWANLAB_{name}", value)
    for known in (None, "abc"):
        service = SERVICES["swanlab"].create()
        run_id = service.begin(known, "first", {"seed": 1}, tmp_path)
        assert re.fullmatch("[0-9a-f]{21}", run_id) if known is None else run_id == known
        service.send(3, {"train/loss": 0.5})
        service.end()
        begun = {
            "project": variables.get("PROJ_NAME", "jumar"),
            "name": "first",
            "id": run_id,
            "resume": "allow",
            "config": {"seed": 1},
            "log_dir": str(tmp_path / "swanlab"),
            "mode": variables.get("MODE"),
        }
        assert server.calls == [
            ("init", (), begun),
            ("log", ({"train/loss": 0.5},), {"step": 3}),
            ("finish", (), {}),
        ]
        server.calls.clear()


@pytest.fixture
def mlflow(monkeypatch: pytest.MonkeyPatch) -> Server:
    """An MLflow server that knows the experiment `known` by the number 7, and makes runs `r1`."""
    server = Server()
    made = types.SimpleNamespace(info=types.SimpleNamespace(run_id="r1"))

    def by_name(name: str) -> object:
        return types.SimpleNamespace(experiment_id="7") if name == "known" else None

    client = types.SimpleNamespace(
        get_experiment_by_name=by_name,
        create_experiment=server.called("create_experiment", "8"),
        create_run=server.called("create_run", made),
        update_run=server.called("update_run"),
        log_batch=server.called("log_batch"),
        set_terminated=server.called("set_terminated"),
    )
    package, entities = types.ModuleType("mlflow"), types.ModuleType("mlflow.entities")
    vars(package).update(MlflowClient=lambda: client)
    vars(entities).update(
        Param=lambda name, value: (name, value),
        Metric=lambda name, value, now, step: (name, value, abs(now - 1000 * time.time()) < 60000),
    )
    monkeypatch.setitem(sys.modules, "mlflow", package)
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")  # put back afterwards
    monkeypatch.delenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES")
    return server


def test_mlflow_gets_long_settings_in_parts_and_numbers_in_order(
    mlflow: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = {f"field{number}": "x" * (6001 if number == 3 else 2) for number in range(201)}
    service = SERVICES["mlflow"].create()
    assert service.begin(None, "first", settings, tmp_path) == "r1"
    assert os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "2"
    expected = [
        (name, value if name != "field3" else "x" * 6000) for name, value in settings.items()
    ]
    assert mlflow.calls == [
        ("create_experiment", ("jumar",), {}),
        ("create_run", ("8",), {"run_name": "first"}),
        ("log_batch", ("r1",), {"params": expected[:100]}),
        ("log_batch", ("r1",), {"params": expected[100:200]}),
        ("log_batch", ("r1",), {"params": expected[200:]}),
    ]
    mlflow.calls.clear()
    for step in (1, 2, 3):
        service.send(step, {"train/loss": step / 2})
    service.end()
    assert mlflow.calls == [
        *(
            ("log_batch", ("r1",), {"metrics": [("train/loss", step / 2, True)]})
            for step in (1, 2, 3)
        ),
        ("set_terminated", ("r1",), {}),
    ]
    mlflow.calls.clear()
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "known")
    assert SERVICES["mlflow"].create().begin(None, "second", {}, tmp_path) == "r1"
    assert mlflow.calls == [("create_run", ("7",), {"run_name": "second"})]
    mlflow.calls.clear()
    again = SERVICES["mlflow"].create()
    assert again.begin("r0", "first", settings, tmp_path) == "r0"
    again.send(4, {"a": 1.0})
    again.end()
    assert mlflow.calls == [
        ("update_run", ("r0",), {"status": "RUNNING"}),
        ("log_batch", ("r0",), {"metrics": [("a", 1.0, True)]}),
        ("set_terminated", ("r0",), {}),
    ]


def test_mlflow_errors_are_raised_by_the_next_call(mlflow: Server, tmp_path: Path) -> None:
    service = SERVICES["mlflow"].create()
    service.begin(None, "first", {}, tmp_path)
    mlflow.error = ConnectionError("gone")
    service.send(1, {"a": 1.0})

    def send_until_told() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            time.sleep(0.005)
            service.send(2, {"a": 1.0})

    with pytest.raises(ConnectionError, match="gone"):
        send_until_told()
    service.send(3, {"a": 1.0})
    with pytest.raises(ConnectionError, match="gone"):
        service.end()


def test_service_that_cannot_start_is_refused_with_a_remedy(run: RunDirectory) -> None:
    with pytest.raises(UserError) as refused:
        track(run, Diary(fails_at=-1), range(1, 3))
    assert str(refused.value) == (
        "--track: diary cannot track the run: ConnectionError: nobody answers\n"
        "  Check its address and key, or train without it; in that case also remove 'diary' "
        f"from {run.tracked}."
    )


def test_service_that_cannot_finish_is_reported_and_sent_records_noted(
    run: RunDirectory,
) -> None:
    class Stuck(Diary):
        def end(self) -> None:
            raise RuntimeError

    message = track(run, Stuck(), range(1, 3))
    assert message.splitlines()[-1] == "diary could not be ended: RuntimeError"
    noted = json.loads(run.tracked.read_text())
    assert noted == {"diary": {"id": "new", "train": 2, "evaluation": 2}}
    write_json(run.tracked, {**noted, "other": {"id": "x"}})
    track(run, Diary(), range(3, 4))
    assert json.loads(run.tracked.read_text()) == {
        "diary": {"id": "new", "train": 3, "evaluation": 3},
        "other": {"id": "x"},
    }


def test_unknown_or_missing_service_is_refused_with_a_remedy(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError) as refused:
        chosen(["mlflow", "wand"], run)
    assert str(refused.value) == (
        "--track: there is no tracker 'wand'\n  Available: mlflow, swanlab, wandb."
    )
    for kind in SERVICES.values():
        monkeypatch.delenv(kind.variable, raising=False)
    monkeypatch.setattr("jumar.training.trackers.chosen.find_spec", lambda _: None)
    with pytest.raises(UserError) as refused:
        chosen(["swanlab"], run)
    assert str(refused.value) == (
        '--track: swanlab is not installed\n  pip install "jumar[swanlab]"'
    )
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    assert chosen([], run) == (
        [],
        ['WANDB_PROJECT is set, but wandb is not installed: pip install "jumar[wandb]"'],
    )
