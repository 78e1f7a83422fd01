"""`jumar doctor` on machines with CANN, written as trees of files, and on several ranks."""

import json
import sys
from pathlib import Path

import pytest

from jumar.cli.doctor import inspect
from jumar.devices.torch_facts import torch_fault
from jumar.ground.errors import UserError
from jumar.runs.rank_speed import RankSpeed, check_ranks, verdicts
from tests.cli.command_line import on_two_ranks

DRIVER = """Version=25.2.0
ascendhal_version=7.35.23
Innerversion=V100R001C22SPC001B100
compatible_version=[V100R001C19],[V100R001C20],[V100R001C21],[V100R001C22]
compatible_version_fw=[7.0.0,7.7.99]
package_version=25.2.0
"""
TOOLKIT = """package_name=Ascend-cann-toolkit
version=8.2.RC1
innerversion=V100R001C22SPC001B231
arch=aarch64
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of a machine with driver, firmware and CANN; its adapter is not installed."""
    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
    write(tmp_path, "driver/version.info", DRIVER)
    write(tmp_path, "firmware/version.info", "Version=7.7.0.1.231\nfirmware_version=1.0\n")
    write(tmp_path, "ascend-toolkit/latest/aarch64-linux/ascend_toolkit_install.info", TOOLKIT)
    (tmp_path / "sys" / "class" / "net" / "eth0").mkdir(parents=True)
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    file = root / "usr" / "local" / "Ascend" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_versions_are_shown_from_the_hardware_up(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert inspect(machine, {}) == 0
    out = capsys.readouterr().out
    assert "from driver to framework: driver 25.2.0 · firmware 7.7.0.1.231 · CANN 8.2.RC1 · " in out
    assert "mismatch" not in out
    assert f"CANN is in {machine}/usr/local/Ascend/ascend-toolkit/latest, but" in out


def test_firmware_incompatible_with_the_driver_is_an_error(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(machine, "firmware/version.info", "Version=6.4.12.1.241\n")
    assert inspect(machine, {}) == 1
    out = capsys.readouterr().out
    assert "error: first mismatch: driver 25.2.0 needs firmware 7.0.0 to 7.7.99, but 6." in out


def test_old_driver_and_wrong_variable_are_both_reported_also_in_json(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(machine, "driver/version.info", "Version=23.0.3\n")
    variables = {"HCCL_CONNECT_TIMEOUT": "100", "HCCL_SOCKET_IFNAME": "bond0"}
    assert inspect(machine, variables, as_json=True) == 1
    read = json.loads(capsys.readouterr().out)
    assert (read["versions"]["npu_driver"], read["versions"]["npu_firmware"]) == (
        "23.0.3",
        "7.7.0.1.231",
    )
    errors = [found["what"] for found in read["findings"] if found["level"] == "error"]
    assert errors[0].startswith("first mismatch: CANN 8.2.RC1 is for drivers 24.1, 25.0, 25.2")
    assert any("HCCL_CONNECT_TIMEOUT=100 must be" in what for what in errors)
    assert any("HCCL_SOCKET_IFNAME=bond0 matches no interface" in what for what in errors)


def test_machine_without_npu_software_gets_no_line_about_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
    inspect(tmp_path, {})
    assert "from driver to framework" not in capsys.readouterr().out


def ranks(*speeds: tuple[float, float]) -> list[RankSpeed]:
    return [
        RankSpeed(rank=rank, host=f"node{rank}", device="x", compute_s=compute, link_s=link)
        for rank, (compute, link) in enumerate(speeds)
    ]


def test_slowest_rank_and_link_are_named_first() -> None:
    even = (0.010, 0.004)
    assert verdicts(ranks(even, even, even)) == []
    assert verdicts(ranks(even, (0.012, 0.008), even)) == []
    slow = verdicts(ranks(even, (0.030, 0.004), even, (0.010, 0.040)))
    assert slow == [
        "the link from rank 3 (node3) to rank 0 (node0) takes 10.0 times as long as the others "
        "(median)",
        "rank 1 on node1 computes 3.0 times as long as the others (median)",
    ]
    assert "rank 1 on node1" in verdicts(ranks(even, (0.030, 0.004)))[0]


def test_single_rank_is_refused_with_the_command_for_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UserError, match="there is only one rank") as caught:
        check_ranks("cpu")
    assert "torchrun --nproc-per-node 8 -m jumar doctor --ranks" in caught.value.todo


@pytest.mark.slow
def test_two_ranks_are_measured_and_their_sum_is_right(tmp_path: Path) -> None:
    command = ("doctor", "--ranks", "--json", "--device", "cpu")
    code, out, err = on_two_ranks(*command, cwd=tmp_path)
    assert code == 0, out + err
    read = json.loads(out)
    assert read["sum_is_right"]
    assert [each["rank"] for each in read["ranks"]] == [0, 1]
    assert all(each["compute_s"] > 0 and each["link_s"] > 0 for each in read["ranks"])


@pytest.mark.parametrize("as_json", [False, True])
def test_machine_without_torch_is_shown_and_torch_is_named_as_missing(
    as_json: bool,
    machine: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert inspect(machine, {}, as_json=as_json) == 1
    out = capsys.readouterr().out
    assert "torch is not installed" in out
    assert "jumar[train]" in out
    assert "25.2.0" in out
    if as_json:
        shown = json.loads(out)
        assert shown["versions"]["torch"] is None
        assert shown["findings"][0]["level"] == "error"
    else:
        assert "unknown without torch" in out


def test_torch_that_cannot_be_imported_is_an_error_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text("raise OSError('libcudart.so.12: cannot open')")
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.syspath_prepend(tmp_path)
    fault = torch_fault()
    assert fault.what == "torch cannot be imported: libcudart.so.12: cannot open"
