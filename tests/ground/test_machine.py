"""What the machine says of itself, and the limits of a container in both versions of cgroups."""

import os
import platform
import re
from pathlib import Path
from typing import Any

import pytest

from jumar.ground import machine
from jumar.ground.errors import UserError

MIB = 2**20


def system(root: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with 4 GiB to be had and these files."""
    for name, text in {"proc/meminfo": "MemAvailable:  4194304 kB\n", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    monkeypatch.setattr(machine, "SYSTEM", root)


def test_machine_has_a_processor_and_memory() -> None:
    free, total = machine.memory_bytes()
    assert 0 < free <= total <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert machine.processor_name()
    assert machine.process_peak_bytes() > 10 * MIB


def test_without_proc_pythons_information_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "SYSTEM", tmp_path)
    assert machine.processor_name() == (platform.processor() or platform.machine())
    assert machine.process_peak_bytes() > 10 * MIB
    free, total = machine.memory_bytes()
    assert 0 < free <= total
    assert machine.cgroup_values("memory.max") == []


def test_smallest_ancestor_limit_counts_and_file_cache_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = "sys/fs/cgroup/pod/container"
    files = {
        "proc/self/cgroup": "0::/pod/container\n",
        f"{group}/memory.max": "max\n",
        f"{group}/memory.current": f"{300 * MIB}\n",
        f"{group}/memory.stat": f"anon 5\ninactive_file {100 * MIB}\n",
        "sys/fs/cgroup/pod/memory.max": f"{1024 * MIB}\n",
    }
    system(tmp_path, files, monkeypatch)
    assert machine.memory_bytes() == (824 * MIB, 1024 * MIB)
    assert machine.cgroup_values("memory.max") == ["max", str(1024 * MIB)]


def test_cgroup_v1_limits_are_found_under_their_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = "sys/fs/cgroup/memory/docker/1"
    files = {
        "proc/self/cgroup": "5:memory:/docker/1\n1:name=systemd:/docker/1\n",
        f"{group}/memory.limit_in_bytes": f"{512 * MIB}\n",
        f"{group}/memory.usage_in_bytes": f"{600 * MIB}\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2**63 - 4096}\n",
    }
    system(tmp_path, files, monkeypatch)
    assert machine.memory_bytes() == (0, 512 * MIB)


def test_usable_cores_are_at_most_those_of_the_affinity() -> None:
    assert 1 <= machine.usable_cores() <= (os.cpu_count() or 1)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_cores_that_the_process_may_not_use_are_not_counted() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert machine.usable_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.parametrize("what", ["processes", "threads"])
def test_process_count_is_limited_by_cores_and_memory(
    what: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system(tmp_path, {}, monkeypatch)  # or the limit would change with what else runs
    most = min(64, machine.PER_CORE * machine.usable_cores())
    assert machine.checked_count(most, what, "--jobs") == most
    with pytest.raises(UserError, match=rf"--jobs: 100000 {what}") as refused:
        machine.checked_count(100_000, what, "--jobs")
    number = int(re.findall(r"At most (\d+) here", str(refused.value))[0])
    assert machine.checked_count(number, what, "--jobs") == number
    with pytest.raises(UserError):
        machine.checked_count(number + 1, what, "--jobs")


def test_each_process_needs_memory_and_threads_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system(tmp_path, {"proc/meminfo": "MemAvailable:  262144 kB\n"}, monkeypatch)
    with pytest.raises(UserError, match="At most 4 here: 64 MiB of free memory for each"):
        machine.checked_count(5, "processes", "data.workers")
    assert machine.checked_count(5, "threads", "threads.intra_op") == 5


def test_memory_of_a_process_is_read_and_an_ended_one_has_none() -> None:
    block = bytearray(64 << 20)
    block[::4096] = b"x" * len(block[::4096])
    assert machine.process_memory(os.getpid()) > len(block)
    assert machine.process_memory(2**22 + 1) == 0


def test_lack_of_space_is_reported_for_the_nearest_existing_folder(tmp_path: Path) -> None:
    machine.check_disk(1, tmp_path)
    machine.check_disk(1, tmp_path / "not" / "yet")
    with pytest.raises(UserError) as error:
        machine.check_disk(2.0**70, tmp_path / "not" / "yet")
    assert re.fullmatch(
        r"about 1,099,511,627,776\.0 GiB is needed, but only \S+ \S+ is free", error.value.what
    )
    assert error.value.where == str(tmp_path / "not" / "yet")
    assert error.value.todo == "Free some space, or choose a folder on another disk."
