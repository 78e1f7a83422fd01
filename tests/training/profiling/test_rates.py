"""The measured rates of this machine, as an entry of a table of chips."""

import platform
import re
import time
from pathlib import Path

import pytest
import torch

from jumar.training.profiling.rates import _best, cpu_rates


class Ticking:
    """A clock that advances by the same time at each reading."""

    def __init__(self) -> None:
        self.read = 0

    def __call__(self) -> float:
        self.read += 1
        return self.read / 1024


def test_rates_are_operations_and_bytes_per_round_time_with_a_description(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "perf_counter", Ticking())
    result = cpu_rates()
    each = 1 / 1024
    # A product has 2 n**3 operations; an addition is repeated 200 times in a round.
    products = round(2 * 768**3 / each / 1e12, 4)
    assert result["cube_tflops"] == {"FLOAT": products, "BF16": products}
    assert result["launch_us"] == round(each / 200 * 1e6, 2)
    # No longer than the shortest op: taken for a nanosecond.
    assert result["vector_tflops"] == round(8192 / 1e-9 * torch.get_num_threads() / 1e12, 4)
    # 16 Mi numbers of 4 bytes are read and written.
    assert result["hbm_gb_s"] == round(2 * 4 * 2**24 / each / 1e9, 2)
    threads = torch.get_num_threads()
    cpus = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    known = re.search(r"^model name\s*:\s*(\S.*)$", cpus, re.MULTILINE)
    name = " ".join(known[1].split())[:80] if known else platform.processor() or "CPU"
    assert (result["name"], result["matches"]) == (name, [name.lower()])
    assert result["source"] == (
        f"measured after the recording with {threads} threads: products of 768x768 matrices, "
        "additions of 8192 numbers and of 1, copies of 64 MB"
    )
    assert (result["cube_cores"], result["vector_cores"]) == (threads, threads)
    assert result["estimate"] is False


def test_best_of_seven_rounds_counts_after_a_warm_up_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    taken = iter([100.0, *(5.0, 5.0), *(4.0, 2.0), *(6.0, 6.0), *[9.0] * 6, *(3.5, 3.5)])

    def once() -> None:
        nonlocal now
        now += next(taken)

    monkeypatch.setattr(time, "perf_counter", lambda: now)
    assert _best(once, 2) == 3.0
    assert list(taken) == []
    assert _best(lambda: None) == 1e-9
