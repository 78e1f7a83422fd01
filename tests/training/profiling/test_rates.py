"""The measured rates of this machine, as an entry of a table of chips."""

import platform
import re
from pathlib import Path

import torch

from jumar.training.profiling.rates import cpu_rates


def test_rates_say_on_what_and_how_they_were_measured() -> None:
    rates = cpu_rates()
    threads = torch.get_num_threads()
    cpus = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    found = re.search(r"^model name\s*:\s*(\S.*)$", cpus, re.MULTILINE)
    name = " ".join(found[1].split())[:80] if found else platform.processor() or "CPU"
    assert (rates["name"], rates["matches"]) == (name, [name.lower()])
    assert rates["source"] == (
        f"measured after the recording with {threads} threads: products of 768x768 matrices, "
        "additions of 8192 numbers and of 1, copies of 64 MB"
    )
    assert (rates["cube_cores"], rates["vector_cores"]) == (threads, threads)
    assert rates["estimate"] is False
    assert list(rates["cube_tflops"]) == ["FLOAT", "BF16"]
    # A core makes at least a hundredth of a GFLOP and at most 10 TFLOP a second.
    for rate in (*rates["cube_tflops"].values(), rates["vector_tflops"]):
        assert 1e-5 <= rate < 10 * max(threads, 16)
    assert 0.05 < rates["hbm_gb_s"] < 10_000
    assert 0.05 < rates["launch_us"] < 10_000
