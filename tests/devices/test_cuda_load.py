from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jumar.devices.cuda_load import NvidiaSmiMeter, cuda_meter, parse_nvidia_smi
from jumar.devices.load import DeviceLoad, UnreadableLoadError


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "97, 40125, 81559, 412.31, 61\n",
            DeviceLoad(
                busy_percent=97,
                memory_used_bytes=40125 * 2**20,
                memory_total_bytes=81559 * 2**20,
                power_w=412.31,
                temperature_c=61,
            ),
        ),
        # A part of a divided GPU has no separate load; old cards report no power.
        (
            "[N/A], 12, 9856, [N/A], 35\n",
            DeviceLoad(
                memory_used_bytes=12 * 2**20, memory_total_bytes=9856 * 2**20, temperature_c=35
            ),
        ),
        ("[Not Supported], [N/A], [N/A], [N/A], [N/A]", DeviceLoad()),
    ],
)
def test_nvidia_smi_line_is_parsed(line: str, expected: DeviceLoad) -> None:
    assert parse_nvidia_smi(line) == expected


@pytest.mark.parametrize("text", ["", "No devices were found\n", "NVIDIA-SMI has failed"])
def test_invalid_reading_is_named(text: str) -> None:
    with pytest.raises(UnreadableLoadError, match="printed no reading"):
        parse_nvidia_smi(text)


def test_without_nvml_nvidia_smi_is_queried_for_this_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\necho "$1" >asked\necho "5, 1, 2, 3, 4"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.chdir(tmp_path)

    def utilization(_: int) -> Any:
        raise ModuleNotFoundError("pynvml does not seem to be installed")

    properties = SimpleNamespace(uuid="b4c1-7")
    backend: Any = SimpleNamespace(
        utilization=utilization, get_device_properties=lambda _: properties
    )
    meter = cuda_meter(backend, 0)
    assert isinstance(meter, NvidiaSmiMeter)
    assert meter.read().busy_percent == 5
    assert (tmp_path / "asked").read_text() == "--id=GPU-b4c1-7\n"


def test_readings_unknown_to_nvml_are_omitted() -> None:
    def power_draw(_: int) -> Any:
        raise RuntimeError("not supported")

    backend: Any = SimpleNamespace(
        utilization=lambda _: 42,
        power_draw=power_draw,
        temperature=lambda _: 50,
        mem_get_info=lambda _: (3, 10),
    )
    assert cuda_meter(backend, 0).read() == DeviceLoad(
        busy_percent=42, memory_used_bytes=7, memory_total_bytes=10, temperature_c=50
    )
