"""Monitoring the load of the device during training, as evidence that the device computes."""

import statistics
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from jumar.devices.contract import Device
from jumar.devices.cpu_load import MachineMeter
from jumar.devices.load import DeviceLoad, UnreadableLoadError
from jumar.ground.text import counted, size_text
from jumar.observer import Observer, Record

MIN_READINGS = 3
"""Minimum number of readings to call a device idle: a single one may fall between two kernels."""
IDLE_PERCENT = 1.0
_JOIN_TIMEOUT_S = 2.0
_SUMMARIZED_BY_MAXIMUM = ("memory_used_bytes", "memory_total_bytes", "temperature_c")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The readings at one moment."""

    device: DeviceLoad
    machine_busy_percent: float | None


@dataclass(frozen=True, kw_only=True)
class LoadRecord:
    """The readings since the last record: maxima of memory and temperature, means of all others.

    Attributes:
        step: Finished steps.
        readings: The number of readings.
        load: Their summary.
        machine_busy_percent: Load of all cores of the machine, from all processes.
        unreadable: Why there are no readings and will be none.
    """

    step: int
    readings: int
    load: DeviceLoad
    machine_busy_percent: float | None = None
    unreadable: str = ""

    def line(self) -> str:
        """An empty line, because the log describes the load only once, at the end."""
        return ""

    def to_json(self) -> dict[str, Any]:
        """The record as written to `metrics.jsonl`."""
        numbers = {**asdict(self.load), "machine_busy_percent": self.machine_busy_percent}
        values = {
            name: round(value) if name.endswith("_bytes") else round(value, 2)
            for name, value in numbers.items()
            if value is not None
        }
        reason = {"unreadable": self.unreadable} if self.unreadable else {}
        return {"kind": "device", "step": self.step, "readings": self.readings, **values, **reason}


class LoadObserver(Observer):
    """Reads the load in a thread, and records it with each log line.

    It does not affect training: it draws no random numbers and does not use the device.

    Args:
        device: The device that the run computes on.
        every_s: Seconds between readings.
        say: Called with a line if the load cannot be read or the device is idle.
    """

    def __init__(self, device: Device, *, every_s: float, say: Callable[[str], None]) -> None:
        self._device = device
        self._every_s = every_s
        self._say = say
        self._step = 0
        self._unrecorded: list[Reading] = []
        self._readings: list[Reading] = []
        self._unreadable = ""
        self._is_finding_reported = False
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._watch, name="device load", daemon=True)
        self._thread.start()

    def begin_step(self, step: int) -> None:
        """Record how many steps are finished."""
        self._step = step

    def record(self, record: Record) -> None:
        """Record how many steps are finished, in case no further step starts."""
        self._step = record.step

    def end(self) -> None:
        """Let the thread finish with a last reading, unless it hangs."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(_JOIN_TIMEOUT_S)

    def further_records(self) -> Iterable[Record]:
        """A record of the readings since the last one; reports an idle device once."""
        with self._lock:
            readings, self._unrecorded = self._unrecorded, []
            unreadable, self._unreadable = self._unreadable, ""
        self._readings += readings
        if unreadable:
            self._say(f"the load of {self._device} is not recorded: {unreadable}")
        if self.finding and not self._is_finding_reported:
            self._is_finding_reported = True
            self._say(self.finding)
        if readings or unreadable:
            return [summary(readings, step=self._step, unreadable=unreadable)]
        return ()

    @property
    def finding(self) -> str:
        """The message about an idle device; empty if it is not idle."""
        busy = [reading.device.busy_percent for reading in self._readings]
        return "" if self._device.on_host else idle_finding(str(self._device), busy)

    def last_line(self) -> str:
        """The line at the end of the log; empty for a run too short to judge the device."""
        if len(self._readings) < MIN_READINGS:
            return ""
        total = summary(self._readings, step=self._step)
        load, machine = load_text(total.load), total.machine_busy_percent
        machine_text = "" if machine is None else f"; all cores of the machine busy {machine:.0f} %"
        return f"{self._device}: {load}{machine_text} ({counted(total.readings, 'reading')})"

    def _watch(self) -> None:
        try:
            meter, machine = self._device.load_meter(), MachineMeter()
            while True:
                ended = self._ended.wait(self._every_s)
                reading = Reading(device=meter.read(), machine_busy_percent=machine.busy_percent())
                with self._lock:
                    self._unrecorded.append(reading)
                if ended:
                    return
        except UnreadableLoadError as error:
            self._give_up(str(error))
        except Exception as error:
            # Whatever a driver raises, training continues.
            self._give_up(f"{type(error).__name__}: {error}")

    def _give_up(self, reason: str) -> None:
        with self._lock:
            self._unreadable = " ".join(reason.split())


def idle_finding(device: str, busy: Sequence[float | None]) -> str:
    """The message about an accelerator that was idle in all readings; empty if it was not.

    Args:
        device: Its name in messages, such as `npu:0`.
        busy: Its load in percent at each reading; None where it was not reported.
    """
    loads = [percent for percent in busy if percent is not None]
    if len(loads) < MIN_READINGS or max(loads) >= IDLE_PERCENT:
        return ""
    return (
        f"{device} was busy 0 % of the time in all {len(loads)} readings: this run computes "
        "elsewhere, or waits for data nearly all the time"
    )


def summary(readings: Sequence[Reading], *, step: int, unreadable: str = "") -> LoadRecord:
    """Summarize several readings in one record; see `LoadRecord`."""
    totals: dict[str, float | None] = {}
    for field in fields(DeviceLoad):
        values = [getattr(reading.device, field.name) for reading in readings]
        reported = [float(value) for value in values if value is not None]
        aggregate = max if field.name in _SUMMARIZED_BY_MAXIMUM else statistics.fmean
        totals[field.name] = aggregate(reported) if reported else None
    machine = [sample.machine_busy_percent for sample in readings]
    reported = [percent for percent in machine if percent is not None]
    return LoadRecord(
        step=step,
        readings=len(readings),
        load=DeviceLoad(**totals),
        machine_busy_percent=statistics.fmean(reported) if reported else None,
        unreadable=unreadable,
    )


def load_text(load: DeviceLoad) -> str:
    """A load as text: `busy 87 %, at most 12.3 GiB of 64.0 GiB in use, 165 W, at most 55 °C`."""
    parts: list[str] = []
    if load.busy_percent is not None:
        parts.append(f"busy {load.busy_percent:.0f} %")
    if load.memory_used_bytes is not None:
        of_total = f" of {size_text(load.memory_total_bytes)}" if load.memory_total_bytes else ""
        parts.append(f"at most {size_text(load.memory_used_bytes)}{of_total} in use")
    if load.power_w is not None:
        parts.append(f"{load.power_w:.0f} W")
    if load.temperature_c is not None:
        parts.append(f"at most {load.temperature_c:.0f} °C")
    return ", ".join(parts) or "nothing known"
