"""The load of a device during training: its records, its log lines, and bit-identical results."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from jumar.devices.cpu import Cpu
from jumar.devices.load import DeviceLoad, LoadMeter, UnreadableLoadError
from jumar.training.device_load import (
    LoadObserver,
    LoadRecord,
    Reading,
    idle_finding,
    load_text,
    summary,
)
from tests.training.small_tasks import point_task, small_plan, trainer_for


@dataclass
class Scripted:
    """A meter that returns the given readings, then repeats the last one."""

    readings: list[DeviceLoad | Exception]
    taken: list[DeviceLoad] = field(default_factory=list[DeviceLoad])

    def read(self) -> DeviceLoad:
        place = min(len(self.taken), len(self.readings) - 1)
        reading = self.readings[place]
        if isinstance(reading, Exception):
            raise reading
        self.taken.append(reading)
        return reading


@dataclass(frozen=True, kw_only=True)
class Accelerated(Cpu):
    """A CPU that passes for an accelerator with the given meter."""

    meter: Scripted
    on_host = False

    def load_meter(self) -> LoadMeter:
        return self.meter


def observed(*readings: DeviceLoad | Exception, count: int = 1) -> tuple[LoadObserver, list[str]]:
    """An observer that has ended, after it took some readings."""
    messages: list[str] = []
    meter = Scripted(list(readings))
    device = Accelerated(index=0, name="card", meter=meter)
    observer = LoadObserver(device, every_s=0.001, say=messages.append)
    observer.begin_step(7)
    observer.begin()
    end = time.monotonic() + 5
    while len(meter.taken) < count and time.monotonic() < end:
        time.sleep(0.001)
    observer.end()
    return observer, messages


def records(observer: LoadObserver) -> list[dict[str, Any]]:
    return [record.to_json() for record in observer.further_records()]


def test_recording_the_load_changes_no_bit_of_a_run(tmp_path: Path) -> None:
    weights: list[dict[str, torch.Tensor]] = []
    for name in ("without", "with"):
        messages: list[str] = []
        load = LoadObserver(Cpu.open(), every_s=0.001, say=messages.append)
        observers = [load] if name == "with" else []
        trainer = trainer_for(point_task(), small_plan(), tmp_path / name, observers=observers)
        trainer.train()
        weights.append(trainer.task.model.state_dict())
        assert messages == []
        result = [r for r in trainer.run.read_metrics() if r["kind"] == "device"]
        if name == "without":
            assert result == []
            continue
        steps = [record["step"] for record in result]
        assert steps == sorted(steps)
        assert steps[-1] == trainer.state.step
        assert all(record["readings"] >= 1 for record in result)
        assert all(record["memory_used_bytes"] > 0 for record in result)
        assert load.last_line().startswith("cpu: busy ")
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())


def test_idle_accelerator_is_reported_once() -> None:
    observer, message = observed(DeviceLoad(busy_percent=0.0), count=3)
    assert records(observer)[0]["busy_percent"] == 0
    assert records(observer) == []
    (line,) = message
    assert line.startswith("cpu was busy 0 % of the time in all ")


@pytest.mark.parametrize(
    ("busy", "found"),
    [
        ([0, 0, 0], True),
        ([0, None, 0, 0.4], True),
        ([0, 0], False),
        ([0, 0, 0, 30], False),
        ([None] * 5, False),
    ],
)
def test_only_several_readings_without_any_load_are_a_finding(
    busy: list[float | None], found: bool
) -> None:
    assert bool(idle_finding("npu:0", busy)) is found


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (UnreadableLoadError("npu-smi is not installed"), "npu-smi is not installed"),
        (RuntimeError("driver\nbroken"), "RuntimeError: driver broken"),
    ],
)
def test_unreadable_device_is_reported_once_without_failing_the_run(
    error: Exception, why: str
) -> None:
    observer, message = observed(error, count=0)
    assert records(observer) == [{"kind": "device", "step": 7, "readings": 0, "unreadable": why}]
    assert records(observer) == []
    assert message == [f"the load of cpu is not recorded: {why}"]
    assert observer.last_line() == ""


def test_readings_before_a_device_became_unreadable_are_kept() -> None:
    reading = DeviceLoad(busy_percent=50.0)
    observer, _ = observed(*[reading] * 3, UnreadableLoadError("it fell off the bus"), count=3)
    (record,) = records(observer)
    assert (record["busy_percent"], record["unreadable"]) == (50, "it fell off the bus")
    assert "busy 50 %" in observer.last_line()


def test_several_readings_give_the_mean_and_the_peak_of_memory_and_temperature() -> None:
    loads = [
        DeviceLoad(busy_percent=80, memory_used_bytes=10, power_w=100, temperature_c=40),
        DeviceLoad(busy_percent=100, memory_used_bytes=30, power_w=200, temperature_c=60),
        DeviceLoad(memory_used_bytes=20),
    ]
    readings = [Reading(device=load, machine_busy_percent=None) for load in loads]
    assert summary(readings, step=3).to_json() == {
        "kind": "device",
        "step": 3,
        "readings": 3,
        "busy_percent": 90,
        "memory_used_bytes": 30,
        "power_w": 150,
        "temperature_c": 60,
    }


def test_load_has_a_human_readable_text() -> None:
    load = DeviceLoad(
        busy_percent=86.6,
        memory_used_bytes=12.34 * 2**30,
        memory_total_bytes=64 * 2**30,
        power_w=164.8,
        temperature_c=55,
    )
    assert load_text(load) == "busy 87 %, at most 12.3 GiB of 64.0 GiB in use, 165 W, at most 55 °C"
    assert load_text(DeviceLoad()) == "nothing known"


@pytest.mark.parametrize(
    ("busy", "found"),
    [([0.0, 0.99, 0.5], True), ([0.0, 1.0, 0.5], False), ([0.0] * 3, True), ([0.0] * 2, False)],
)
def test_accelerator_is_idle_below_one_percent_in_three_readings(
    busy: list[float | None], found: bool
) -> None:
    line = (
        f"npu:0 was busy 0 % of the time in all {len(busy)} readings: this run computes "
        "elsewhere, or waits for data nearly all the time"
    )
    assert idle_finding("npu:0", busy) == (line if found else "")
    assert idle_finding("npu:0", [None, *busy]) == (line if found else "")


def test_records_round_bytes_to_integers_and_other_numbers_to_hundredths() -> None:
    readings = [
        Reading(
            device=DeviceLoad(busy_percent=busy, memory_used_bytes=used, memory_total_bytes=64.4),
            machine_busy_percent=machine,
        )
        for busy, used, machine in ((1.0, 10.6, 30.0), (2.0, 10.7, None), (2.0, 3.0, 40.123))
    ]
    record = summary(readings, step=9)
    assert record.to_json() == {
        "kind": "device",
        "step": 9,
        "readings": 3,
        "busy_percent": 1.67,
        "memory_used_bytes": 11,
        "memory_total_bytes": 64,
        "machine_busy_percent": 35.06,
    }
    assert record.line() == ""
    assert (record.unreadable, LoadRecord(step=1, readings=0, load=DeviceLoad()).to_json()) == (
        "",
        {"kind": "device", "step": 1, "readings": 0},
    )
    lost = summary([], step=2, unreadable="gone")
    assert lost.to_json() == {"kind": "device", "step": 2, "readings": 0, "unreadable": "gone"}
    assert summary(readings[1:2], step=1).machine_busy_percent is None


def test_final_line_needs_three_readings_and_covers_the_whole_machine() -> None:
    load = DeviceLoad(busy_percent=12.5, memory_used_bytes=2.0**30)
    observer = LoadObserver(Cpu(index=0, name="x"), every_s=1.0, say=pytest.fail)
    reading = Reading(device=load, machine_busy_percent=49.6)
    observer._readings = [reading] * 2
    assert observer.last_line() == ""
    observer._readings = [reading] * 3
    assert observer.last_line() == (
        "cpu: busy 12 %, at most 1.0 GiB in use; all cores of the machine busy 50 % (3 readings)"
    )
    observer._readings = [Reading(device=load, machine_busy_percent=None)] * 4
    assert observer.last_line() == "cpu: busy 12 %, at most 1.0 GiB in use (4 readings)"
    # A CPU that does little is no finding.
    observer._readings = [
        Reading(device=DeviceLoad(busy_percent=0.0), machine_busy_percent=0.0)
    ] * 3
    assert observer.finding == ""
