"""What `npu-smi info` of several releases prints, as people showed it in issues and guides."""

from pathlib import Path

import pytest

from jumar.devices.load import DeviceLoad, UnreadableLoadError
from jumar.devices.npu import Npu
from jumar.devices.npu_load import NpuMeter, number_on_machine, parse_npu_smi

SAMPLES = Path(__file__).parent / "npu_smi"


def load(busy: float, used: int, total: int, power: float | None, temperature: float) -> DeviceLoad:
    return DeviceLoad(
        busy_percent=busy,
        memory_used_bytes=used * 2**20,
        memory_total_bytes=total * 2**20,
        power_w=power,
        temperature_c=temperature,
    )


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        (
            "910a-20.2.2",
            [load(0, 0, 32768, 68.6, 36), load(37, 1200, 32768, 63.7, 31)],
        ),
        (
            "310-20.2.2",
            [load(0, 2621, 8192, 12.8, 46), load(0, 2621, 8192, 12.8, 46)],
        ),
        ("310b-23.0.rc3", [load(0, 4974, 11577, 8.9, 54)]),
        (
            "310p-25.3.rc1",
            [load(0, 35552, 44278, None, 86), load(0, 35270, 43693, None, 84)],
        ),
        (
            "910b2-25.0.rc1.1",
            [
                load(0, 3414, 65536, 95.5, 43),
                load(0, 61258, 65536, 95.7, 44),
                load(0, 34445, 65536, 97.9, 44),
            ],
        ),
        (
            "a3-26.0.rc2",
            [load(0, 3419, 65536, 162.6, 34), load(0, 2874, 65536, None, 34)],
        ),
    ],
)
def test_npu_smi_tables_of_every_release_are_parsed(
    release: str, expected: list[DeviceLoad]
) -> None:
    assert parse_npu_smi((SAMPLES / f"{release}.txt").read_text()) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no table: nothing"),
        ("dcmi module initialize failed. ret is -8005\n", "dcmi module initialize failed"),
        ("| NPU   Name | Health | Power(W) |\n| Chip | Bus-Id | AICore(%) |\n", "lists no chip"),
    ],
)
def test_output_without_a_table_is_named(text: str, why: str) -> None:
    with pytest.raises(UnreadableLoadError, match=why):
        parse_npu_smi(text)


@pytest.mark.parametrize(
    ("index", "visible", "place"), [(1, "", 1), (1, "4,6", 6), (0, " 3 ", 3), (1, "3", 1)]
)
def test_visible_index_maps_to_the_machines_index(index: int, visible: str, place: int) -> None:
    assert number_on_machine(index, visible) == place


def _npu_smi(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "npu-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "1,2")


def test_meter_queries_the_npu_visible_to_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _npu_smi(tmp_path, f"cat '{SAMPLES}/910b2-25.0.rc1.1.txt'", monkeypatch)
    reading = Npu(index=1, name="Ascend910B2").load_meter().read()
    assert reading == load(0, 34445, 65536, 97.9, 44)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'no permission' >&2; exit 1", "exit code 1: no permission"),
        (f"cat '{SAMPLES}/310b-23.0.rc3.txt'", "lists 1 chips, but none with the number 1"),
    ],
)
def test_failing_npu_smi_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str
) -> None:
    _npu_smi(tmp_path, script, monkeypatch)
    with pytest.raises(UnreadableLoadError, match=why):
        NpuMeter(0).read()


def test_missing_npu_smi_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnreadableLoadError, match="npu-smi is not installed"):
        NpuMeter(0).read()
