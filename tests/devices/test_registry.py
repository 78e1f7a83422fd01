"""A new kind of device is one class: it is registered, and no other file knows of it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from jumar.devices import registry
from jumar.devices.asking import Names
from jumar.devices.contract import Device
from jumar.devices.registry import (
    device_kind,
    is_out_of_memory,
    list_devices,
    open_device,
    register,
)
from jumar.ground.errors import UserError
from jumar.precision.oplist import native_treatment
from jumar.precision.policy import PrecisionPolicy
from jumar.precision.settings import PrecisionSettings
from jumar.training.optimizers import Sgd, create_optimizer


@dataclass(frozen=True, kw_only=True)
class Bead(Device):
    """A device that is no more than its class; torch calls it `xpu`."""

    names: ClassVar = Names(kind="xpu", others=("abacus",), counted=("xpu",))
    dispatch_key: ClassVar = "SparseCPU"
    autocast_key: ClassVar = "AutocastXPU"
    distributed_backend: ClassVar = "strings"
    out_of_memory: ClassVar = "no bead is left"

    is_there: ClassVar[bool] = True

    @classmethod
    def open(cls, index: int | None, note: str = "") -> Device:
        return cls(index=index or 0, name="rosewood", note=note)

    @classmethod
    def visible(cls) -> list[Device]:
        return [cls.open(0)]

    @classmethod
    def why_passed_over(cls) -> str | None:
        return None if cls.is_there else "no abacus on the table"

    def synchronize(self) -> None: ...

    def memory_peak_bytes(self) -> int:
        return 5

    def memory_total_bytes(self) -> int:
        return 10

    def copy_ahead(
        self, batches: Iterable[Mapping[str, torch.Tensor]]
    ) -> Iterator[Mapping[str, torch.Tensor]]:
        yield from batches


@pytest.fixture(autouse=True)
def beads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))
    register(Bead)


@pytest.mark.parametrize(("request_", "index"), [("xpu", 0), ("XPU:3", 3), ("auto", 0)])
def test_registered_device_opens_on_request(request_: str, index: int) -> None:
    device = open_device(request_)
    assert (type(device), device.index, str(device)) == (Bead, index, f"xpu:{index}")
    assert device.torch == torch.device("xpu", index)


def test_auto_reports_skipped_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bead, "is_there", False)
    assert open_device("auto").note.startswith("no abacus on the table")


def test_registered_device_is_suggested_and_listed() -> None:
    with pytest.raises(UserError) as caught:
        open_device("abacus")
    assert "Did you mean 'xpu'?" in caught.value.todo
    assert caught.value.todo.endswith("xpu, xpu:N.")
    assert list_devices()[0].name == "rosewood"
    assert list_devices()[-1].kind == "cpu"


def test_precision_follows_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    half = PrecisionSettings(mode="allow_mix_precision", emulate_fp16=True)
    assert PrecisionPolicy(half, device_type="xpu").description.computed == "float16"
    monkeypatch.setattr(Bead, "computes_fp16", False)
    assert PrecisionPolicy(half, device_type="xpu").description.computed == "float16 emulated"
    asked: list[str] = []
    monkeypatch.setattr(
        torch._C,
        "_dispatch_has_kernel_for_dispatch_key",
        lambda _, key: bool(asked.append(key)),
    )
    native_treatment("xpu", "mm")
    assert asked == ["AutocastXPU"]


def test_bfloat16_notice_is_worded_by_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bead, "note_on_bf16", classmethod(lambda _: "beads are slow"))
    mixed = PrecisionSettings(mode="allow_mix_precision_bf16")
    assert "beads are slow" in PrecisionPolicy(mixed, device_type="xpu").description.note


def test_fused_kernels_are_chosen_by_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = [torch.nn.Parameter(torch.ones(2))]
    settings = Sgd()
    plain = create_optimizer(settings, parameters, [], device_type="xpu")
    assert not plain.param_groups[0]["fused"]
    monkeypatch.setattr(Bead, "dispatch_key", "CPU")
    fused = create_optimizer(settings, parameters, [], device_type="xpu")
    assert fused.param_groups[0]["fused"]


def test_out_of_memory_errors_of_a_registered_device_are_recognised() -> None:
    assert is_out_of_memory(RuntimeError("xpu:0: no bead is left"))
    assert is_out_of_memory(RuntimeError("DefaultCPUAllocator: not enough memory"))
    assert not is_out_of_memory(RuntimeError("a bead is left"))


def test_unregistered_device_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="cpu, cuda, npu, xpu, not 'toaster'"):
        device_kind("toaster")
