"""The precision policy: the trainer's interface to precision.

The trainer runs the forward pass in `forward()` and the backward pass on `scale(loss)`, checks for
overflow with `unscale_and_check`, combines the results of all ranks and passes them to
`loss_scale.update`. All objectives share one scale.
"""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from jumar.devices.contract import Device
from jumar.devices.registry import device_kind
from jumar.ground.errors import unknown_name
from jumar.precision.autocast_lists import InstalledLists, install
from jumar.precision.float32_layers import keep_in_float32
from jumar.precision.mixlist import load_mixlist
from jumar.precision.modes import Mode, find_mode
from jumar.precision.oplist import ListName, default_lists, treatments
from jumar.precision.settings import PrecisionSettings, unneeded_setting_notes
from jumar.settings import checked


@dataclass(frozen=True, kw_only=True)
class PrecisionDescription:
    """The dtypes in which a run computes, for its first line, its results and tables of results."""

    mode: str
    """The canonical name of the requested mode."""
    computed: str
    """`float32`, `float16`, `bfloat16`, `float16 emulated` or `float16 in, float32 out`."""
    substituted: bool
    """Whether `computed` differs from the mode's dtype."""
    note: str
    """A note for the user, in one line; usually empty."""


class PrecisionPolicy:
    """The precision of a run.

    Args:
        settings: Mode, op lists, loss scale.
        device_type: `cpu`, `cuda` or `npu`; state is created on the current device of that type.

    Attributes:
        description: The dtypes of the computation, with a note.
        loss_scale: The loss scale, or None if the settings have none.
        low_dtype: The dtype of the autocast region; None if there is no region.
        can_overflow: Whether values have the range of fp16, so that gradients may become infinite
            although the loss is finite.
        full_float32: Whether fp32 ops must compute with all 24 bits, for
            `Device.set_full_float32`. False only for force_fp32, which multiplies fp16 values: TF32
            and HF32 represent them exactly.

    Raises:
        UserError: The settings contradict each other, or the mixlist is invalid.
    """

    def __init__(self, settings: PrecisionSettings, *, device_type: str) -> None:
        kind = device_kind(device_type)
        checked(settings, where="precision")
        mode = find_mode(settings.mode)
        self._mode = mode
        self._device_type = device_type
        self._lists: dict[str, ListName] = (
            load_mixlist(settings.modify_mixlist) if settings.modify_mixlist else default_lists()
        )
        self._float32_layers = settings.float32_layers
        self._emulated = not kind.computes_fp16 and settings.emulate_fp16 and mode.fp16
        self.low_dtype = _low_dtype(mode, kind)
        self.description = _describe(settings, kind)
        self.can_overflow = self.description.computed.startswith("float16")
        self.full_float32 = mode.form != "cube_fp32_out"
        self.loss_scale = settings.loss_scale.create(device_type)
        self._installed: InstalledLists | None = None

    def install(self) -> None:
        """Install the op lists, replacing those of any other policy in this process.

        Compiled code that was traced before is discarded.
        """
        treated = (
            {}
            if self._mode.form == "origin"
            else treatments(
                self._mode.form,
                self._lists,
                emulated=self._emulated,
                multiplies_low=device_kind(self._device_type).accelerates_bf16(),
            )
        )
        self._installed = install(self._device_type, treated)

    def keep_layers(self, layers: Mapping[str, nn.Module], *, are_all: bool = True) -> None:
        """Make the layers named in the settings compute in float32.

        Args:
            layers: The layers by path; changed in place.
            are_all: Whether these are all layers, so that a name without a match is an error.

        Raises:
            UserError: A name matches no layer, and `are_all` is set.
        """
        if self.low_dtype is not None:
            unmatched = keep_in_float32(layers, self._float32_layers, self._device_type)
            if are_all and unmatched:
                raise unknown_name("layer", unmatched[0], layers, where="precision.float32_layers")

    def close(self) -> None:
        """Restore torch's op lists; does nothing if another policy's are installed."""
        if self._installed is not None:
            self._installed.close()
            self._installed = None

    def forward(self) -> AbstractContextManager[object]:
        """Return a new context for the forward pass and the loss.

        Raises:
            RuntimeError: The op lists are not installed, so the context would use torch's.
        """
        if self._installed is None or self._installed.closed:
            raise RuntimeError("install() this policy before its forward()")
        if self.low_dtype is None:
            return nullcontext()
        return torch.autocast(self._device_type, dtype=self.low_dtype)

    def scale(self, loss: Tensor) -> Tensor:
        """Return the loss for the backward pass: in fp32, multiplied by the loss scale, if any."""
        return loss if self.loss_scale is None else loss.float() * self.loss_scale.scale

    def unscale_and_check(self, parameters: Iterable[Tensor]) -> Tensor:
        """Divide the gradients by the loss scale and check whether any is not finite.

        Args:
            parameters: Parameters after the backward pass; those without a gradient are skipped.

        Returns:
            A float32 scalar on the device, 0 or 1, without waiting for the device.
        """
        groups: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
        for parameter in parameters:
            gradient = parameter.grad
            if gradient is not None:
                groups.setdefault((gradient.device, gradient.dtype), []).append(gradient)
        scale = None if self.loss_scale is None else self.loss_scale.scale
        result_device = torch.device(self._device_type) if scale is None else scale.device
        overflow = torch.zeros((), dtype=torch.float32, device=result_device)
        inverse = torch.ones_like(overflow) if scale is None else scale.reciprocal()
        for (device, _), gradients in groups.items():
            device_overflow = torch.zeros((), dtype=torch.float32, device=device)
            torch._amp_foreach_non_finite_check_and_unscale_(  # pyright: ignore[reportPrivateImportUsage]
                gradients, device_overflow, inverse.to(device)
            )
            overflow = torch.maximum(overflow, device_overflow.to(result_device))
        return overflow


def _low_dtype(mode: Mode, kind: type[Device]) -> torch.dtype | None:
    # With emulated rounding, the region's dtype affects no op; bf16 only prevents torch's warning.
    return torch.bfloat16 if mode.low is not None and not kind.computes_fp16 else mode.low


def _describe(settings: PrecisionSettings, kind: type[Device]) -> PrecisionDescription:
    mode = find_mode(settings.mode)
    dtype = {None: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}[mode.low]
    notes: list[str] = []
    is_substitute = False
    if mode.form == "cube_fp32_out":
        dtype = "float16 in, float32 out"
    elif mode.fp16 and not kind.computes_fp16:
        if settings.emulate_fp16:
            dtype = "float16 emulated"
            notes.append("rounded to fp16 in fp32 arithmetic; the speed is not representative")
        else:
            dtype, is_substitute = "bfloat16", True
            notes.append(f"{mode.name} asks for fp16, which many CPU kernels compute slowly")
    elif settings.emulate_fp16 and mode.fp16:
        notes.append(f"emulate_fp16 has no effect: {kind.names.kind} computes in fp16")
    if dtype == "bfloat16" and kind.note_on_bf16():
        notes.append(kind.note_on_bf16())
    notes.extend(unneeded_setting_notes(settings))
    return PrecisionDescription(
        mode=mode.name, computed=dtype, substituted=is_substitute, note="; ".join(notes)
    )
