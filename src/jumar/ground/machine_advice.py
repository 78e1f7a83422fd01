"""Advice about conditions on this machine that slow down or end training, with evidence."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jumar.ground.machine import cgroup_values, memory_bytes, text_of, usable_cores
from jumar.ground.text import counted, size_text

_MIN_SHARED_MEMORY = 512 << 20
_MIN_FREE_MEMORY = 2 << 30
_MIN_FILES = 1024
_CORES_EACH = 4
"""Cores per accelerator: decoding, and the process that feeds it."""
_MAX_THROTTLED = 0.05
"""Fraction of throttled periods above which there is a finding."""
_BLOCKING = {
    "CUDA_LAUNCH_BLOCKING": "the host waits for every CUDA kernel",
    "ASCEND_LAUNCH_BLOCKING": "the host waits for every operator of the NPU",
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "every tensor is allocated anew on the GPU",
}
_LIMITING = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One finding.

    Attributes:
        level: `warning` if it slows down or ends a run, `note` if it may.
        what: The finding.
        todo: What to do.
        source: The file, variable or call that the finding is based on.
    """

    level: Literal["warning", "note"]
    what: str
    todo: str
    source: str


def machine_advice(root: Path, variables: Mapping[str, str], *, accelerators: int) -> list[Advice]:
    """Return all findings, warnings first; what cannot be determined is left out.

    Args:
        root: The folder that contains `dev`, `proc` and `sys`.
        variables: Environment variables.
        accelerators: Number of GPUs or NPUs.
    """
    advice = [
        *_memory(),
        *_shared_memory(root),
        *_switches(variables),
        *_cores(accelerators),
        *_quota(),
        *_governor(root),
        *_threads(variables),
        *_load(root),
        *_open_files(),
    ]
    return sorted(advice, key=lambda item: item.level != "warning")


def _memory() -> Iterator[Advice]:
    free_bytes, total = memory_bytes()
    if free_bytes < _MIN_FREE_MEMORY:
        yield Advice(
            level="warning",
            what=f"only {size_text(free_bytes)} of {size_text(total)} of memory is free",
            todo="End other processes, or raise the container's limit; a smaller data.batch_size "
            "or data.workers=0 needs less.",
            source="/proc/meminfo and memory.max of the control group",
        )


def _shared_memory(root: Path) -> Iterator[Advice]:
    try:
        status = os.statvfs(root / "dev" / "shm")
    except OSError:
        return
    size = status.f_frsize * status.f_blocks
    if size < _MIN_SHARED_MEMORY:
        yield Advice(
            level="warning",
            what=f"shared memory has only {size_text(size)}; loader processes pass batches "
            "through it",
            todo="Start the container with --shm-size=8g or --ipc=host; without either, "
            "--set data.workers=0 loads in the training process.",
            source="size of /dev/shm",
        )


def _switches(variables: Mapping[str, str]) -> Iterator[Advice]:
    for name, effect in _BLOCKING.items():
        if variables.get(name, "0") not in ("", "0"):
            yield Advice(
                level="warning",
                what=f"{name}={variables[name]}: {effect}",
                todo=f"unset {name}, unless you are looking for a defect",
                source=name,
            )
    for name in _LIMITING:
        if variables.get(name):
            yield Advice(
                level="note",
                what=f"{name}={variables[name]} limits which CPU instructions are used",
                todo=f"unset {name}, unless you want another processor's results",
                source=name,
            )


def _cores(accelerators: int) -> Iterator[Advice]:
    cores = usable_cores()
    if accelerators and cores < _CORES_EACH * accelerators:
        yield Advice(
            level="warning",
            what=f"{counted(cores, 'usable core')} for {counted(accelerators, 'accelerator')}: "
            "decoding may not keep up with training",
            todo="Compare `data` with `batch_time` in the log; if it is a large part, give the "
            f"process {_CORES_EACH} cores for each accelerator, or store smaller images.",
            source="affinity of the process and cpu.max of the control group",
        )


def _quota() -> Iterator[Advice]:
    for text in cgroup_values("cpu.stat"):
        periods = re.search(r"^nr_periods (\d+)", text, re.MULTILINE)
        throttled = re.search(r"^nr_throttled (\d+)", text, re.MULTILINE)
        if periods and throttled and int(throttled[1]) > _MAX_THROTTLED * int(periods[1]) > 0:
            share = int(throttled[1]) / int(periods[1])
            yield Advice(
                level="note",
                what=f"the container used up its CPU quota in {share:.0%} of all periods, and was "
                "paused until the next",
                todo="Raise its CPU limit, or use fewer threads and loader processes: "
                "--set threads.intra_op=N, data.workers=N",
                source="cpu.stat of the control group",
            )
            return


def _governor(root: Path) -> Iterator[Advice]:
    folder = root / "sys" / "devices" / "system" / "cpu" / "cpu0" / "cpufreq"
    governor, driver = (
        text_of(folder / f"scaling_{name}").strip() for name in ("governor", "driver")
    )
    # With the drivers of newer processors, `powersave` lets the processor choose its frequency.
    if governor == "powersave" and driver and "pstate" not in driver:
        yield Advice(
            level="warning",
            what="the processor is held at its lowest frequency (governor powersave)",
            todo="sudo cpupower frequency-set -g performance",
            source=f"{folder / 'scaling_governor'}",
        )


def _threads(variables: Mapping[str, str]) -> Iterator[Advice]:
    cores, text = usable_cores(), variables.get("OMP_NUM_THREADS", "")
    if text.isdigit() and 0 < int(text) < cores:
        yield Advice(
            level="note",
            what=f"OMP_NUM_THREADS={text}: an operator on the CPU uses {text} of {cores} usable "
            "cores",
            todo="unset OMP_NUM_THREADS, unless several processes share the machine",
            source="OMP_NUM_THREADS",
        )


def _load(root: Path) -> Iterator[Advice]:
    cores, text = usable_cores(), text_of(root / "proc" / "loadavg")
    match = re.match(r"\d+\.\d+ (\d+\.\d+) ", text)
    # The load is measured for the whole machine, so it is compared only if all cores may be used.
    if match and cores == os.cpu_count() and float(match[1]) > 1.5 * cores:
        yield Advice(
            level="note",
            what=f"a load of {match[1]} on {counted(cores, 'core')} over 5 minutes: other work "
            "affects any time measured now",
            todo="Wait until that work is done, or compare only times measured side by side.",
            source="/proc/loadavg",
        )


def _open_files() -> Iterator[Advice]:
    try:
        import resource  # not available on Windows
    except ImportError:
        return
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft_limit < _MIN_FILES:
        yield Advice(
            level="note",
            what=f"a process may open only {soft_limit} files; data sets of many shards need more",
            todo="ulimit -n 4096",
            source="RLIMIT_NOFILE",
        )
