"""jumar/devices/ on an NPU that works."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict

import pytest
import torch

from jumar.devices.npu import npu_fault
from jumar.devices.npu_package import npu_package_version
from jumar.devices.registry import list_devices, open_device
from jumar.environment import check, inspect_environment
from jumar.ground.errors import UserError

TORCHRUN = ("LOCAL_RANK", "LOCAL_WORLD_SIZE")


@pytest.fixture(autouse=True)
def no_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in TORCHRUN:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("request_", "index"), [("auto", 0), ("npu", 0), ("npu:0", 0), ("npu:1", 1), ("NPU:1", 1)]
)
def test_requested_npu_is_opened_and_selected(request_: str, index: int) -> None:
    device = open_device(request_)
    assert (device.kind, device.index, str(device)) == ("npu", index, f"npu:{index}")
    assert device.torch == torch.device("npu", index)
    assert (device.parallel_ids, device.distributed_backend) == ([index], "hccl")
    assert device.name == f"stand-in NPU {index}"
    assert torch.npu.current_device() == index
    assert torch.empty(1, device="npu").device.index == index
    open_device("npu:0")


def test_cpu_can_still_be_requested() -> None:
    assert open_device("cpu").kind == "cpu"


def test_index_beyond_the_last_names_the_device_count() -> None:
    with pytest.raises(UserError, match="no npu:2; 2 npu devices visible, numbered") as caught:
        open_device("npu:2")
    assert "N up to 1" in caught.value.todo


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("request_", ["npu", "auto"])
def test_torchrun_rank_uses_the_npu_with_its_local_rank(
    monkeypatch: pytest.MonkeyPatch, rank: int, request_: str
) -> None:
    monkeypatch.setenv("LOCAL_RANK", str(rank))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert open_device(request_).index == rank
    open_device("cpu")


def test_more_ranks_than_npus_and_ranks_on_one_npu_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOCAL_RANK", "2")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    with pytest.raises(UserError, match="nproc-per-node 2"):
        open_device("npu")
    with pytest.raises(UserError, match="4 ranks on this machine cannot share npu:0"):
        open_device("npu:0")


def test_every_npu_and_the_cpu_are_listed() -> None:
    assert [str(device) for device in list_devices()] == ["npu:0", "npu:1", "cpu"]
    assert npu_fault() is None


def test_environment_names_the_npus_and_the_version_of_torch_npu() -> None:
    result = inspect_environment()
    assert [(a.kind, a.index, a.memory_bytes) for a in result.accelerators] == [
        ("npu", 0, 4 << 30),
        ("npu", 1, 4 << 30),
    ]
    assert result.versions["torch_npu"] == npu_package_version()
    assert torch.__version__.startswith(str(npu_package_version()))
    assert "error" not in {finding.level for finding in check(result)}
    json.dumps(asdict(result))


def test_memory_is_the_devices() -> None:
    device = open_device("npu")
    held = torch.ones(1 << 20, device=device.torch)
    assert 4 << 20 <= device.memory_peak_bytes() <= device.memory_total_bytes() == 4 << 30
    del held


def test_synchronize_waits_for_pending_work() -> None:
    device = open_device("npu")
    read = torch.ones(2, device=device.torch).to("cpu", non_blocking=True)
    device.synchronize()
    assert read.tolist() == [1, 1]


def test_device_capabilities_are_reported() -> None:
    device = open_device("npu")
    assert device.has_kernel("_fused_sgd_")
    assert device.has_kernel("_fused_adamw_")
    # torch lets fused Adam pass for any device; torch_npu would run it on the CPU.
    assert not device.has_kernel("_fused_adam_.tensor_lr")


@pytest.mark.parametrize("full", [False, True])
def test_hf32_is_set_for_matmul_and_convolution(full: bool) -> None:
    open_device("npu").set_full_float32(full)
    assert torch.npu.matmul.allow_hf32 is not full
    assert torch.npu.conv.allow_hf32 is not full
    assert torch.get_float32_matmul_precision() == ("highest" if full else "high")


def test_determinism_includes_collectives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCCL_DETERMINISTIC", "strict")
    device = open_device("npu")
    try:
        device.set_deterministic(True)
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        device.set_deterministic(False)


def host_batches(count: int) -> Iterator[dict[str, torch.Tensor]]:
    for number in range(count):
        image = torch.full((2, 3), float(number))
        yield {
            "image": image.pin_memory() if number % 2 else image,
            "label": torch.tensor([number]),
        }


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_batches_arrive_complete_and_in_order_before_the_step_reads_them(count: int) -> None:
    device = open_device("npu")
    before = torch.ops.npu_standin.stream_hazards()
    sums: list[tuple[float, float]] = []
    batch: Mapping[str, torch.Tensor] = {}
    for batch in device.copy_ahead(host_batches(count)):
        assert {tensor.device for tensor in batch.values()} == {device.torch}
        sums.append((batch["image"].sum().item(), batch["label"].item()))
    del batch
    assert sums == [(6.0 * number, number) for number in range(count)]
    assert torch.ops.npu_standin.stream_hazards() == before


def test_exactly_one_batch_is_prefetched() -> None:
    fetched: list[int] = []

    def noted() -> Iterator[dict[str, torch.Tensor]]:
        for number, batch in enumerate(host_batches(4)):
            fetched.append(number)
            yield batch

    ahead = open_device("npu").copy_ahead(noted())
    assert fetched == []
    for number in range(3):
        next(ahead)
        assert fetched == list(range(number + 2))
