"""Op lists, the loss scale and float16 itself on the available device."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from jumar.devices.contract import Device
from jumar.precision.policy import PrecisionPolicy
from jumar.precision.settings import PrecisionSettings
from tests.accelerator.small_images import HALF_PRECISION, STEPS, train

pytestmark = pytest.mark.accelerator


def dtypes(device: Device, mixlist: Path | None) -> dict[str, torch.dtype]:
    """What ops compute in under allow_mix_precision_bf16."""
    settings = PrecisionSettings(
        mode="allow_mix_precision_bf16", modify_mixlist=str(mixlist) if mixlist else ""
    )
    policy = PrecisionPolicy(settings, device_type=device.kind)
    policy.install()
    try:
        image = torch.randn(2, 4, 8, 8, device=device.torch)
        weight = torch.randn(4, 4, 3, 3, device=device.torch)
        with policy.forward():
            convolved = functional.conv2d(image, weight)
            product = image @ image
            return {
                "convolution": convolved.dtype,
                "product": product.dtype,
                "softmax": functional.softmax(product, -1).dtype,
            }
    finally:
        policy.close()


def test_matrix_products_and_convolutions_are_low_precision_by_default(device: Device) -> None:
    result = dtypes(device, None)
    assert (result["convolution"], result["product"]) == (torch.bfloat16, torch.bfloat16)


def test_mixlist_keeps_only_the_named_op_in_float32(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "ops_info.json"
    path.write_text(
        json.dumps({"white-list": {"to-remove": ["Conv2D"]}, "black-list": {"to-add": ["Conv2D"]}})
    )
    usual, changed = dtypes(device, None), dtypes(device, path)
    assert changed["convolution"] == torch.float32
    assert {**changed, "convolution": usual["convolution"]} == usual


def scaled(init: float, *, every: int = 1, ratio: float = 0.5) -> list[str]:
    return [
        HALF_PRECISION,
        "precision.loss_scale=exponential",
        f"precision.loss_scale.init_loss_scale={init}",
        f"precision.loss_scale.decr_every_n_nan_or_inf={every}",
        f"precision.loss_scale.decr_ratio={ratio}",
        "data.eval_path=none",
    ]


def fp16_is_real(device: Device) -> None:
    if not device.computes_fp16:
        pytest.skip(f"float16 is not real on {device.kind}")


def test_updates_are_skipped_until_the_loss_scale_fits_float16(
    device: Device, images: Path, tmp_path: Path
) -> None:
    fp16_is_real(device)
    results = train(tmp_path / "run", device, images, scaled(2.0**40, every=2, ratio=1e-9))
    assert results["precision"]["computed"] == "float16"
    assert results["skipped_steps"] == 2


def test_suitable_loss_scale_changes_only_rounding(
    device: Device, images: Path, tmp_path: Path
) -> None:
    fp16_is_real(device)
    losses = [
        train(tmp_path / str(number), device, images, scaled(scale))["train_loss"]
        for number, scale in enumerate((64.0, 1024.0))
    ]
    assert losses[0] == pytest.approx(losses[1], rel=0.01)


def losses(run: Path) -> Sequence[float]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line["kind"] == "train"]


def test_real_float16_matches_cpu_emulation(device: Device, images: Path, tmp_path: Path) -> None:
    fp16_is_real(device)
    train(tmp_path / "real", device, images, scaled(1024.0))
    emulated = [*scaled(1024.0), "precision.emulate_fp16=true"]
    assert train(tmp_path / "emulated", "cpu", images, emulated)["skipped_steps"] == 0
    real, rounded = losses(tmp_path / "real"), losses(tmp_path / "emulated")
    assert len(real) == len(rounded) == STEPS
    # The first step has the same weights; later ones what rounding in another order made of them.
    assert real[0] == pytest.approx(rounded[0], rel=2e-3)
    assert real == pytest.approx(rounded, rel=2e-2)
