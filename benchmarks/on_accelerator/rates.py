"""The peak rates that the device reaches, which the shares of the other parts are shares of."""

from collections.abc import Callable, Sequence

import torch

from jumar.devices.contract import Device
from on_accelerator.floor import COPY
from on_accelerator.measuring import Context, Measurement, Row
from on_accelerator.rivals import block

SHORT_FLOAT32 = "float32, short format"
"""TensorFloat-32 or HF32."""
_ROUNDS = 7


def measurements(context: Context) -> Sequence[Measurement]:
    """One of all rates."""
    del context
    return [Measurement(name="rates", measure=rates, seconds=15)]


def rates(context: Context) -> list[Row]:
    """Products of random square matrices in each dtype, and a copy within the device's memory."""
    device = context.open()
    side = context.pick(8192, 512)
    rows: list[Row] = []
    for name, dtype, full in (
        ("bfloat16", torch.bfloat16, True),
        ("float16", torch.float16, True),
        ("float32", torch.float32, True),
        (SHORT_FLOAT32, torch.float32, False),
    ):
        if device.on_host and (dtype == torch.float16 or not full):
            continue
        device.set_full_float32(full)
        left, right = (torch.randn(side, side, device=device.torch).to(dtype) for _ in range(2))
        result = torch.empty_like(left)
        seconds = _best(lambda a=left, b=right, to=result: torch.mm(a, b, out=to), device)
        rows.append(
            {"what": name, "rate": 2.0 * side**3 / seconds, "of": f"{side} x {side}, operations"}
        )
    device.set_full_float32(True)
    source = torch.randn(context.pick(1 << 30, 1 << 22), device=device.torch)
    target = torch.empty_like(source)
    size = source.numel() * 4
    seconds = _best(lambda: target.copy_(source), device)
    rows.append(
        {"what": COPY, "rate": 2 * size / seconds, "of": f"{size >> 20} MiB, bytes in and out"}
    )
    return rows


def _best(call: Callable[[], object], device: Device) -> float:
    """Seconds of a call in the fastest round; the peak is what is reached undisturbed."""
    count = max(1, min(50, round(0.1 / max(block(call, device, 2), 1e-6))))
    return min(block(call, device, count) for _ in range(_ROUNDS))
