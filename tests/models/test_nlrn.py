"""NLRN: initialisation, recomputation in the backward, attention in parts."""

import subprocess
import sys
from typing import cast

import pytest
import torch
from torch import nn

from jumar.models.nlrn import NLRN, NonLocal, tf_names
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
    result: list[dict[str, torch.Tensor]] = []
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
            result.append({"output": output, **gradients, **dict(model.named_buffers())})
    finally:
        policy.close()
    assert result[0].keys() == result[1].keys()
    for name, value in result[0].items():
        assert torch.equal(value, result[1][name]), name
    assert result[1]["norms.0.0.num_batches_tracked"].item() == 2


def test_failing_backward_does_not_leave_batch_norms_uncounted() -> None:
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
def test_chunked_similarities_give_the_same_image_and_gradients(similarities: int) -> None:
    pictures = torch.rand(3, 1, 9, 11)
    result: list[list[torch.Tensor]] = []
    for limit in (3 * 99 * 99, similarities):
        model = create(recompute=False, similarities=limit).double()
        output = model(pictures.double())
        output.square().sum().backward()
        result.append([output, *(p.grad for p in model.parameters() if p.grad is not None)])
    for one, other in zip(*result, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("similarities", [7 * 99, 99 * 99, 2 * 99 * 99])
def test_no_more_similarities_exist_at_a_time_than_allowed(
    similarities: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    softmax = torch.softmax

    def measured(values: torch.Tensor, dim: int) -> torch.Tensor:
        sizes.append(values.numel())
        return softmax(values, dim)

    monkeypatch.setattr(torch, "softmax", measured)
    layer = NonLocal(8, 4, similarities=similarities)
    layer(torch.rand(3, 8, 9, 11))
    assert sum(sizes) == 3 * 99 * 99
    assert max(sizes) == similarities
    sizes.clear()
    NonLocal(8, 4)(torch.rand(3, 8, 9, 11))
    assert sizes == [3 * 99 * 99]


def test_non_local_part_starts_as_the_identity() -> None:
    model = NLRN(steps=1, filters=8, embedded=4)
    x = torch.rand(1, 8, 4, 4)
    assert torch.equal(model.recurrence.non_local(x), x)


def test_parameter_count_equals_the_originals() -> None:
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


def test_image_of_512_px_takes_far_less_than_4_gb() -> None:
    """One step of full width and three batches of patches, because steps and batches reuse their
    memory; in a process of its own, whose peak is not that of other tests."""
    script = """
import re, torch
from jumar.models.nlrn import NLRN, tf_names
from jumar.models.tiling import in_patches
torch.set_num_threads(1)
network, image, batches = NLRN(steps=1).eval(), torch.rand(1, 1, 512, 512), 0

def three_times(patches):
    global batches
    batches += 1
    return network(patches) if batches <= 3 else patches

with torch.no_grad():
    in_patches(three_times, image, patch=43, stride=7, batch=16)
assert batches == 289
# ru_maxrss would begin at the memory of the process that started this one.
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert int(result.stdout) * 1024 < 1e9


def test_network_has_the_layers_of_the_original() -> None:
    torch.manual_seed(5)
    model = NLRN(steps=2, filters=4, embedded=3).double().eval()
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.normal_(layer.weight, std=0.3)
            nn.init.normal_(layer.bias, std=0.3)
        if isinstance(layer, nn.BatchNorm2d):
            assert (layer.eps, layer.momentum) == (1e-3, 0.01)
            layer.running_mean.uniform_(-0.5, 0.5)
            layer.running_var.uniform_(0.5, 2)

    def normed(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        assert isinstance(layer, nn.BatchNorm2d)
        assert layer.running_mean is not None
        assert layer.running_var is not None
        scale = (layer.running_var + 1e-3).rsqrt()[:, None, None]
        return (x - layer.running_mean[:, None, None]) * scale

    def convolved(layer: nn.Conv2d, x: torch.Tensor) -> torch.Tensor:
        padding = layer.weight.shape[-1] // 2
        return nn.functional.conv2d(x, layer.weight, layer.bias, padding=padding)

    pictures = torch.rand(2, 1, 4, 5, dtype=torch.float64)
    shared = model.recurrence
    with torch.no_grad():
        first = convolved(model.conv_in, normed(model.norm_in, pictures))
        x = first
        for norms in model.norms:
            one, two, three = norms.children()
            x = normed(one, x).relu()
            theta, phi, g = (
                convolved(layer, x).flatten(2)
                for layer in (shared.non_local.theta, shared.non_local.phi, shared.non_local.g)
            )
            weights = torch.einsum("ncp,ncq->npq", theta, phi).softmax(dim=2)
            x = x + torch.einsum("npq,ncq->ncp", weights, g).view_as(x)
            x = convolved(shared.conv_a, normed(two, x))
            x = convolved(shared.conv_b, normed(three, x).relu()) + first
        expected = convolved(model.conv_out, normed(model.norm_out, x).relu()) + pictures
        torch.testing.assert_close(model(pictures), expected)


def test_weights_are_initialised_as_in_the_original_and_steps_recomputed_by_default() -> None:
    torch.manual_seed(5)
    model = NLRN()
    assert (len(model.norms), {len(each) for each in model.norms}) == (12, {3})
    assert model.recompute is True
    assert model.recurrence.non_local.similarities == 0
    for name, layer in model.named_modules():
        if isinstance(layer, nn.Conv2d):
            fans = layer.weight[0].numel() + layer.weight[:, 0].numel()
            limit = 0 if name.endswith(".g") else (6 / fans) ** 0.5
            assert 0.97 * limit <= layer.weight.abs().max().item() <= limit, name
            assert not layer.bias.any()


def test_names_match_the_originals_graph() -> None:
    with torch.device("meta"):
        names = tf_names(NLRN(steps=2))
    listed = [variable.tf_name for variable in names.variables]

    def norm(scope: str) -> list[str]:
        return [f"{scope}/{part}" for part in ("gamma", "beta", "moving_mean", "moving_variance")]

    def layer(scope: str) -> list[str]:
        return [f"{scope}/kernel", f"{scope}/bias"]

    assert listed == [
        *norm("batch_normalization"),
        *layer("conv1"),
        *norm("rnn/batch_normalization"),
        *layer("rnn/non_local_theta"),
        *layer("rnn/non_local_phi"),
        *layer("rnn/non_local_g"),
        *norm("rnn/batch_normalization_1"),
        *layer("rnn/RB1_a"),
        *norm("rnn/batch_normalization_2"),
        *layer("rnn/RB1_b"),
        *(each for n in (3, 4, 5) for each in norm(f"rnn/batch_normalization_{n}")),
        *norm("batch_normalization_1"),
        *layer("conv_end"),
    ]
    assert [v.name for v in names.variables][26:28] == [
        "recurrence.conv_b.weight",
        "recurrence.conv_b.bias",
    ]
    assert names.averages == "none"
    assert [each.powers for each in names.optimizers] == [("beta1_power", "beta2_power")]
