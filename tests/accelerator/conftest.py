"""The device that the tests of this folder run on."""

import os
from pathlib import Path

import pytest

from jumar.devices.contract import Device
from jumar.devices.registry import open_device
from tests.accelerator.small_images import write_images
from tests.npu_standin import install

DEVICE = "JUMAR_ACCELERATOR"
"""Names a device, also the CPU, on which these tests show that they work."""

if os.environ.get("NPU_STANDIN_INSIDE"):
    install()


@pytest.fixture(scope="session")
def device() -> Device:
    named = os.environ.get(DEVICE)
    opened = open_device(named or "auto")
    if opened.on_host and not named:
        pytest.skip(f"there is no GPU or NPU; {DEVICE}=cpu runs it on the CPU")
    return opened


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Class folders, to train on and to score."""
    return write_images(tmp_path_factory.mktemp("images"))
