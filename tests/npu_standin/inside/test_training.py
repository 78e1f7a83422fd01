"""What training asks of a device: the same numbers as on the CPU, mixed precision, state."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from jumar.devices.process import seed_everything
from jumar.devices.registry import open_device

NPU = open_device("npu").torch
CPU = torch.device("cpu")


def small_net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        # A bias before a batch norm has gradients of rounding alone, which Adam makes whole steps.
        nn.Conv2d(3, 8, 3, padding=1, groups=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=4),
        nn.LocalResponseNorm(3),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32, 5),
    )


def batch(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    image = torch.randn(4, 3, 8, 8, generator=generator)
    label = torch.randint(0, 5, (4,), generator=generator)
    return image.to(device), label.to(device)


def trained(
    device: torch.device, optimizer: Callable[[nn.Module], torch.optim.Optimizer], steps: int = 3
) -> dict[str, torch.Tensor]:
    net = small_net().to(device, memory_format=torch.channels_last)
    update = optimizer(net)
    image, label = batch(device)
    for _ in range(steps):
        update.zero_grad()
        loss = functional.cross_entropy(net(image), label, label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        update.step()
    assert all(tensor.device.type == device.type for tensor in net.state_dict().values())
    return {name: tensor.cpu() for name, tensor in net.state_dict().items()}


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda net: torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, foreach=False),
        lambda net: torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, foreach=True),
        lambda net: torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, fused=True),
        lambda net: torch.optim.AdamW(net.parameters(), lr=0.1, fused=True),
        lambda net: torch.optim.RMSprop(net.parameters(), lr=0.01),
    ],
)
def test_three_steps_match_the_cpu(
    optimizer: Callable[[nn.Module], torch.optim.Optimizer],
) -> None:
    torch.testing.assert_close(trained(NPU, optimizer), trained(CPU, optimizer))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_computes_matmul_in_low_precision_and_the_loss_in_float32(
    dtype: torch.dtype,
) -> None:
    linear = nn.Linear(4, 3).to(NPU)
    seen: dict[str, torch.dtype] = {}
    with torch.autocast("npu", dtype):
        low = linear(torch.ones(2, 4, device=NPU))
        seen["linear"] = low.dtype
        seen["relu"] = functional.relu(low).dtype
        seen["softmax"] = functional.softmax(low, -1).dtype
        seen["layer_norm"] = functional.layer_norm(low, (3,)).dtype
        seen["sum"] = low.sum().dtype
        loss = functional.cross_entropy(low, torch.zeros(2, dtype=torch.long, device=NPU))
        seen["loss"] = loss.dtype
    full = torch.float32
    assert seen == {
        "linear": dtype,
        "relu": dtype,
        "softmax": full,
        "layer_norm": full,
        "sum": full,
        "loss": full,
    }
    loss.backward()
    assert linear.weight.grad is not None
    assert (linear.weight.grad.dtype, linear.weight.grad.device.type) == (full, "npu")


def test_loss_scaler_skips_only_overflowing_steps() -> None:
    linear = nn.Linear(4, 3).to(NPU)
    before = linear.weight.detach().clone()
    update = torch.optim.SGD(linear.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("npu", init_scale=2.0**30)
    scales = []
    for step in range(2):
        with torch.autocast("npu", torch.float16):
            loss = linear(torch.ones(2, 4, device=NPU)).float().mean()
        scaler.scale(loss).backward()
        scaler.step(update)
        scaler.update(None if step == 0 else 4.0)
        update.zero_grad()
        scales.append(scaler.get_scale())
        if step == 0:
            assert torch.equal(linear.weight, before)
            scaler.update(8.0)
    assert scales == [2.0**29, 4.0]
    assert not torch.equal(linear.weight, before)


def test_weights_round_trip_through_a_file(tmp_path: Path) -> None:
    net = small_net().to(NPU)
    state = net.state_dict()
    save_file(state, tmp_path / "model.safetensors")
    on_host = load_file(tmp_path / "model.safetensors")
    assert {tensor.device.type for tensor in on_host.values()} == {"cpu"}
    other = small_net().to(NPU)
    with torch.no_grad():
        next(other.parameters()).zero_()
    other.load_state_dict(on_host)
    for name, tensor in other.state_dict().items():
        assert torch.equal(tensor, state[name])


@pytest.mark.parametrize("place", ["cpu", "npu:0", "npu:1", None])
def test_torch_save_and_load_honour_the_requested_device(place: str | None) -> None:
    file = io.BytesIO()
    torch.save({"slot": torch.arange(6.0, device=NPU)[2:], "step": 3}, file)
    file.seek(0)
    read = torch.load(file, map_location=place, weights_only=True)
    assert str(read["slot"].device) == (place or "npu:0")
    assert read["slot"].tolist() == [2, 3, 4, 5]


def test_optimizer_state_survives_a_reload() -> None:
    def steps(update: torch.optim.Optimizer, net: nn.Module, count: int) -> None:
        image, label = batch(NPU)
        for _ in range(count):
            update.zero_grad()
            functional.cross_entropy(net(image), label).backward()
            update.step()

    def fresh() -> tuple[nn.Module, torch.optim.Optimizer]:
        net = small_net().to(NPU)
        return net, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, fused=True)

    whole, update = fresh()
    steps(update, whole, 4)
    half, update = fresh()
    steps(update, half, 2)
    file = io.BytesIO()
    torch.save({"net": half.state_dict(), "optimizer": update.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file, map_location="cpu", weights_only=True)
    again, update = fresh()
    again.load_state_dict(saved["net"])
    update.load_state_dict(saved["optimizer"])
    steps(update, again, 2)
    for one, other in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


def test_seed_determines_the_devices_random_numbers() -> None:
    drawn = []
    for _ in range(2):
        seed_everything(11)
        noise = torch.randn(3, device=NPU)
        dropped = functional.dropout(torch.ones(64, device=NPU), 0.5)
        drawn.append(torch.cat([noise, dropped]))
    assert torch.equal(*drawn)


def test_loader_pins_its_batches() -> None:
    loader = DataLoader(TensorDataset(torch.arange(4.0)), batch_size=2, pin_memory=True)
    batches = [values for (values,) in loader]
    assert all(values.is_pinned() for values in batches)
    assert [values.to(NPU).sum().item() for values in batches] == [1, 5]


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t[1:, ::2].contiguous(),
        lambda t: t.view(-1)[3:].reshape(3, 3),
        lambda t: t.t().clone(),
        lambda t: t.expand(2, 3, 4).sum((0, 2)),
        lambda t: t[torch.tensor([2, 0], device=t.device)],
        lambda t: t.masked_fill(t > 5, 0.0),
        lambda t: t.topk(2, -1).indices,
        lambda t: t.unfold(1, 2, 1),
        lambda t: torch.where(t > 3, t, -t),
        lambda t: t.double().cumsum(0),
        lambda t: functional.interpolate(t[None, None], scale_factor=2.0, mode="bilinear"),
        lambda t: torch.stack(t.unbind(0), 1),
        lambda t: t.clone().index_fill_(0, torch.tensor([1], device=t.device), 9.0),
        lambda t: t.split(2)[1].mul_(2),
        lambda t: functional.scaled_dot_product_attention(t[None], t[None], t[None]),
        lambda t: torch.linalg.vector_norm(t, dim=0),
        lambda t: functional.one_hot(t.long().clamp(max=4), 5),
    ],
)
def test_operators_match_the_cpu(
    use: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    host = torch.arange(12.0).reshape(3, 4)
    result = use(host.to(NPU))
    assert result.device.type == "npu"
    torch.testing.assert_close(result.cpu(), use(host))
