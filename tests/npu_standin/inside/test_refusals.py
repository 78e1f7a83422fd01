"""The mistakes that a CPU forgives and an NPU does not: each of them shows on the stand-in."""

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch.utils.data import DataLoader

from jumar.devices.registry import is_out_of_memory, open_device

NPU = open_device("npu").torch


def test_tensor_reports_its_device() -> None:
    tensor = torch.ones(2, device=NPU)
    assert (tensor.device.type, tensor.is_npu, tensor.is_cpu) == ("npu", True, False)
    assert torch.accelerator.current_accelerator().type == "npu"


@pytest.mark.parametrize(
    "mixed",
    [
        lambda npu, cpu: npu + cpu,
        lambda npu, cpu: cpu + npu,
        lambda npu, cpu: npu.add_(cpu),
        lambda npu, cpu: npu @ cpu,
        lambda npu, cpu: torch.cat([npu, cpu]),
        torch.nn.functional.linear,
        lambda npu, cpu: npu[cpu.long()],
        lambda npu, cpu: torch.nn.functional.cross_entropy(npu, cpu[0].long()),
        lambda npu, cpu: torch.add(npu, npu, out=cpu),
        lambda npu, cpu: torch._foreach_add_([npu], [cpu]),
    ],
)
def test_tensors_of_two_devices_in_one_operator_are_refused(
    mixed: Callable[[torch.Tensor, torch.Tensor], object],
) -> None:
    with pytest.raises(RuntimeError, match=r"same device|npu|cpu"):
        mixed(torch.ones(3, 3, device=NPU), torch.ones(3, 3))


def test_two_npus_are_distinct_devices() -> None:
    with pytest.raises(RuntimeError, match=r"npu:0 and npu:1|npu:1 and npu:0"):
        torch.ones(3, device="npu:0") + torch.ones(3, device="npu:1")


def test_scalar_combines_with_every_device() -> None:
    assert (torch.ones(2, device=NPU) * 3 + torch.tensor(1.0)).tolist() == [4, 4]


def test_cuda_is_refused() -> None:
    tensor = torch.ones(2, device=NPU)
    with pytest.raises((AssertionError, RuntimeError)):
        tensor.cuda()
    with pytest.raises((AssertionError, RuntimeError)):
        torch.nn.Linear(1, 1).cuda()


@pytest.mark.filterwarnings("ignore:.*CUDA is not available")
@pytest.mark.parametrize(("other", "dtype"), [("cuda", torch.float16), ("cpu", torch.bfloat16)])
def test_autocast_of_another_device_has_no_effect(other: str, dtype: torch.dtype) -> None:
    tensor = torch.ones(2, 2, device=NPU)
    with torch.autocast(other, dtype):
        assert (tensor @ tensor).dtype == torch.float32
    with torch.autocast("npu", dtype):
        assert (tensor @ tensor).dtype == dtype


def test_device_random_numbers_differ_from_the_cpus() -> None:
    torch.manual_seed(1)
    first = torch.rand(4, device=NPU)
    torch.rand(100)
    second = torch.rand(4, device=NPU)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(4, device=NPU), first)
    assert torch.equal(torch.rand(4, device=NPU), second)
    with pytest.raises(RuntimeError, match="device type for generator"):
        torch.rand(4, device=NPU, generator=torch.Generator().manual_seed(1))


def test_dropout_draws_from_the_device() -> None:
    ones = torch.ones(1000, device=NPU)
    state = torch.get_rng_state()
    torch.npu.manual_seed_all(5)
    kept = torch.nn.functional.dropout(ones, 0.25)
    torch.npu.manual_seed_all(5)
    assert torch.equal(torch.nn.functional.dropout(ones, 0.25), kept)
    assert torch.equal(torch.get_rng_state(), state)
    assert 0.7 < (kept > 0).float().mean().item() < 0.8


def test_out_of_memory_raises_like_torch_npu() -> None:
    with pytest.raises(torch.OutOfMemoryError, match="NPU out of memory") as caught:
        torch.empty(2**40, device=NPU)
    assert is_out_of_memory(caught.value)


def test_device_memory_cannot_be_pinned_and_fresh_memory_is_not_zero() -> None:
    with pytest.raises(RuntimeError, match="pin"):
        torch.empty(2, device=NPU, pin_memory=True)
    assert torch.empty(4, device=NPU).isnan().all()


def test_unsynchronised_copy_is_not_complete() -> None:
    side = torch.npu.Stream()
    host = torch.arange(4.0).pin_memory()
    with torch.npu.stream(side):
        sent = host.to(NPU, non_blocking=True)
    assert sent.isnan().all()
    torch.npu.current_stream().wait_stream(side)
    assert sent.tolist() == [0, 1, 2, 3]
    read = (sent + 1).to("cpu", non_blocking=True)
    assert read.isnan().all()
    torch.npu.synchronize()
    assert read.tolist() == [1, 2, 3, 4]


def test_memory_freed_while_in_use_by_another_stream_is_detected() -> None:
    side = torch.npu.Stream()
    before = torch.ops.npu_standin.stream_hazards()
    for recorded in (True, False):
        with torch.npu.stream(side):
            sent = torch.ones(8).to(NPU)
        torch.npu.current_stream().wait_stream(side)
        if recorded:
            sent.record_stream(torch.npu.current_stream())
        sent.sum()
        del sent
        assert torch.ops.npu_standin.stream_hazards() - before == (0 if recorded else 1)


def _use(_: list[int]) -> int:
    return int(torch.ones(1, device="npu").item())


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="needs forked workers"
)
def test_forked_worker_may_not_use_the_device() -> None:
    torch.ones(1, device=NPU)
    loader = DataLoader([1, 2], num_workers=1, collate_fn=_use, multiprocessing_context="fork")
    with pytest.raises(RuntimeError, match="forked subprocess"):
        next(iter(loader))


def test_switches_that_torch_npu_lacks_do_not_exist() -> None:
    with pytest.raises(AttributeError):
        torch.npu.matmul.allow_tf32 = False
    with pytest.raises(AttributeError):
        torch.npu.memory_peak()


def test_child_processes_have_the_device() -> None:
    script = "import torch_npu, torch; print(torch.ones(2).npu().device)"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=os.environ, check=False
    )
    assert result.stdout.strip() == "npu:0", result.stderr
