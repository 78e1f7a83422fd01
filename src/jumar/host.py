"""The machine around the devices: its processor, its memory, the limits of its container.

Read from what Linux says in files; elsewhere as much of it as Python knows.
"""

import os
import platform
import re
import sys
from pathlib import Path

SYSTEM = Path("/")
"""Below it lie `proc` and `sys`."""


def processor_name() -> str:
    """The model of the CPU, or its architecture where the system does not say."""
    model = re.search(r"^model name\s*:\s*(.+)$", _system_text("proc/cpuinfo"), re.MULTILINE)
    return model[1].strip() if model else platform.processor() or platform.machine()


def process_peak_bytes() -> int:
    """Most memory that this process held at once."""
    import resource  # which Windows lacks

    # First, because ru_maxrss of a child begins at the memory of the process that started it:
    # the runs of a sweep would show that of the sweep.
    peak = re.search(r"VmHWM:\s+(\d+) kB", _system_text("proc/self/status"))
    if peak:
        return int(peak[1]) * 1024
    # Kibibytes on Linux, bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def reset_process_peak() -> None:
    """Start the measurement of `process_peak_bytes` anew, where Linux allows it."""
    try:
        (SYSTEM / "proc/self/clear_refs").write_text("5")
    except OSError:
        return


def memory_bytes() -> tuple[int, int]:
    """Memory that can still be had, and all of it; within the container's limit."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = page * os.sysconf("SC_PHYS_PAGES")
    free = page * os.sysconf("SC_AVPHYS_PAGES")
    available = re.search(r"MemAvailable:\s+(\d+) kB", _system_text("proc/meminfo"))
    free = int(available[1]) * 1024 if available else free
    # A group without a limit says `max`, or in version 1 a number beyond any machine.
    limits = cgroup_values("memory.max", "memory.limit_in_bytes")
    limit = min((int(text) for text in limits if text.isdigit()), default=total)
    if limit < total:
        total = limit
        used = cgroup_values("memory.current", "memory.usage_in_bytes")
        # The file cache counts as used, and goes as soon as somebody needs the memory.
        cache = re.search(r"inactive_file (\d+)", " ".join(cgroup_values("memory.stat")))
        taken = int(used[0]) - (int(cache[1]) if cache else 0) if used else 0
        free = min(free, limit - max(taken, 0))
    return max(free, 0), total


def cgroup_values(*names: str) -> list[str]:
    """What the control groups of this process say under any of these file names, one a group.

    A container's limits stand in its own group or in one above it, so all of them are read.
    """
    values: list[str] = []
    for line in _system_text("proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        root = SYSTEM.joinpath("sys/fs/cgroup", *([controllers] if controllers else []))
        place = root / group.lstrip("/")
        for folder in (place, *place.parents):
            for name in names:
                try:
                    values.append((folder / name).read_text().strip())
                except OSError:
                    continue
            if folder == root:
                break
    return values


def _system_text(path: str) -> str:
    """What Linux says in a file, or nothing where there is no such file."""
    try:
        return (SYSTEM / path).read_text()
    except OSError:
        return ""
