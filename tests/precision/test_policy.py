"""The policy as a trainer uses it: what is computed, scaled, checked and restored."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from jumar.devices.cpu import Cpu
from jumar.devices.registry import device_kind
from jumar.ground.errors import UserError
from jumar.precision.autocast_lists import installed
from jumar.precision.loss_scale import ExponentialLossScale, FixedLossScale
from jumar.precision.modes import MODES
from jumar.precision.policy import PrecisionPolicy
from jumar.precision.settings import PrecisionSettings

FIXED = FixedLossScale(init_loss_scale=1024)


def policy_for(mode: str, device_type: str = "cpu", **changes: object) -> PrecisionPolicy:
    return PrecisionPolicy(
        PrecisionSettings(mode=mode, **changes),  # type: ignore[arg-type]
        device_type=device_type,
    )


@pytest.mark.parametrize(
    ("mode", "device_type", "computed", "substituted"),
    [
        ("must_keep_origin_dtype", "cpu", "float32", False),
        ("allow_fp32_to_bf16", "cpu", "float32", False),
        ("allow_mix_precision", "cpu", "bfloat16", True),
        ("mixed_bfloat16", "cpu", "bfloat16", False),
        ("allow_fp32_to_fp16", "cpu", "bfloat16", True),
        ("fp16", "cpu", "bfloat16", True),
        ("force_fp32", "cpu", "float16 in, float32 out", False),
        ("allow_mix_precision", "cuda", "float16", False),
        ("allow_mix_precision", "npu", "float16", False),
        ("mixed_bfloat16", "npu", "bfloat16", False),
        ("force_fp16", "npu", "float16", False),
        ("origin", "npu", "float32", False),
    ],
)
def test_description_names_the_computed_dtype_and_whether_it_was_requested(
    mode: str, device_type: str, computed: str, substituted: bool
) -> None:
    described = policy_for(mode, device_type).description
    assert (described.computed, described.substituted) == (computed, substituted)
    assert not substituted or f"{described.mode} asks for fp16" in described.note
    assert "\n" not in described.note


def test_description_gives_the_canonical_name() -> None:
    assert policy_for("mixed_float16").description.mode == "allow_mix_precision"


def test_emulation_is_not_a_substitution_on_a_cpu_and_ineffective_elsewhere() -> None:
    on_cpu = policy_for("allow_mix_precision", emulate_fp16=True)
    assert on_cpu.description.computed == "float16 emulated"
    assert not on_cpu.description.substituted
    assert on_cpu.can_overflow
    on_npu = policy_for("allow_mix_precision", "npu", emulate_fp16=True)
    assert on_npu.description.computed == "float16"
    assert "no effect" in on_npu.description.note


def test_cpu_without_bf16_instructions_is_mentioned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cpu, "accelerates_bf16", lambda: False)
    assert "no bf16 instructions" in policy_for("mixed_bfloat16").description.note
    assert policy_for("mixed_bfloat16", "npu").description.note == ""


def test_values_of_fp16_range_are_announced() -> None:
    overflowing = {mode.name for mode in MODES if policy_for(mode.name, "npu").can_overflow}
    assert overflowing == {mode.name for mode in MODES if mode.fp16}
    assert not policy_for("allow_mix_precision").can_overflow


def test_short_float32_formats_are_allowed_only_where_values_are_fp16() -> None:
    assert [mode.name for mode in MODES if not policy_for(mode.name).full_float32] == ["force_fp32"]


def test_unknown_device_type_is_refused() -> None:
    with pytest.raises(ValueError, match="cpu, cuda, npu"):
        policy_for("origin", "gpu")


def test_forward_region_needs_the_installed_lists() -> None:
    policy = policy_for("allow_mix_precision")
    with pytest.raises(RuntimeError, match="install"):
        policy.forward()
    policy.install()
    policy_for("mixed_bfloat16").install()
    with pytest.raises(RuntimeError, match="install"):
        policy.forward()


def test_closing_leaves_another_policys_lists_in_force() -> None:
    first, second = policy_for("allow_mix_precision"), policy_for("force_fp16")
    first.install()
    second.install()
    first.close()
    assert installed() is not None
    second.close()
    assert installed() is None


def test_fp32_mode_has_no_autocast_region_and_equals_plain_torch() -> None:
    policy = policy_for("must_keep_origin_dtype")
    policy.install()
    assert isinstance(policy.forward(), nullcontext)
    torch.manual_seed(0)
    net, inputs = nn.Linear(4, 4), torch.randn(2, 4)
    with policy.forward():
        assert torch.equal(net(inputs), F.linear(inputs, net.weight, net.bias))


class SmallNet(nn.Module):
    """Convolution, batch norm, a residual sum and a dense layer, as the recipes have them."""

    def __init__(self, activation: Callable[[torch.Tensor], torch.Tensor] = F.relu) -> None:
        super().__init__()
        self.activation = activation
        self.conv = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.inner = nn.Conv2d(8, 8, 1)
        self.dense = nn.Linear(8, 5)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.activation(self.norm(self.conv(images)))
        features = features + self.inner(features)
        return self.dense(features.mean((2, 3)))


@pytest.mark.parametrize("mode", [mode.name for mode in MODES])
@pytest.mark.parametrize("emulate", [False, True])
def test_every_mode_trains_a_small_net_with_fp32_gradients(mode: str, emulate: bool) -> None:
    torch.manual_seed(0)
    net = SmallNet()
    images, labels = torch.randn(8, 3, 6, 6), torch.arange(8) % 5
    policy = policy_for(mode, emulate_fp16=emulate, loss_scale=FIXED)
    assert policy.loss_scale is not None
    policy.install()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    losses: list[float] = []
    for _ in range(16):
        optimizer.zero_grad()
        with policy.forward():
            loss = F.cross_entropy(net(images), labels)
        policy.scale(loss).backward()
        found_bad = policy.unscale_and_check(list(net.parameters()))
        policy.loss_scale.update(found_bad)
        assert found_bad.item() == 0
        optimizer.step()
        losses.append(loss.item())
    assert all(p.dtype == torch.float32 for p in net.parameters())
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in net.parameters())
    assert net.norm.running_mean is not None
    assert net.norm.running_mean.dtype == torch.float32
    assert losses[-1] < 0.8 * losses[0], losses


@pytest.mark.parametrize(
    ("mode", "changes", "limit"),
    [
        ("must_keep_origin_dtype", {}, 0.0),
        ("force_fp32", {}, 1e-3),
        ("allow_mix_precision", {"emulate_fp16": True}, 1e-3),
        ("allow_mix_precision_bf16", {}, 1e-2),
        ("force_fp16", {}, 1e-2),
    ],
)
def test_gradients_are_as_close_to_fp32_as_the_mantissa_allows(
    mode: str, changes: dict[str, object], limit: float
) -> None:
    torch.manual_seed(0)
    # Smooth, since rounding moves a value near zero across the step of a ReLU's derivative.
    net = SmallNet(torch.tanh)
    images, labels = torch.randn(8, 3, 6, 6), torch.arange(8) % 5

    def gradients() -> torch.Tensor:
        return torch.cat([p.grad.flatten() for p in net.parameters() if p.grad is not None])

    F.cross_entropy(net(images), labels).backward()
    full = gradients().clone()
    net.zero_grad()
    policy = policy_for(mode, **changes)
    policy.install()
    with policy.forward():
        loss = F.cross_entropy(net(images), labels)
    policy.scale(loss).backward()
    error = ((gradients() - full).norm() / full.norm()).item()
    assert error <= limit
    assert limit == 0 or error > 0


def test_scaled_loss_is_fp32_and_unscaling_restores_the_gradients() -> None:
    policy = policy_for("force_fp16", loss_scale=FIXED)
    weight = nn.Parameter(torch.tensor([3.0, 4.0]))
    loss = (weight * weight).sum()
    scaled = policy.scale(loss.to(torch.bfloat16))
    assert scaled.dtype == torch.float32
    assert scaled.item() == loss.item() * 1024
    policy.scale(loss).backward()
    assert policy.unscale_and_check([weight]).item() == 0
    assert weight.grad is not None
    assert weight.grad.tolist() == [6, 8]


def test_without_a_loss_scale_the_loss_is_unchanged_and_overflow_still_detected() -> None:
    policy = policy_for("must_keep_origin_dtype")
    assert policy.loss_scale is None
    loss = torch.tensor(2.0, requires_grad=True)
    assert policy.scale(loss) is loss
    weight = nn.Parameter(torch.ones(2))
    weight.grad = torch.tensor([1.0, float("nan")])
    assert policy.unscale_and_check([weight]).item() == 1


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_non_finite_gradients_are_found_in_any_dtype(value: float, dtype: torch.dtype) -> None:
    policy = policy_for("allow_mix_precision", loss_scale=FIXED)
    parameters = [nn.Parameter(torch.zeros(3)) for _ in range(3)]
    bad = nn.Parameter(torch.zeros(3, dtype=dtype))
    for parameter in (*parameters[:2], bad):
        parameter.grad = torch.full_like(parameter, 1024)
    result = policy.unscale_and_check([*parameters, bad])
    assert (result.item(), result.dtype, result.shape) == (0, torch.float32, ())
    assert bad.grad is not None
    assert bad.grad.tolist() == [1, 1, 1]
    bad.grad[1] = value
    assert policy.unscale_and_check([*parameters, bad]).item() == 1


def test_absent_gradients_count_as_finite() -> None:
    policy = policy_for("allow_mix_precision", loss_scale=FIXED)
    assert policy.unscale_and_check([nn.Parameter(torch.ones(1))]).item() == 0
    assert policy.unscale_and_check([]).item() == 0


def test_emulated_fp16_overflows_and_the_exponential_scale_finds_a_scale_that_fits() -> None:
    torch.manual_seed(0)
    net, inputs = nn.Linear(4, 1), torch.full((2, 4), 10.0)
    scale = ExponentialLossScale(init_loss_scale=2.0**20, decr_every_n_nan_or_inf=1, decr_ratio=0.5)
    policy = policy_for("allow_mix_precision", emulate_fp16=True, loss_scale=scale)
    assert policy.loss_scale is not None
    policy.install()
    result: list[float] = []
    for _ in range(12):
        net.zero_grad()
        with policy.forward():
            loss = net(inputs).sum()
        policy.scale(loss).backward()
        bad = policy.unscale_and_check(net.parameters())
        policy.loss_scale.update(bad)
        result.append(bad.item())
    assert result[0] == 1
    assert result[-1] == 0
    assert policy.loss_scale.scale.item() <= 65504 / 20
    assert not policy.loss_scale.overflow_at_floor


def test_several_objectives_share_one_scale() -> None:
    policy = policy_for("allow_mix_precision", loss_scale=FIXED)
    policy.install()
    generator, critic = nn.Linear(2, 2), nn.Linear(2, 1)
    with policy.forward():
        fake = generator(torch.ones(1, 2))
        critic_loss, generator_loss = critic(fake.detach()).sum(), critic(fake).sum()
    for loss, net in ((critic_loss, critic), (generator_loss, generator)):
        net.zero_grad()
        policy.scale(loss).backward(inputs=list(net.parameters()))
        assert policy.unscale_and_check(net.parameters()).item() == 0
    assert generator.weight.grad is not None
    assert generator.weight.grad.abs().max() < 10


def test_mixlist_takes_effect(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps({"black-list": {"to-add": ["Add"]}}))
    policy = policy_for("allow_mix_precision", modify_mixlist=str(path))
    policy.install()
    low = torch.ones(2, dtype=torch.bfloat16)
    with policy.forward():
        assert (low + low).dtype == torch.float32
        assert (low * low).dtype == torch.bfloat16


def test_wrong_mixlist_is_refused_before_anything_is_installed(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps({"black-list": {"to-add": ["Sofmax"]}}))
    with pytest.raises(UserError, match="unknown op 'Sofmax'"):
        policy_for("allow_mix_precision", modify_mixlist=str(path))
    with pytest.raises(UserError, match="no effect with the mode"):
        policy_for("force_fp16", modify_mixlist=str(path))


def test_real_fp16_kernels_on_tiny_shapes_agree_with_the_emulation() -> None:
    torch.manual_seed(0)
    inputs, weight = torch.randn(2, 3), torch.randn(2, 3)
    policy = policy_for("allow_mix_precision", emulate_fp16=True)
    policy.install()
    with policy.forward():
        emulated = F.linear(inputs, weight)
    real = F.linear(inputs.half(), weight.half()).float()
    torch.testing.assert_close(emulated, real, rtol=2**-10, atol=2**-14)


def test_every_remark_on_a_mode_and_device_is_in_the_note() -> None:
    slow = "asks for fp16, which many CPU kernels compute slowly"
    bf16 = Cpu.note_on_bf16()
    for mode, device, changes, notes in (
        ("allow_mix_precision", "cpu", {}, [f"allow_mix_precision {slow}", bf16]),
        ("mixed_bfloat16", "cpu", {}, [bf16]),
        (
            "fp16",
            "cpu",
            {"emulate_fp16": True},
            ["rounded to fp16 in fp32 arithmetic; the speed is not representative"],
        ),
        (
            "fp16",
            "cuda",
            {"emulate_fp16": True},
            ["emulate_fp16 has no effect: a GPU computes in fp16"],
        ),
        ("force_fp32", "cpu", {}, []),
        (
            "mixed_bfloat16",
            "cuda",
            {"emulate_fp16": True},
            ["emulate_fp16 has no effect: allow_mix_precision_bf16 does not use fp16"],
        ),
    ):
        note = policy_for(mode, device, **changes).description.note
        kind = device_kind(device).names.kind
        expected = [each.replace("a GPU", kind) for each in notes if each]
        assert note == "; ".join(expected), (mode, device)


def test_autocast_dtype_is_bfloat16_if_float16_is_not_supported() -> None:
    low = {
        (mode, device): policy_for(mode, device).low_dtype
        for mode in ("origin", "allow_mix_precision", "mixed_bfloat16", "force_fp32")
        for device in ("cpu", "cuda")
    }
    half, brain = torch.float16, torch.bfloat16
    assert low == {
        ("origin", "cpu"): None,
        ("origin", "cuda"): None,
        ("allow_mix_precision", "cpu"): brain,
        ("allow_mix_precision", "cuda"): half,
        ("mixed_bfloat16", "cpu"): brain,
        ("mixed_bfloat16", "cuda"): brain,
        ("force_fp32", "cpu"): brain,
        ("force_fp32", "cuda"): half,
    }
