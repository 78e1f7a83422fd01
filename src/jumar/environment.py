"""What this machine offers for training, what is missing, and how to install it.

The content of `jumar doctor` and of a run's environment.json. Nothing here fails: a value that
cannot be determined is None. Torch may be missing.
"""

import importlib.metadata
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from jumar import __version__
from jumar.devices.npu_package import (
    CANN_VARIABLE,
    NPU_PACKAGE,
    npu_nodes,
    npu_package_version,
    npu_pairing_fault,
)
from jumar.devices.torch_facts import (
    accelerates_bf16,
    cuda_version,
    npu_fault,
    torch_fault,
    torch_threads,
    torch_version,
)
from jumar.ground.cache import cache_folder
from jumar.ground.machine import memory_bytes, processor_name, usable_cores

T = TypeVar("T")

OLDEST_TORCH = (2, 6)
_ASCEND = Path("usr/local/Ascend")
_CANN_HOMES = ("ascend-toolkit/latest", "cann/latest", "latest", "cann", "nnae/latest")
_PACKAGES = (
    ("numpy", "arrays", "pip install numpy"),
    ("safetensors", "weights in checkpoints", "pip install safetensors"),
    ("pillow", "decoding of every image format", "pip install pillow"),
    ("simplejpeg", "decoding of JPEG files at full speed", "pip install simplejpeg"),
    ("google-crc32c", "checking TFRecord files at full speed", "pip install google-crc32c"),
    ("scikit-learn", "the embedded digits", "pip install scikit-learn"),
    ("obstore", "paths of object stores (s3://, obs://)", "pip install 'jumar[stores]'"),
    ("tensorboard", "TensorBoard events of every run", "pip install 'jumar[tensorboard]'"),
)


@dataclass(frozen=True, kw_only=True)
class Processor:
    """The CPU, and how much of it this process may use.

    Attributes:
        cores: Cores of the machine.
        usable_cores: Cores allowed by the process's affinity and the container's quota.
        intra_op_threads: Threads that torch uses within one operator.
        inter_op_threads: Threads that torch uses to run operators in parallel.
        accelerates_bf16: Whether it has bfloat16 instructions.
    """

    name: str | None
    cores: int | None
    usable_cores: int | None
    intra_op_threads: int | None
    inter_op_threads: int | None
    accelerates_bf16: bool | None
    memory_total_bytes: int | None
    memory_free_bytes: int | None


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """One GPU or NPU that can be opened."""

    kind: str
    index: int
    name: str
    memory_bytes: int | None


@dataclass(frozen=True, kw_only=True)
class Ascend:
    """An Ascend installation, or the parts of one that were found.

    Attributes:
        device_files: Device files such as /dev/davinci0.
        cann_home: CANN's folder.
        cann_script: The script that sets CANN's variables.
        cann_is_sourced: Whether the script was sourced for this process.
        fault: Why no NPU can be opened; None if one can.
        todo: The remedy.
        firmware_range: The oldest and the newest firmware that the driver declares compatible.
    """

    device_files: tuple[str, ...]
    cann_home: str | None
    cann_script: str | None
    cann_is_sourced: bool
    fault: str | None
    todo: str | None
    firmware_range: tuple[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Free space at a path that is written to."""

    purpose: str
    place: str
    free_bytes: int | None


@dataclass(frozen=True, kw_only=True)
class Package:
    """A Python package that jumar uses; `version` is None if it is not installed."""

    name: str
    version: str | None
    purpose: str
    how_to_get: str


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Everything that a run's result depends on, apart from its recipe.

    Attributes:
        system: Operating system and architecture.
        versions: Versions of jumar, python, torch and the software below them (`cann`,
            `npu_driver`, `npu_firmware`, `cuda`, `cuda_driver`, and `torch_npu`); None if not
            installed.
    """

    system: str
    versions: Mapping[str, str | None]
    processor: Processor
    accelerators: tuple[Accelerator, ...]
    ascend: Ascend
    storage: tuple[Storage, ...]
    packages: tuple[Package, ...]


@dataclass(frozen=True)
class Finding:
    """Something that is broken, slow or missing.

    Attributes:
        level: An `error` prevents a run, a `warning` makes it slow or its results wrong, and a
            `note` means that something is unavailable.
        source: The file, variable or call that it was read from, unless that is obvious.
    """

    level: Literal["error", "warning", "note"]
    what: str
    todo: str
    source: str = ""


def inspect_environment(root: Path = Path("/")) -> Environment:
    """Inspect this machine; takes about as long as importing torch_npu, if it is installed.

    Args:
        root: The folder below which to look for the files of an Ascend installation.
    """
    ascend = root / _ASCEND
    home = _tried(lambda: _cann_home(ascend))
    return Environment(
        system=platform.platform(),
        versions={
            "jumar": __version__,
            "python": platform.python_version(),
            "torch": _tried(torch_version),
            NPU_PACKAGE: _tried(npu_package_version),
            "cann": _tried(lambda: cann_version(home)) if home else None,
            "npu_driver": _tried(lambda: npu_driver_version(ascend)),
            "npu_firmware": _tried(lambda: _version_line(ascend / "firmware" / "version.info")),
            "cuda": _tried(cuda_version),
            "cuda_driver": _tried(_cuda_driver_version),
        },
        processor=_processor(),
        accelerators=tuple(_tried(_accelerators) or ()),
        ascend=_ascend(home, ascend),
        storage=tuple(_storage(purpose, path) for purpose, path in _written_paths()),
        packages=tuple(
            Package(
                name=name,
                version=_tried(lambda name=name: importlib.metadata.version(name)),
                purpose=purpose,
                how_to_get=how,
            )
            for name, purpose, how in _PACKAGES
        ),
    )


def check(environment: Environment) -> list[Finding]:
    """Problems and missing packages, worst first, each with a remedy."""
    findings = [
        *_check_torch(environment),
        *_check_ascend(environment),
        *_check_machine(environment),
    ]
    for package in environment.packages:
        if package.version is None:
            message = f"{package.name} is not installed: {package.purpose}"
            findings.append(Finding("note", message, package.how_to_get))
    return worst_first(findings)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """The findings sorted by level; those of one level keep their order."""
    order = ("error", "warning", "note")
    return sorted(findings, key=lambda finding: order.index(finding.level))


def cann_version(home: Path) -> str | None:
    """The version of the CANN toolkit in a folder, as recorded by its installer."""
    patterns = (
        "ascend_toolkit_install.info",
        "*/ascend_toolkit_install.info",
        "*/ascend_*_install.info",
        "*/version.info",
    )
    for pattern in patterns:
        for path in sorted(home.glob(pattern)):
            version = _version_line(path)
            if version:
                return version
    return None


def npu_driver_version(ascend: Path) -> str | None:
    """The version of the Ascend driver below an installation folder such as /usr/local/Ascend."""
    return _version_line(ascend / "driver" / "version.info")


def _tried(probe: Callable[[], T]) -> T | None:
    # Whatever a probe raises, report the rest: a doctor that crashes on the problem it should
    # diagnose is useless.
    try:
        return probe()
    except Exception:
        return None


def _processor() -> Processor:
    memory, threads = _tried(memory_bytes), _tried(torch_threads)
    return Processor(
        name=_tried(processor_name),
        cores=os.cpu_count(),
        usable_cores=_tried(usable_cores),
        intra_op_threads=threads[0] if threads else None,
        inter_op_threads=threads[1] if threads else None,
        accelerates_bf16=_tried(accelerates_bf16),
        memory_total_bytes=memory[1] if memory else None,
        memory_free_bytes=memory[0] if memory else None,
    )


def _accelerators() -> list[Accelerator]:
    from jumar.devices.registry import list_devices

    return [
        Accelerator(
            kind=device.kind,
            index=device.index,
            name=device.name,
            memory_bytes=_tried(device.memory_total_bytes),
        )
        for device in list_devices()
        if not device.on_host
    ]


def _ascend(home: Path | None, folder: Path) -> Ascend:
    fault = _tried(npu_fault)
    return Ascend(
        device_files=tuple(_tried(npu_nodes) or ()),
        cann_home=str(home) if home else None,
        cann_script=_tried(lambda: str(_cann_script(home))) if home else None,
        cann_is_sourced=CANN_VARIABLE in os.environ,
        fault=fault.what if fault else None,
        todo=fault.todo if fault else None,
        firmware_range=_tried(lambda: _firmware_range(folder)),
    )


def _firmware_range(ascend: Path) -> tuple[str, str] | None:
    text = (ascend / "driver" / "version.info").read_text()
    match = re.search(r"^compatible_version_fw\s*=\s*\[([\d.]+),\s*([\d.]+)\]", text, re.MULTILINE)
    return (match[1], match[2]) if match else None


def _cann_home(ascend: Path) -> Path | None:
    sourced_home = os.environ.get(CANN_VARIABLE)
    homes = [Path(sourced_home)] if sourced_home else [ascend / name for name in _CANN_HOMES]
    return next((home for home in homes if home.is_dir()), None)


def _cann_script(home: Path) -> Path:
    # Older releases of CANN have the script next to `latest`, newer ones inside their folder.
    inside = home / "set_env.sh"
    return inside if inside.exists() else home.parent / "set_env.sh"


def _version_line(path: Path) -> str | None:
    try:
        match = re.search(r"^version\s*=\s*(\S+)", path.read_text(), re.MULTILINE | re.IGNORECASE)
    except OSError:
        return None
    return match[1].strip("[]") if match else None


def _cuda_driver_version() -> str | None:
    text = Path("/proc/driver/nvidia/version").read_text()
    match = re.search(r"Module\s+(?:for \S+\s+)?([\d.]+)", text)
    return match[1] if match else None


def _written_paths() -> list[tuple[str, Path]]:
    paths = [("runs", _tried(Path.cwd)), ("cache", _tried(cache_folder))]
    return [(purpose, path) for purpose, path in paths if path is not None]


def _storage(purpose: str, path: Path) -> Storage:
    existing = next((folder for folder in (path, *path.parents) if folder.exists()), path)
    free = _tried(lambda: shutil.disk_usage(existing).free)
    return Storage(purpose=purpose, place=str(path), free_bytes=free)


def _check_torch(environment: Environment) -> Iterator[Finding]:
    versions = environment.versions
    installed = versions["torch"]
    if installed is None:
        fault = torch_fault()
        yield Finding("error", fault.what, fault.todo)
        return
    release = re.match(r"(\d+)\.(\d+)", installed)
    if release and (int(release[1]), int(release[2])) < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        yield Finding(
            "error", f"torch {installed} is older than {oldest}", f"pip install 'torch>={oldest}'"
        )
    if versions["cuda_driver"] and not versions["cuda"]:
        yield Finding(
            "warning",
            f"there is an NVIDIA GPU, but torch {installed} was built without CUDA",
            "Install a CUDA build of torch (https://pytorch.org/get-started/locally).",
        )


def _check_ascend(environment: Environment) -> Iterator[Finding]:
    ascend, versions = environment.ascend, environment.versions
    package = versions[NPU_PACKAGE]
    mismatch = npu_pairing_fault(versions["torch"] or "", package) if package else None
    if mismatch is not None:
        yield Finding("error", mismatch.what, mismatch.todo)
    elif ascend.fault and (ascend.device_files or ascend.cann_home or package):
        level = "error" if ascend.device_files else "warning"
        yield Finding(level, ascend.fault, ascend.todo or "")
    if ascend.cann_home and not ascend.cann_is_sourced:
        yield Finding(
            "warning",
            f"CANN is in {ascend.cann_home}, but {CANN_VARIABLE} is not set",
            f"source {ascend.cann_script}",
        )


def _check_machine(environment: Environment) -> Iterator[Finding]:
    processor = environment.processor
    threads, cores = processor.intra_op_threads, processor.usable_cores
    if threads and cores and threads > cores:
        yield Finding(
            "warning",
            f"torch uses {threads} threads on {cores} usable cores, which is slower",
            f"--set threads.intra_op={cores}",
            "torch.get_num_threads(), affinity and cpu.max of the control group",
        )
    if processor.accelerates_bf16 is False and not environment.accelerators:
        yield Finding(
            "note",
            "this processor has no bfloat16 instructions: mixed precision is not faster",
            "Train in float32 here: --set precision.mode=must_keep_origin_dtype",
            "oneDNN",
        )
    for storage in environment.storage:
        if storage.free_bytes is not None and storage.free_bytes < 2**30:
            option = "--run-dir" if storage.purpose == "runs" else "JUMAR_CACHE"
            yield Finding(
                "warning",
                f"less than 1 GiB is free for the {storage.purpose} in {storage.place}",
                f"Free some space, or choose another folder with {option}.",
            )
