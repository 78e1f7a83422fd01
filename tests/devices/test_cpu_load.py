import time
from pathlib import Path

import pytest

from jumar.devices.cpu_load import CpuMeter, MachineMeter


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_computing_process_is_busy_and_sleeping_one_is_not() -> None:
    meter = CpuMeter()
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    busy = meter.read()
    time.sleep(0.05)
    idle = meter.read()
    assert busy.busy_percent is not None
    assert idle.busy_percent is not None
    assert idle.busy_percent < busy.busy_percent <= 110
    assert busy.memory_used_bytes is not None
    assert busy.memory_used_bytes > 10e6
    assert busy.memory_total_bytes is not None
    assert busy.memory_total_bytes > busy.memory_used_bytes


def test_power_sums_all_packages_and_handles_counter_wraparound(tmp_path: Path) -> None:
    zones = [f"sys/class/powercap/intel-rapl:{number}" for number in (0, 1)]
    for zone, energy in zip(zones, ("1000000", "9500000"), strict=True):
        write(tmp_path, {f"{zone}/energy_uj": energy, f"{zone}/max_energy_range_uj": "9999999"})
    # A part of a package, which the package counts too.
    write(tmp_path, {"sys/class/powercap/intel-rapl:0:0/energy_uj": "5000000"})
    meter = CpuMeter(tmp_path)
    before = time.monotonic()
    write(tmp_path, {f"{zones[0]}/energy_uj": "3000000", f"{zones[1]}/energy_uj": "500000"})
    time.sleep(0.02)
    power = meter.read().power_w
    assert power is not None
    assert power <= 3 / 0.02
    assert power >= 3 / (time.monotonic() - before + 0.05)


@pytest.mark.parametrize(
    "files",
    [
        {
            "sys/class/hwmon/hwmon0/name": "nvme\n",
            "sys/class/hwmon/hwmon0/temp1_input": "30000\n",
            "sys/class/hwmon/hwmon1/name": "k10temp\n",
            "sys/class/hwmon/hwmon1/temp1_input": "61500\n",
        },
        {
            "sys/class/thermal/thermal_zone0/type": "acpitz\n",
            "sys/class/thermal/thermal_zone0/temp": "20000\n",
            "sys/class/thermal/thermal_zone1/type": "x86_pkg_temp\n",
            "sys/class/thermal/thermal_zone1/temp": "61500\n",
        },
    ],
)
def test_temperature_is_the_processors(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, files)
    assert CpuMeter(tmp_path).read().temperature_c == 61.5


def test_readings_the_system_lacks_are_omitted(tmp_path: Path) -> None:
    reading = CpuMeter(tmp_path).read()
    assert (reading.power_w, reading.temperature_c, reading.memory_used_bytes) == (None,) * 3
    assert reading.busy_percent is not None
    assert MachineMeter(tmp_path).busy_percent() is None


def test_machine_is_busy_if_its_cores_are_not_idle(tmp_path: Path) -> None:
    write(tmp_path, {"proc/stat": "cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1 2 3 4\n"})
    meter = MachineMeter(tmp_path)
    write(tmp_path, {"proc/stat": "cpu  150 0 120 720 110 0 0 0 50 0\ncpu0 1 2 3 4\n"})
    assert meter.busy_percent() == pytest.approx(70)
    assert meter.busy_percent() is None
