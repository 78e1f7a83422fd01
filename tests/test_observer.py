"""Whoever watches a run is told of every step and part of it, and ended whatever happens."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from jumar.devices.load import DeviceLoad
from jumar.ground.errors import UserError
from jumar.observer import BACKWARD, FORWARD, Observer, Observers, Record
from jumar.training.device_load import LoadRecord
from tests.training.small_tasks import GanTask, point_task, small_plan, trainer_for
from tests.training.test_trainer import everything, same


class Diary(Observer):
    """Writes down what it is told."""

    def __init__(self, *parts: str) -> None:
        self.seen: list[str] = []
        self._parts = parts

    def begin(self) -> None:
        self.seen.append("begin")

    def end(self) -> None:
        self.seen.append("end")

    def begin_step(self, step: int) -> None:
        self.seen.append(f"step {step}")

    def end_step(self) -> None:
        self.seen.append("updated")

    def phase(self, name: str, detail: str = "") -> AbstractContextManager[object] | None:
        return self._around(f"{name} {detail}".strip()) if name in self._parts else None

    @contextmanager
    def _around(self, name: str) -> Iterator[None]:
        self.seen.append(f"<{name}")
        yield
        self.seen.append(f"{name}>")


def test_observers_receive_the_events_they_ask_for(tmp_path: Path) -> None:
    objectives, passes = Diary("objective"), Diary(FORWARD, BACKWARD)
    plan = small_plan(duration="2it", objectives=("discriminator", "generator"))
    trainer_for(GanTask(), plan, tmp_path, observers=(objectives, passes)).train()
    assert objectives.seen == [
        "begin",
        "step 0",
        "<objective discriminator",
        "objective discriminator>",
        "<objective generator",
        "objective generator>",
        "updated",
        "step 1",
        "<objective discriminator",
        "objective discriminator>",
        "updated",
        "step 2",
        "end",
    ]
    assert passes.seen[2:6] == ["<forward", "forward>", "<backward", "backward>"]


def test_two_observers_of_one_part_nest() -> None:
    first, second = Diary(FORWARD), Diary(FORWARD)
    observers = Observers([first, second])
    with observers.around(), observers.phase(FORWARD, "of it"):
        assert first.seen.pop(0) == second.seen.pop(0) == "begin"
        assert first.seen == second.seen == ["<forward of it"]
    assert first.seen[-2:] == second.seen[-2:] == ["forward of it>", "end"]


def test_unobserved_part_is_one_shared_context() -> None:
    nobody, others = Observers(), Observers([Diary(BACKWARD)])
    with others.around():
        assert nobody.phase("forward") is others.phase("objective", "points")
        assert nobody.phase("forward") is not others.phase("backward")
    assert nobody.phase("forward") is others.phase("backward")


def test_started_observer_is_ended_even_if_the_next_one_fails() -> None:
    class Failing(Diary):
        def begin(self) -> None:
            raise RuntimeError("as planned")

    first, failing = Diary(), Failing()
    with pytest.raises(RuntimeError, match="as planned"), Observers([first, failing]).around():
        pass
    assert first.seen == ["begin", "end"]
    assert failing.seen == ["end"]


def test_longest_span_counts_and_a_too_short_run_is_refused() -> None:
    class Long(Diary):
        span = 7

        def check(self, steps_left: int | None) -> None:
            if steps_left is not None and steps_left < self.span:
                raise UserError("too short")

    both = Observers([Diary(), Long()])
    assert both.span == 7
    both.check(None)
    both.check(7)
    with pytest.raises(UserError, match="too short"):
        both.check(6)


def test_observing_changes_no_bit(tmp_path: Path) -> None:
    plain = trainer_for(point_task(), small_plan(), tmp_path / "plain")
    plain.train()
    observed = trainer_for(point_task(), small_plan(), tmp_path / "observed")
    observed._observers = Observers([Diary(FORWARD, BACKWARD)])
    observed.train()
    assert same(everything(plain), everything(observed))


class Reporting(Observer):
    """Reports one record whenever it is asked, and keeps all that are recorded."""

    def __init__(self) -> None:
        self.recorded: list[Record] = []

    def further_records(self) -> list[Record]:
        return [LoadRecord(step=3, readings=1, load=DeviceLoad())]

    def record(self, record: Record) -> None:
        self.recorded.append(record)


def test_final_reports_reach_all_observers() -> None:
    reporting, other = Reporting(), Reporting()
    with Observers([reporting, other]).recording(0):
        assert reporting.recorded == []
    assert len(reporting.recorded) == len(other.recorded) == 2


def test_nothing_is_recorded_after_an_error_so_the_error_is_shown() -> None:
    reporting = Reporting()
    with pytest.raises(OSError), Observers([reporting]).recording(0):
        raise OSError("no space left")
    assert reporting.recorded == []
