"""Recording changes no bit of a run: weights, buffers, optimizer, random numbers."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import jumar.precision
from tests.precision.recording.networks import Network, batch

STEPS = 4


def train(context: Any, *, bf16: bool, adam: bool, parts: int = 1) -> dict[str, torch.Tensor]:
    """All that a run leaves behind."""
    torch.manual_seed(0)
    net = Network()
    optimizer = (
        torch.optim.AdamW(net.parameters(), 1e-2)
        if adam
        else torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, foreach=False)
    )
    losses: list[torch.Tensor] = []
    with context:
        for step in range(STEPS):
            optimizer.zero_grad()
            for part in range(parts):
                images, labels = batch(parts * step + part)
                with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                    loss = F.cross_entropy(net(images), labels)
                loss.backward()
                losses.append(loss.detach())
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
    state = {
        f"{number}.{name}": value
        for number, slots in optimizer.state_dict()["state"].items()
        for name, value in slots.items()
        if isinstance(value, torch.Tensor)
    }
    gradients = {f"grad.{name}": each.grad for name, each in net.named_parameters()}
    return {
        **net.state_dict(),
        **state,
        **gradients,
        "losses": torch.stack(losses),
        "random": torch.get_rng_state(),
    }


def every_step(folder: Path, level: Any) -> Any:
    return jumar.precision.dump(folder, steps=range(STEPS), level=level)


@pytest.mark.parametrize("level", ["modules", "statistics", "tensors"])
@pytest.mark.parametrize("bf16", [False, True], ids=["fp32", "bf16"])
def test_dumped_run_ends_with_the_same_bits(tmp_path: Path, level: str, bf16: bool) -> None:
    bare = train(nullcontext(), bf16=bf16, adam=True)
    dumped = train(every_step(tmp_path, level), bf16=bf16, adam=True)
    assert all(torch.equal(value, dumped[name]) for name, value in bare.items())
    assert bare["losses"].unique().numel() == STEPS


@pytest.mark.parametrize("bf16", [False, True], ids=["fp32", "bf16"])
def test_gradients_are_accumulated_in_the_same_order(tmp_path: Path, bf16: bool) -> None:
    options = {"bf16": bf16, "adam": False, "parts": 3}
    bare = train(nullcontext(), **options)
    dumped = train(every_step(tmp_path, "statistics"), **options)
    assert all(torch.equal(value, dumped[name]) for name, value in bare.items())
