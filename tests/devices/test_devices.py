"""Which device a run gets, and what it says when the one asked for is not there.

An NPU that works is in tests/npu_standin; here are a CPU and the ways in which the rest is missing.
"""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from jumar.devices import npu_package
from jumar.devices.contract import Device
from jumar.devices.cpu import Cpu
from jumar.devices.cuda import Cuda
from jumar.devices.npu_package import NPU_PACKAGE, npu_nodes, npu_pairing_fault
from jumar.devices.process import seed_everything, set_threads
from jumar.devices.registry import is_out_of_memory, list_devices, open_device
from jumar.ground.errors import UserError

CPU = Cpu(index=0, name="test")
IMPORTABLE = os.pathsep.join(filter(None, sys.path))
RELEASE = ".".join(torch.__version__.split(".")[:2])

without_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")


@pytest.fixture
def broken_npu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Installs a torch_npu of a version whose import ends with a line of Python."""

    def install(version: str, line: str) -> None:
        package = tmp_path / "site" / NPU_PACKAGE
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(line)
        info = tmp_path / "site" / f"{NPU_PACKAGE}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: torch_npu\nVersion: {version}\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path / "site"))

    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
    monkeypatch.setattr(npu_package, "DEVICE_FILES", tmp_path)
    return install


def test_cpu_device_has_the_processors_name() -> None:
    device = open_device("cpu")
    assert (device.kind, device.index, str(device)) == ("cpu", 0, "cpu")
    assert device.name
    assert device.torch == torch.device("cpu")
    assert device.distributed_backend == "gloo"


@pytest.mark.parametrize(
    ("device", "backend", "text", "ids"),
    [
        (Cuda(index=1, name="x"), "nccl", "cuda:1", [1]),
        (Cpu(index=0, name="x"), "gloo", "cpu", None),
    ],
)
def test_device_knows_its_names(
    device: Device, backend: str, text: str, ids: list[int] | None
) -> None:
    assert (device.distributed_backend, str(device)) == (backend, text)
    assert device.torch == torch.device(text)
    assert device.parallel_ids == ids


@pytest.mark.parametrize(
    "request_",
    ["gpu", "", "cuda:", "cuda:x", "npu:-1", "npu:²", "auto:1", "cpu:0", "npu:1:2", "ascend"],
)
def test_malformed_request_lists_the_known_devices(request_: str) -> None:
    with pytest.raises(UserError, match="auto, cpu, cuda, cuda:N, npu, npu:N"):
        open_device(request_)


@without_cuda
@pytest.mark.parametrize("request_", ["cuda", "cuda:0", "CUDA"])
def test_missing_cuda_is_an_error_with_what_to_install(request_: str) -> None:
    with pytest.raises(UserError) as caught:
        open_device(request_)
    assert caught.value.where == "--device"
    assert "CUDA" in caught.value.what
    assert "--device cpu" in caught.value.todo


@pytest.mark.skipif(
    importlib.util.find_spec(NPU_PACKAGE) is not None, reason="torch_npu is installed here"
)
@pytest.mark.parametrize("request_", ["npu", "npu:3"])
def test_npu_without_torch_npu_names_the_release_to_install(request_: str) -> None:
    with pytest.raises(UserError) as caught:
        open_device(request_)
    assert "torch_npu, which is not installed" in caught.value.what
    assert f"torch-npu=={RELEASE}.*" in caught.value.todo


def test_torch_npu_for_another_torch_is_refused_before_it_is_loaded(
    broken_npu: Callable[[str, str], None],
) -> None:
    broken_npu("1.11.0", "raise SystemExit('loaded')")
    with pytest.raises(UserError, match=r"torch_npu 1\.11\.0 is not compatible") as caught:
        open_device("npu")
    assert "works with torch X.Y only" in caught.value.todo


@pytest.mark.parametrize(
    ("line", "cann", "told"),
    [
        (
            "raise ImportError('libhccl.so: cannot open shared object file: No such file')",
            None,
            "set_env.sh",
        ),
        ("raise Exception('ASCEND_RUNTIME_PATH : /x does not exist')", "/x", "Check CANN in /x"),
        ("raise ImportError('libascend_hal.so: cannot open')", "/x", "driver is missing"),
        ("raise ImportError('_C.so: undefined symbol: _ZN2at')", "/x", "torch_npu for this torch"),
    ],
)
def test_failing_torch_npu_import_says_why_and_what_to_do(
    broken_npu: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    cann: str | None,
    told: str,
) -> None:
    broken_npu(f"{RELEASE}.0", line)
    if cann:
        monkeypatch.setenv("ASCEND_HOME_PATH", cann)
    with pytest.raises(UserError, match="torch_npu cannot be loaded") as caught:
        open_device("npu")
    assert line.split("'")[1] in caught.value.what
    assert told in caught.value.todo


def test_failing_torch_npu_import_without_a_message_is_named_by_its_class(
    broken_npu: Callable[[str, str], None],
) -> None:
    broken_npu(f"{RELEASE}.0", "raise Exception")
    with pytest.raises(UserError, match="torch_npu cannot be loaded: Exception"):
        open_device("npu")


def test_cpu_opens_despite_a_broken_torch_npu_that_torch_would_autoload(
    broken_npu: Callable[[str, str], None], tmp_path: Path
) -> None:
    """The real package registers itself with torch, which then does not import without CANN."""
    broken_npu(f"{RELEASE}.0", "raise ImportError('libhccl.so')")
    info = next((tmp_path / "site").glob("*.dist-info"))
    (info / "entry_points.txt").write_text("[torch.backends]\ntorch_npu = torch_npu:_autoload\n")
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            "from jumar.devices.registry import open_device; print(open_device('cpu'))",
        ],
        env={
            **os.environ,
            "PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{IMPORTABLE}",
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout.strip() == "cpu", result.stderr


@without_cuda
def test_auto_ignores_a_broken_torch_npu_without_an_npu(
    broken_npu: Callable[[str, str], None],
) -> None:
    broken_npu(f"{RELEASE}.0", "raise ImportError('libhccl.so')")
    assert open_device("auto").kind == "cpu"


def test_auto_fails_on_a_broken_torch_npu_with_an_npu(
    broken_npu: Callable[[str, str], None], tmp_path: Path
) -> None:
    (tmp_path / "davinci0").touch()
    (tmp_path / "davinci_manager").touch()
    broken_npu(f"{RELEASE}.0", "raise ImportError('libhccl.so')")
    assert npu_nodes() == [str(tmp_path / "davinci0")]
    with pytest.raises(UserError, match="torch_npu cannot be loaded"):
        open_device("auto")


@without_cuda
@pytest.mark.skipif(
    importlib.util.find_spec(NPU_PACKAGE) is not None, reason="torch_npu is installed here"
)
def test_auto_reports_the_skipped_npu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npu_package, "DEVICE_FILES", tmp_path)
    assert open_device("auto").note == ""
    (tmp_path / "davinci1").touch()
    assert "davinci1 exists, but torch_npu is not installed" in open_device("auto").note


@pytest.mark.parametrize(
    ("torch_version", "npu_version", "fits"),
    [
        ("2.13.0+cpu", "2.13.0", True),
        ("2.7.1", "2.7.1.post11", True),
        ("2.7.0", "2.7.1", True),
        ("2.13.0", "2.12.0.post3", False),
        ("2.1.0", "2.10.0", False),
        ("2.10.0", "2.1.0.post17", False),
        ("unknown", "2.6.0", False),
    ],
)
def test_torch_npu_matches_torch_with_the_same_major_and_minor_version(
    torch_version: str, npu_version: str, fits: bool
) -> None:
    assert (npu_pairing_fault(torch_version, npu_version) is None) is fits


def test_cpu_is_always_among_the_devices() -> None:
    assert list_devices()[-1].kind == "cpu"


def test_peak_memory_of_the_process_sees_an_allocation() -> None:
    size = 256 * 2**20
    before = CPU.memory_peak_bytes()
    held = torch.ones(size, dtype=torch.uint8)
    grown = CPU.memory_peak_bytes()
    assert grown - before > size // 2 or grown > 2 * size
    del held
    assert CPU.memory_total_bytes() > size


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB"),
        MemoryError(),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError(
            "NPU out of memory. Tried to allocate 5.03 GiB (NPU 3; 60.96 GiB total capacity)"
        ),
        RuntimeError("EL0004: [PID: 553] Failed to allocate memory."),
        RuntimeError("alloc device memory failed, runtime result = 207001[FUNC:ReportCallError]"),
        RuntimeError("CUDNN_STATUS_ALLOC_FAILED"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory: you tried"),
        RuntimeError("Storage size calculation overflowed with sizes=[4000000000, 4000000000]"),
        RuntimeError("Caught _ArrayMemoryError in DataLoader worker process 0.\nOriginal"),
        RuntimeError("unable to mmap 512 bytes from file </torch_1>: Cannot allocate memory (12)"),
        ValueError("Maximum allowed dimension exceeded"),
    ],
)
def test_out_of_memory_is_recognised_on_every_device(error: BaseException) -> None:
    assert is_out_of_memory(error)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("NPU function error: AclrtSynchronizeDevice, error code is 507013"),
        RuntimeError("Expected all tensors to be on the same device"),
        RuntimeError("shape '[207001]' is invalid for input of size 4"),
        ValueError("out of memory"),
        KeyboardInterrupt(),
    ],
)
def test_other_errors_are_not_out_of_memory(error: BaseException) -> None:
    assert not is_out_of_memory(error)


def test_cpu_passes_batches_through_unchanged() -> None:
    batches = [{"image": torch.ones(2)}, {"image": torch.zeros(2)}]
    passed = list(CPU.copy_ahead(batches))
    assert all(one is other for one, other in zip(passed, batches, strict=True))


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw", "adagrad"])
def test_cpu_has_the_fused_optimizers(name: str) -> None:
    assert CPU.has_kernel(f"_fused_{name}_")


def test_kernels_of_other_devices_do_not_count_for_the_cpu() -> None:
    assert not CPU.has_kernel("_thnn_fused_lstm_cell")


def test_cpu_says_if_bfloat16_is_slow() -> None:
    assert bool(CPU.note_on_bf16()) is not CPU.accelerates_bf16()


def test_synchronizing_a_cpu_does_nothing() -> None:
    CPU.synchronize()


@pytest.mark.parametrize("full", [True, False])
def test_cpu_always_computes_float32_in_full(full: bool) -> None:
    before = torch.get_float32_matmul_precision()
    try:
        CPU.set_full_float32(full)
        assert torch.get_float32_matmul_precision() == "highest"
    finally:
        torch.set_float32_matmul_precision(before)


def test_determinism_is_switched_on_and_off() -> None:
    try:
        CPU.set_deterministic(True)
        assert torch.are_deterministic_algorithms_enabled()
        CPU.set_deterministic(False)
        assert not torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(False)


def test_non_deterministic_process_does_not_load_the_compiler() -> None:
    script = (
        "import sys; from jumar.devices.registry import open_device;"
        "open_device('cpu').set_deterministic(False); print('torch._inductor' in sys.modules)"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_seed_determines_python_numpy_and_torch() -> None:
    import random

    import numpy

    drawn = []
    for _ in range(2):
        seed_everything(2**40 + 7)
        drawn.append((random.random(), numpy.random.rand(), torch.rand(()).item()))
    seed_everything(2**40 + 8)
    drawn.append((random.random(), numpy.random.rand(), torch.rand(()).item()))
    assert drawn[0] == drawn[1]
    assert all(one != other for one, other in zip(drawn[1], drawn[2], strict=True))


def test_thread_counts_are_set_and_a_second_inter_op_count_is_refused() -> None:
    # In a separate process, because torch accepts the number of inter-op threads only once.
    script = (
        "import torch\n"
        "from jumar.devices.process import set_threads\n"
        "from jumar.ground.errors import UserError\n"
        "cores = torch.get_num_interop_threads()\n"
        "set_threads(intra_op=3, inter_op=cores + 1)\n"
        "assert (torch.get_num_threads(), torch.get_num_interop_threads()) == (3, cores + 1)\n"
        "set_threads(intra_op=1, inter_op=cores + 1)\n"
        "set_threads()\n"
        "assert (torch.get_num_threads(), torch.get_num_interop_threads()) == (1, cores + 1)\n"
        "try:\n"
        "    set_threads(inter_op=cores + 2)\n"
        "except UserError as error:\n"
        "    print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": IMPORTABLE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "threads.inter_op: the inter-op threads of this process are fixed at" in result.stdout


def test_setting_the_current_thread_count_again_changes_nothing() -> None:
    before = (torch.get_num_threads(), torch.get_num_interop_threads())
    set_threads(*before)
    assert (torch.get_num_threads(), torch.get_num_interop_threads()) == before
