"""ViDeNN's networks: initialisation, names of the published checkpoint, order of channels."""

import math
import re
from pathlib import Path

import pytest
import torch
from torch import nn

from jumar.models.tf_layout import TfNames
from jumar.models.videnn import (
    DEPTH,
    SpatialCNN,
    Temp3CNN,
    ViDeNN,
    joint_tf_names,
    tf_names,
    tf_variables,
)

Network = type[SpatialCNN] | type[Temp3CNN]
NETWORKS: list[Network] = [SpatialCNN, Temp3CNN]


def index_names(path: Path) -> set[str]:
    """The names in the index of a TensorFlow checkpoint: a table with shared prefixes."""
    data = path.read_bytes()

    def varint(at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value, at

    def entries(offset: int, size: int) -> list[tuple[bytes, int]]:
        end = offset + size - 4
        end -= 4 * int.from_bytes(data[end : end + 4], "little")
        at, key, result = offset, b"", []
        while at < end:
            shared, at = varint(at)
            rest, at = varint(at)
            length, at = varint(at)
            key = key[:shared] + data[at : at + rest]
            result.append((key, at + rest))
            at += rest + length
        return result

    at = len(data) - 48
    numbers: list[int] = []
    for _ in range(4):
        number, at = varint(at)
        numbers.append(number)
    names: set[str] = set()
    for _, handle in entries(numbers[2], numbers[3]):
        offset, at = varint(handle)
        size, _ = varint(at)
        names |= {key.decode() for key, _ in entries(offset, size)}
    return names - {""}


def matched(names: TfNames, stored: set[str]) -> tuple[set[str], set[str]]:
    """What of a checkpoint is a variable of the network, and what is neither that nor ignored."""
    known = {variable.tf_name for variable in names.variables}
    result: set[str] = set()
    left: set[str] = set()
    for name in stored:
        renamed = name
        for pattern, replacement in names.renamings:
            renamed = re.sub(pattern, replacement, renamed)
        if renamed in known:
            result.add(renamed)
        elif not any(re.search(pattern, name) for pattern in names.ignored):
            left.add(name)
    return result, left


@pytest.fixture(scope="module")
def published(shared: Path) -> set[str]:
    folder = shared / "data" / "pretrained" / "videnn-names"
    names = index_names(next(folder.glob("*.index")))
    assert len(names) == 275
    return names


@pytest.mark.parametrize("network", NETWORKS)
def test_names_cover_every_variable_of_the_published_checkpoint(
    network: Network, published: set[str]
) -> None:
    for output_bias in (False, network is Temp3CNN):
        model = network(output_bias=output_bias)
        result, left = matched(tf_names(model), published)
        assert result == {variable.tf_name for variable in tf_variables(model)}
        assert not left


def test_both_networks_are_found_in_one_checkpoint(published: set[str]) -> None:
    spatial, temporal = SpatialCNN(), Temp3CNN(output_bias=True)
    names = joint_tf_names(spatial, temporal, spatial_prefix="s.", temporal_prefix="t.")
    result, left = matched(names, published)
    assert len(result) == len(names.variables) == 93 + 22
    assert not left
    state = {f"s.{name}" for name in spatial.state_dict()}
    state |= {f"t.{name}" for name in temporal.state_dict()}
    assert {variable.name for variable in names.variables} <= state


def test_names_with_id1146_prefixes_map_to_the_network() -> None:
    model = SpatialCNN()
    own = {variable.tf_name for variable in tf_variables(model)}
    prefixed = {f"{graph}_graph/{name}" for name in own for graph in ("static", "dynamic")}
    result, left = matched(tf_names(model), prefixed | {"static_graph/beta1_power"})
    assert result == own
    assert not left


@pytest.mark.parametrize("network", NETWORKS)
def test_kernels_start_glorot_uniform_and_the_bias_at_zero(network: Network) -> None:
    model = network()
    for layer in (layer for layer in model.modules() if isinstance(layer, nn.Conv2d)):
        limit = math.sqrt(6 / (9 * layer.in_channels + 9 * layer.out_channels))
        largest = layer.weight.abs().max().item()
        assert 0.98 * limit < largest <= limit
        assert layer.weight.std().item() == pytest.approx(limit / math.sqrt(3), rel=0.03)
        assert layer.bias is None or not layer.bias.any()


@pytest.mark.parametrize("network", NETWORKS)
def test_bgr_is_the_same_network_with_reversed_channels(network: Network) -> None:
    torch.manual_seed(1)
    plain, turned = network(depth=4, width=4).eval(), network(depth=4, width=4, bgr=True).eval()
    turned.load_state_dict(plain.state_dict())
    frames = plain.head.in_channels // 3
    rgb = torch.rand(2, frames, 3, 6, 5)
    bgr = rgb.flip(2)
    assert torch.equal(turned(rgb.flatten(1, 2)).flip(1), plain(bgr.flatten(1, 2)))


@pytest.mark.parametrize("network", NETWORKS)
def test_receptive_field_is_twenty_pixels_to_each_side(network: Network) -> None:
    torch.manual_seed(1)
    model = network(width=2).eval().double()
    size = 2 * DEPTH + 5
    frames = torch.rand(1, model.head.in_channels, size, size).double().requires_grad_()
    model(frames)[0, :, size // 2, size // 2].sum().backward()
    assert frames.grad is not None
    reached = frames.grad[0].abs().sum(0).nonzero() - size // 2
    assert reached.min().item() >= -DEPTH
    assert reached.max().item() <= DEPTH


@pytest.mark.parametrize("network", NETWORKS)
def test_channels_last_gives_the_same_output_and_gradients(network: Network) -> None:
    torch.manual_seed(1)
    model = network(depth=6, width=8).double()
    frames = torch.rand(2, model.head.in_channels, 9, 7).double()
    results: list[list[torch.Tensor]] = []
    for memory_format in (torch.contiguous_format, torch.channels_last):
        model.to(memory_format=memory_format).zero_grad()
        output = model(frames.contiguous(memory_format=memory_format))
        output.square().sum().backward()
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        results.append([output.detach(), *gradients])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("margin", [0, 3])
def test_chain_denoises_each_frame_then_the_middle_one(margin: int) -> None:
    torch.manual_seed(2)
    spatial, temporal = SpatialCNN(depth=4, width=3), Temp3CNN(depth=4, width=3)
    chain = ViDeNN(spatial, temporal, margin=margin)
    triplets = torch.rand(2, 9, 14, 12)
    statistics = {name: value.clone() for name, value in spatial.state_dict().items()}
    for training in (True, False):
        chain.train(training)
        assert (chain.training, temporal.training, spatial.training) == (training, training, False)
        cut = margin if training else 0
        with torch.no_grad():
            frames = [
                spatial(triplets[:, at : at + 3])[:, :, cut : 14 - cut, cut : 12 - cut]
                for at in (0, 3, 6)
            ]
        expected = temporal(torch.cat(frames, dim=1))
        torch.testing.assert_close(chain(triplets), expected)
    chain.train()
    chain(triplets).square().mean().backward()
    assert all(p.grad is None and not p.requires_grad for p in spatial.parameters())
    assert all(p.grad is not None for p in temporal.parameters())
    for name, value in spatial.state_dict().items():
        assert torch.equal(value, statistics[name]), name
    assert ViDeNN(spatial, temporal).margin == 0
    assert not ViDeNN(spatial, temporal).spatial.training


def test_networks_have_the_papers_layers() -> None:
    torch.manual_seed(2)
    spatial, temporal = (
        network(depth=4, width=3, output_bias=True).double().eval() for network in NETWORKS
    )
    for norm in spatial.norms:
        assert (norm.eps, norm.momentum) == (1e-3, 0.01)
        norm.running_var.uniform_(0.5, 2)
        norm.running_mean.uniform_(-1, 1)
    convolved = nn.functional.conv2d
    for model, leaks, frames in ((spatial, 0.0, 3), (temporal, 0.2, 9)):
        nn.init.uniform_(model.tail.bias)
        x = torch.rand(1, frames, 6, 5, dtype=torch.float64)
        with torch.no_grad():
            y = convolved(x, model.head.weight, model.head.bias, padding=1)
            for number, layer in enumerate(model.body):
                y = convolved(torch.where(y > 0, y, leaks * y), layer.weight, padding=1)
                if model is spatial:
                    norm = spatial.norms[number]
                    scale = (norm.running_var + 1e-3).rsqrt()
                    y = (y - norm.running_mean[:, None, None]) * scale[:, None, None]
            y = convolved(torch.where(y > 0, y, leaks * y), model.tail.weight, padding=1)
            middle = x if model is spatial else x[:, 3:6]
            expected = middle - y - model.tail.bias[:, None, None]
            torch.testing.assert_close(model(x), expected)


@pytest.mark.parametrize("network", NETWORKS)
def test_networks_have_twenty_convolutions_of_64_channels_by_default(
    network: Network,
) -> None:
    with torch.device("meta"):
        model = network()
    frames = 1 if network is SpatialCNN else 3
    shapes = [tuple(each.weight.shape[:2]) for each in (model.head, *model.body, model.tail)]
    assert shapes == [(128, 3 * frames), (64, 128), *[(64, 64)] * 17, (3, 64)]
    assert model.tail.bias is None
    assert not model.bgr
    with pytest.raises(ValueError, match="only colour images have channels to reverse"):
        network(channels=1, bgr=True)
    grey = network(channels=1, depth=3, width=2)
    assert grey(torch.zeros(1, frames, 4, 4)).shape == (1, 1, 4, 4)


def test_names_of_non_weights_are_ignored_and_the_state_is_adams() -> None:
    for network, own, other in ((SpatialCNN, "", "temp-"), (Temp3CNN, "temp-", "")):
        names = tf_names(network(depth=3, width=2), prefix="p.")
        assert [v.name for v in names.variables][:2] == ["p.head.weight", "p.head.bias"]
        assert names.averages == "none"
        (optimizer,) = names.optimizers
        assert optimizer.slots["exp_avg"] == "/AdamOptimizer"
        for ignored in (
            f"{other}block1/conv2d/kernel",
            f"static_graph/{other}block2/conv2/kernel",
            f"{own}block20/conv2d/bias",
            f"{own}block1/conv2d/kernel/AdamOptimizer_1",
            "beta2_power_1",
            "dynamic_graph/block1/conv2d/kernel",
            "global_step",
            "learning_rate",
        ):
            assert any(re.search(pattern, ignored) for pattern in names.ignored), ignored
        assert not any(re.search(p, f"{own}block3/conv2d/kernel") for p in names.ignored)
        with_bias = tf_names(network(depth=3, width=2, output_bias=True))
        assert not any(re.search(p, f"{own}block20/conv2d/bias") for p in with_bias.ignored)
        assert with_bias.variables[-1].name == "tail.bias"
    with torch.device("meta"):
        assert len(tf_variables(SpatialCNN())) == 93
        assert len(tf_variables(Temp3CNN())) == 21
