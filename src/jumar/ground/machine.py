"""The host machine: its processor, memory, and container limits.

Read from `/proc` and `/sys` on Linux; on other systems, limited to what Python provides.
"""

import math
import os
import platform
import re
import shutil
import sys
from pathlib import Path
from typing import Literal

from jumar.ground.errors import UserError
from jumar.ground.paths import exists
from jumar.ground.text import size_text

SYSTEM = Path("/")
"""The folder that contains `proc` and `sys`."""
PER_CORE = 4
"""Maximum processes or threads per core: some wait for files while others compute; more would only
compete for time and memory."""
PROCESSES_ANYWHERE, THREADS_ANYWHERE = 64, 256
"""Counts that any machine can handle, so that a server's run can be evaluated on a laptop."""
_ALWAYS_FITS = 1 << 30
MIN_BYTES_EACH = 64 << 20
"""Memory of a Python process with torch, in addition to what it shares with its parent."""


def processor_name() -> str:
    """Return the model of the CPU, or its architecture if the system does not report the model."""
    model = re.search(r"^model name\s*:\s*(.+)$", text_of(SYSTEM / "proc/cpuinfo"), re.MULTILINE)
    return model[1].strip() if model else platform.processor() or platform.machine()


def process_peak_bytes() -> int:
    """Return the peak memory of this process."""
    import resource  # not available on Windows

    # Preferred, since ru_maxrss of a child starts at its parent's memory: the runs of a sweep
    # would report that of the sweep.
    peak = re.search(r"VmHWM:\s+(\d+) kB", text_of(SYSTEM / "proc/self/status"))
    if peak:
        return int(peak[1]) * 1024
    # Kibibytes on Linux, bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def process_memory(pid: int) -> int:
    """Return the memory in use by a process, in bytes; 0 if it has ended or this is unknown."""
    match = re.search(r"VmRSS:\s+(\d+) kB", text_of(SYSTEM / f"proc/{pid}/status"))
    return int(match[1]) * 1024 if match else 0


def memory_bytes() -> tuple[int, int]:
    """Return the available and the total memory, within the container's limit."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = page * os.sysconf("SC_PHYS_PAGES")
    free_bytes = page * os.sysconf("SC_AVPHYS_PAGES")
    match = re.search(r"MemAvailable:\s+(\d+) kB", text_of(SYSTEM / "proc/meminfo"))
    free_bytes = int(match[1]) * 1024 if match else free_bytes
    # Without a limit, the value is `max`, or in version 1 larger than the memory of any machine.
    limits = cgroup_values("memory.max", "memory.limit_in_bytes")
    limit = min((int(text) for text in limits if text.isdigit()), default=total)
    if limit < total:
        total = limit
        used_values = cgroup_values("memory.current", "memory.usage_in_bytes")
        # The file cache counts as used, but is freed when memory is needed.
        cache = re.search(r"inactive_file (\d+)", " ".join(cgroup_values("memory.stat")))
        used_bytes = int(used_values[0]) - (int(cache[1]) if cache else 0) if used_values else 0
        free_bytes = min(free_bytes, limit - max(used_bytes, 0))
    return max(free_bytes, 0), total


def usable_cores() -> int:
    """Return how many cores this process may use, by its affinity and the container's CPU quota."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    quotas = [text.split() for text in cgroup_values("cpu.max")]
    periods = cgroup_values("cpu.cfs_period_us")
    quotas += [list(pair) for pair in zip(cgroup_values("cpu.cfs_quota_us"), periods, strict=False)]
    for quota in quotas:
        # `max` and -1 mean no limit.
        if len(quota) == 2 and all(text.isdigit() for text in quota):
            cores = min(cores, math.ceil(int(quota[0]) / int(quota[1])))
    return max(cores, 1)


def checked_count(count: int, what: Literal["processes", "threads"], where: str) -> int:
    """Check that this machine can handle a number of processes or threads, and return it.

    100,000 of them would exhaust a machine's memory before the first one has done anything.

    Args:
        count: The requested number.
        what: What to count: processes have their own memory, threads share it.
        where: The option or field, for the message.

    Raises:
        UserError: Cores or memory allow only fewer; the message states how many.
    """
    always_allowed = PROCESSES_ANYWHERE if what == "processes" else THREADS_ANYWHERE
    maximum = max(always_allowed, PER_CORE * usable_cores())
    limit = f"{PER_CORE} for each usable core, and {always_allowed} on any machine"
    fitting_count = max(1, memory_bytes()[0] // MIN_BYTES_EACH)
    if what == "processes" and fitting_count < maximum:
        maximum, limit = fitting_count, f"{MIN_BYTES_EACH >> 20} MiB of free memory for each"
    if count > maximum:
        raise UserError(
            f"{count} {what} are more than this machine can handle",
            where=where,
            todo=f"At most {maximum} here: {limit}.",
        )
    return count


def check_fits(count: int, bytes_each: int, what: str, field: str) -> None:
    """Raise an error if a number of items exceeds the free memory.

    Linux overcommits memory, and would kill the process only when the memory is used.

    Args:
        count: Number of items needed at once.
        bytes_each: Size of each item.
        what: Name of the items, in the plural.
        field: The option or field to lower, for the message.

    Raises:
        UserError: The items do not fit; the message states how many would.
    """
    needed_bytes = count * bytes_each
    if needed_bytes < _ALWAYS_FITS:
        return  # free memory is read from files, and this is called for each batch
    free_bytes = memory_bytes()[0]
    if needed_bytes > free_bytes:
        fitting_count = free_bytes // bytes_each
        raise UserError(
            f"{count} {what} of {size_text(bytes_each)} do not fit into the "
            f"{size_text(free_bytes)} of free memory",
            where=field,
            todo=f"At most {fitting_count} fit; half of that is safer."
            if fitting_count
            else "Not even one fits: make them smaller.",
        )


def check_disk(needed_bytes: float, destination: Path) -> None:
    """Raise an error if files do not fit on the disk of a destination, which may not exist yet.

    Raises:
        UserError: They do not fit.
    """
    absolute = destination.absolute()
    existing = next(path for path in (absolute, *absolute.parents) if exists(path))
    free_bytes = shutil.disk_usage(existing).free
    if needed_bytes > free_bytes:
        raise UserError(
            f"about {size_text(needed_bytes)} is needed, but only {size_text(free_bytes)} is free",
            where=str(destination),
            todo="Free some space, or choose a folder on another disk.",
        )


def cgroup_values(*names: str) -> list[str]:
    """Return the contents of the named files in this process's control groups.

    A container's limits are in its own group or in one above it, so all of them are read.
    """
    values: list[str] = []
    for line in text_of(SYSTEM / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        root = SYSTEM.joinpath("sys/fs/cgroup", *([controllers] if controllers else []))
        lowest_folder = root / group.lstrip("/")
        for folder in (lowest_folder, *lowest_folder.parents):
            for name in names:
                try:
                    values.append((folder / name).read_text().strip())
                except OSError:
                    continue
            if folder == root:
                break
    return values


def text_of(path: Path) -> str:
    """Return the content of a system's file, or an empty string if it does not exist."""
    try:
        return path.read_text()
    except OSError:
        return ""
