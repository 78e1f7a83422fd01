"""The load of the processor, this process and the machine, read from Linux's /proc and /sys."""

import os
import re
import time
from pathlib import Path

from jumar.devices.load import DeviceLoad
from jumar.ground import machine
from jumar.ground.machine import text_of
from jumar.ground.text import first_line

_POWERCAP = "sys/class/powercap"
_THERMAL = "sys/class/thermal"
_HWMON = "sys/class/hwmon"
_PROCESSOR_ZONES = ("x86_pkg_temp", "cpu", "soc", "acpitz")
"""Name prefixes of a processor's thermal zones, most accurate first."""
_PROCESSOR_SENSORS = ("coretemp", "k10temp", "zenpower")


class CpuMeter:
    """Reads the load of this process and the processor since the previous reading.

    Args:
        system: The folder that contains `proc` and `sys`.
    """

    def __init__(self, system: Path | None = None) -> None:
        self._system = machine.SYSTEM if system is None else system
        self._cores = machine.usable_cores()
        self._read_at, self._used_s = time.monotonic(), time.process_time()
        self._energy = self._energies()
        self._sensor = self._temperature_file()

    def read(self) -> DeviceLoad:
        """See `LoadMeter.read`."""
        now, used_s, energy = time.monotonic(), time.process_time(), self._energies()
        seconds = max(now - self._read_at, 1e-9)
        busy = 100 * (used_s - self._used_s) / (seconds * self._cores)
        energies = [
            (after - before) % wrap
            for (after, wrap), (before, _) in zip(energy, self._energy, strict=False)
        ]
        self._read_at, self._used_s, self._energy = now, used_s, energy
        return DeviceLoad(
            busy_percent=busy,
            memory_used_bytes=self._resident_bytes(),
            memory_total_bytes=machine.memory_bytes()[1],
            power_w=sum(energies) / 1e6 / seconds if energies else None,
            temperature_c=self._temperature(),
        )

    def _resident_bytes(self) -> float | None:
        pages = _text(self._system / "proc/self/statm").split()
        return int(pages[1]) * os.sysconf("SC_PAGE_SIZE") if len(pages) > 1 else None

    def _energies(self) -> list[tuple[int, int]]:
        """Each processor package's energy counter in microjoules, and the value at which it wraps.

        On most systems only root may read them.
        """
        counters: list[tuple[int, int]] = []
        for zone in sorted((self._system / _POWERCAP).glob("*-rapl:[0-9]")):
            counter = _text(zone / "energy_uj")
            largest = _text(zone / "max_energy_range_uj")
            if counter.isdigit():
                wrap = int(largest) + 1 if largest.isdigit() else 1 << 32
                counters.append((int(counter), wrap))
        return counters

    def _temperature_file(self) -> Path | None:
        """The file with the processor's temperature; None if there is none."""
        for sensor in sorted((self._system / _HWMON).glob("hwmon*")):
            if _text(sensor / "name") in _PROCESSOR_SENSORS:
                return sensor / "temp1_input"
        zones = sorted((self._system / _THERMAL).glob("thermal_zone*"))
        kinds = [_text(zone / "type").lower() for zone in zones]
        for processor_zone in _PROCESSOR_ZONES:
            for zone, kind in zip(zones, kinds, strict=True):
                if kind.startswith(processor_zone):
                    return zone / "temp"
        return None

    def _temperature(self) -> float | None:
        text = "" if self._sensor is None else _text(self._sensor)
        return int(text) / 1000 if re.fullmatch(r"\d{3,6}", text) else None


def _text(path: Path) -> str:
    return text_of(path).strip()


class MachineMeter:
    """Reads how busy the whole machine was since the previous reading.

    Args:
        system: The folder that contains `proc`.
    """

    def __init__(self, system: Path | None = None) -> None:
        self._system = machine.SYSTEM if system is None else system
        self._before = self._ticks()

    def busy_percent(self) -> float | None:
        """The percentage of its cores' time that was not idle; None if unknown."""
        before, self._before = self._before, self._ticks()
        if before is None or self._before is None:
            return None
        (idle, total), (idle_before, total_before) = self._before, before
        elapsed = total - total_before
        return 100 * (1 - (idle - idle_before) / elapsed) if elapsed > 0 else None

    def _ticks(self) -> tuple[int, int] | None:
        """Idle and total ticks, both summed over the cores; None if they cannot be read."""
        columns = first_line(_text(self._system / "proc/stat")).split()
        if not columns or columns[0] != "cpu" or not all(map(str.isdigit, columns[1:])):
            return None
        # user, nice, system, idle, iowait, irq, softirq, steal; guests are counted in user.
        ticks = [int(column) for column in columns[1:9]]
        return sum(ticks[3:5]), sum(ticks)
