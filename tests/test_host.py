"""What the machine says of itself, and the limits of a container in both versions of cgroups."""

import os
import platform
from pathlib import Path

import pytest

from jumar import host

MIB = 2**20


def system(root: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with 4 GiB to be had and these files."""
    for name, text in {"proc/meminfo": "MemAvailable:  4194304 kB\n", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    monkeypatch.setattr(host, "SYSTEM", root)


def test_the_machine_has_a_processor_and_memory() -> None:
    free, total = host.memory_bytes()
    assert 0 < free <= total <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert host.processor_name()
    assert host.process_peak_bytes() > 10 * MIB


def test_a_system_that_says_nothing_is_known_by_what_python_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "SYSTEM", tmp_path)
    assert host.processor_name() == (platform.processor() or platform.machine())
    assert host.process_peak_bytes() > 10 * MIB
    host.reset_process_peak()
    free, total = host.memory_bytes()
    assert 0 < free <= total
    assert host.cgroup_values("memory.max") == []


def test_the_smallest_limit_above_a_process_counts_and_its_file_cache_is_free(
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
    assert host.memory_bytes() == (824 * MIB, 1024 * MIB)
    assert host.cgroup_values("memory.max") == ["max", str(1024 * MIB)]


def test_limits_of_the_first_version_are_found_below_their_controller(
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
    assert host.memory_bytes() == (0, 512 * MIB)
