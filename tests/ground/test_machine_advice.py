"""Advice about a machine: given where its files and variables show a lack, and only there."""

import os
from pathlib import Path

import pytest

from jumar.ground import machine
from jumar.ground.machine_advice import Advice, machine_advice

CORES = len(os.sched_getaffinity(0))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 16 GiB and one control group without limits."""
    write(tmp_path, "proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n")
    write(tmp_path, "proc/self/cgroup", "0::/\n")
    monkeypatch.setattr(machine, "SYSTEM", tmp_path)
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def advice(root: Path, accelerators: int = 0, **variables: str) -> list[Advice]:
    result = machine_advice(root, variables, accelerators=accelerators)
    # Of the process that runs the tests, not of the files.
    return [each for each in result if each.source != "RLIMIT_NOFILE"]


def test_well_equipped_machine_gets_no_advice(root: Path) -> None:
    write(root, "proc/loadavg", "0.10 0.10 0.10 1/100 1\n")
    write(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")
    write(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate\n")
    write(root, "sys/fs/cgroup/cpu.stat", "nr_periods 1000\nnr_throttled 10\n")
    assert advice(root, CUDA_LAUNCH_BLOCKING="0", OMP_NUM_THREADS=str(CORES)) == []


def test_shortages_name_their_source_and_warnings_come_first(root: Path) -> None:
    write(root, "proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 1048576 kB\n")
    write(root, "proc/loadavg", "0.10 999.00 0.10 1/100 1\n")
    write(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")
    write(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "acpi-cpufreq\n")
    write(root, "sys/fs/cgroup/cpu.stat", "nr_periods 1000\nnr_throttled 510\n")
    result = advice(root, accelerators=999, CUDA_LAUNCH_BLOCKING="1", ATEN_CPU_CAPABILITY="default")
    levels = [each.level for each in result]
    assert levels == sorted(levels, key=["warning", "note"].index)
    assert all(each.todo and each.source for each in result)
    texts = "\n".join(each.what for each in result)
    for expected in (
        "only 1.0 GiB of ",
        "CUDA_LAUNCH_BLOCKING=1: the host waits",
        "999 accelerators",
        "lowest frequency",
        "in 51% of all periods",
        "ATEN_CPU_CAPABILITY=default limits which CPU instructions",
    ):
        assert expected in texts, texts
    assert ("a load of 999.00" in texts) == (os.cpu_count() == CORES)


def test_small_shared_memory_is_named_with_its_size(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = list(os.statvfs("/"))
    values[1], values[2] = 4096, (64 << 20) // 4096  # size and number of blocks, as in Docker
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(values))
    (result,) = advice(root)
    assert result.what.startswith("shared memory has only 64 MiB")
    assert "--shm-size" in result.todo
    assert result.source == "size of /dev/shm"


@pytest.mark.skipif(CORES < 2, reason="needs two cores")
def test_threads_fewer_than_cores_are_a_note(root: Path) -> None:
    (result,) = advice(root, OMP_NUM_THREADS="1")
    assert (result.level, result.source) == ("note", "OMP_NUM_THREADS")
    assert advice(root, OMP_NUM_THREADS="") == []
