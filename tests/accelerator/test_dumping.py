"""Dumps of steps on the available device have the same contents as on a CPU."""

from pathlib import Path
from typing import Literal

import pytest
import torch
from torch import nn
from torch.nn import functional

import jumar.precision
from jumar.devices.contract import Device
from jumar.precision.dumps.dump import Dump
from jumar.precision.dumps.opening import open_dump

pytestmark = pytest.mark.accelerator
Level = Literal["modules", "statistics", "tensors"]


def dumped(folder: Path, device: torch.device, level: Level) -> Dump:
    """The dump of one step, which the optimizer ends."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))
    images, labels = torch.randn(2, 3, 8, 8), torch.tensor([1, 4])
    net.to(device)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    with jumar.precision.dump(folder, level=level, model=net):
        functional.cross_entropy(net(images.to(device)), labels.to(device)).backward()
        optimizer.step()
    return open_dump(folder)


@pytest.mark.parametrize("level", ["modules", "statistics", "tensors"])
def test_dump_has_the_same_layers_and_updates_as_on_the_cpu(
    device: Device, tmp_path: Path, level: Level
) -> None:
    device.set_full_float32(True)
    here = dumped(tmp_path / "here", device.torch, level)
    there = dumped(tmp_path / "cpu", torch.device("cpu"), level)
    calls, expected = (
        {(c.kind, c.layer, c.number, c.phase): c for c in dump.calls if c.kind != "op"}
        for dump in (here, there)
    )
    assert calls.keys() == expected.keys()
    for key, call in expected.items():
        for one, other in zip(calls[key].values, call.values, strict=True):
            assert one.shape == other.shape
            assert one.statistics is not None
            assert other.statistics is not None
            assert one.statistics.l2 == pytest.approx(other.statistics.l2, rel=1e-4, abs=1e-5)
            assert one.statistics.nan == 0


def test_dump_does_not_record_its_own_ops(device: Device, tmp_path: Path) -> None:
    names = {call.op for call in dumped(tmp_path / "dump", device.torch, "statistics").calls}
    assert any(name.startswith("aten.") for name in names)
    assert not {name for name in names if "isnan" in name or "stack" in name}
