"""What is measured on: device, driver, versions."""

import importlib.metadata
import platform
import shutil
import subprocess
from typing import Any

import torch

import jumar
from jumar.devices.registry import open_device
from jumar.ground.errors import UserError
from jumar.ground.machine import processor_name, usable_cores
from jumar.ground.text import size_text

_DRIVERS = {
    "cuda": ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
    "npu": ("npu-smi", "info", "-t", "board", "-i", "0"),
}
_PEERS = ("timm", "transformers", "triton", "torch_npu", "polars")


def describe_machine(request: str) -> dict[str, Any] | UserError:
    """The device and the software around it, or why the device cannot be used."""
    try:
        device = open_device(request)
    except UserError as error:
        return error
    versions = {name: _version(name) for name in _PEERS}
    runtime = torch.version.cuda if device.kind == "cuda" else None
    described: dict[str, Any] = {
        "device": f"{device.kind}: {device.name}",
        "memory": size_text(device.memory_total_bytes()),
        "driver": _driver(device.kind),
        "torch": torch.__version__,
        "cuda": runtime,
        "jumar": jumar.__version__,
        "python": platform.python_version(),
        "host": f"{processor_name()}, {usable_cores()} cores",
        **{name: version for name, version in versions.items() if version},
    }
    described["description"] = ", ".join(
        f"{name} {described[name]}" if name != "device" else described[name]
        for name in ("device", "memory", "driver", "torch", "cuda", *_PEERS)
        if described.get(name)
    )
    return described


def _driver(kind: str) -> str | None:
    command = _DRIVERS.get(kind)
    if command is None or shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    if kind == "npu":
        lines = [line.partition(":")[2].strip() for line in lines if "Software Version" in line]
    return lines[0] if done.returncode == 0 and lines else None


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
