"""NLRN: initialisation, recomputation in the backward, attention in parts."""

import subprocess
import sys
from typing import cast

import pytest
import torch
from torch import nn

from jumar.models.nlrn import NLRN
from jumar.precision.policy import PrecisionPolicy
from jumar.precision.settings import PrecisionSettings


def create(*, recompute: bool, similarities: int = 0) -> NLRN:
    torch.manual_seed(5)
    model = NLRN(steps=3, filters=8, embedded=4, recompute=recompute, similarities=similarities)
    # Zero at the start, so that nothing of the similarities would reach the output.
    nn.init.normal_(model.recurrence.non_local.g.weight, std=0.1)
    return model


@pytest.mark.parametrize("mode", ["must_keep_origin_dtype", "allow_mix_precision_bf16"])
@pytest.mark.parametrize("channels_last", [False, True])
def test_recomputing_gives_the_same_bits_and_counts_each_batch_once(
    mode: str, channels_last: bool
) -> None:
    pictures = torch.rand(2, 1, 9, 11)
    policy = PrecisionPolicy(PrecisionSettings(mode=mode), device_type="cpu")
    policy.install()
    found: list[dict[str, torch.Tensor]] = []
    try:
        for recompute in (False, True):
            model = create(recompute=recompute).train()
            if channels_last:
                model.to(memory_format=torch.channels_last)
            for _ in range(2):
                with policy.forward():
                    output = model(pictures)
                    loss = output.float().square().mean()
                loss.backward()
            gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
            found.append({"output": output, **gradients, **dict(model.named_buffers())})
    finally:
        policy.close()
    assert found[0].keys() == found[1].keys()
    for name, value in found[0].items():
        assert torch.equal(value, found[1][name]), name
    assert found[1]["norms.0.0.num_batches_tracked"].item() == 2


def test_a_failing_backward_leaves_no_batch_norm_that_forgets_to_count() -> None:
    model = create(recompute=True).train()
    pictures = torch.rand(2, 1, 5, 5)
    loss = model(pictures).mean()

    def fail(gradient: torch.Tensor) -> None:
        raise RuntimeError("stop")

    model.recurrence.conv_a.weight.register_hook(fail)
    with pytest.raises(RuntimeError, match="stop"):
        loss.backward()
    before = cast(torch.Tensor, model.get_buffer("norms.1.0.num_batches_tracked")).item()
    model(pictures)
    assert model.get_buffer("norms.1.0.num_batches_tracked").item() == before + 1


@pytest.mark.parametrize("similarities", [7 * 99, 99 * 99, 2 * 99 * 99, 1])
def test_similarities_in_parts_give_the_same_picture_and_gradients(similarities: int) -> None:
    pictures = torch.rand(3, 1, 9, 11)
    found: list[list[torch.Tensor]] = []
    for limit in (3 * 99 * 99, similarities):
        model = create(recompute=False, similarities=limit).double()
        output = model(pictures.double())
        output.square().sum().backward()
        found.append([output, *(p.grad for p in model.parameters() if p.grad is not None)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_the_non_local_part_starts_as_the_identity() -> None:
    model = NLRN(steps=1, filters=8, embedded=4)
    x = torch.rand(1, 8, 4, 4)
    assert torch.equal(model.recurrence.non_local(x), x)


def test_parameters_of_the_original_are_as_many() -> None:
    trained = sum(parameter.numel() for parameter in NLRN().parameters())
    layers = {
        "conv1": 9 * 128 + 128,
        "theta and phi": 2 * (128 * 64 + 64),
        "g": 128 * 128 + 128,
        "two convolutions": 2 * (9 * 128 * 128 + 128),
        "conv_end": 9 * 128 + 1,
        "batch norms": 2 * (1 + 36 * 128 + 128),
    }
    assert trained == sum(layers.values())


def test_a_picture_of_512_px_takes_far_less_than_4_gb() -> None:
    """One step of full width and three batches of patches, because steps and batches reuse their
    memory; in a process of its own, whose peak is not that of other tests."""
    script = """
import re, torch
from jumar.models.nlrn import NLRN
from jumar.models.tiling import in_patches
torch.set_num_threads(1)
network, picture, batches = NLRN(steps=1).eval(), torch.rand(1, 1, 512, 512), 0

def three_times(patches):
    global batches
    batches += 1
    return network(patches) if batches <= 3 else patches

with torch.no_grad():
    in_patches(three_times, picture, patch=43, stride=7, batch=16)
assert batches == 289
# ru_maxrss would begin at the memory of the process that started this one.
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert int(found.stdout) * 1024 < 1e9
