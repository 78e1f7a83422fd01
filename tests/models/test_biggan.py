import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from jumar.models.biggan import (
    BigGan,
    Discriminator,
    DownBlock,
    ResidualBlock,
    SelfAttention,
    UpBlock,
    latent_parts,
    spectral_layers,
)


def test_parameter_count_equals_the_originals() -> None:
    with torch.device("meta"):
        model = BigGan(width=96)
    count = {
        name: sum(p.numel() for p in network.parameters())
        for name, network in model.named_children()
    }
    assert count == {"generator": 99_832_561, "discriminator": 98_985_584}


def test_latent_vectors_are_split_as_in_the_original() -> None:
    assert latent_parts(128) == [20, 20, 20, 20, 20, 28]
    assert latent_parts(120) == [20] * 6
    for wrong in (100, 0, 5):
        with pytest.raises(ValueError, match="multiple of 6"):
            latent_parts(wrong)


def test_too_narrow_networks_are_refused() -> None:
    with pytest.raises(ValueError, match="below 8"):
        Discriminator(width=7)


def test_weights_are_initialised_as_in_the_original() -> None:
    torch.manual_seed(1)
    model = BigGan(width=8)
    weight = model.generator.up[0].conv1.weight
    assert weight.abs().max().item() <= 0.04
    assert weight.std().item() == pytest.approx(0.0176, rel=0.02)  # 0.02, cut at two deviations
    assert model.generator.attention.gain.item() == 0
    assert model.generator.up[0].norm1.gain.bias.abs().max().item() == 0
    assert BigGan(width=8, gain_starts_at=1).generator.up[0].norm1.gain.bias.min().item() == 1


def test_fused_attention_equals_the_explicit_one_up_to_second_gradients() -> None:
    torch.manual_seed(2)
    attention = SelfAttention(16).double().eval()
    torch.nn.init.constant_(attention.gain, 0.7)
    result = []
    for fused in (False, True):
        attention.fused = fused
        images = torch.linspace(-1, 1, 16 * 64).sin().view(1, 16, 8, 8).double().requires_grad_()
        with sdpa_kernel(SDPBackend.MATH):
            made = attention(images)
        (slope,) = torch.autograd.grad(made.square().sum(), images, create_graph=True)
        (second,) = torch.autograd.grad(slope.square().sum(), images)
        result.append((made, slope, second))
    for written, fused in zip(*result, strict=True):
        torch.testing.assert_close(fused, written)


def test_images_are_float32_within_bounds_even_in_low_precision() -> None:
    model = BigGan(width=8).eval()
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        images = model(torch.randn(1, 128))
    assert images.shape == (1, 3, 128, 128)
    assert images.dtype == torch.float32
    assert images.abs().max().item() <= 1


def test_discriminator_without_norms_sees_images_independently_and_their_brightness() -> None:
    torch.manual_seed(3)
    images = torch.rand(3, 3, 128, 128) * 2 - 1
    for norms in (True, False):
        network = Discriminator(width=8, norms=norms)
        given = images.clone()
        network(given)
        assert torch.equal(given, images)
        assert any(isinstance(part, torch.nn.BatchNorm2d) for part in network.modules()) == norms
    network = Discriminator(width=8, norms=False).eval()
    alone = torch.cat([network(image[None]) for image in images])
    torch.testing.assert_close(network(images), alone, rtol=1e-3, atol=1e-5)
    dark = network(images.clamp(max=0))
    assert not torch.allclose(dark, network(images), rtol=1e-3)
    assert not torch.allclose(network(torch.full_like(images, -0.5)), network(0 * images))


def test_blocks_are_convolutions_of_activated_norms_and_a_skip() -> None:
    torch.manual_seed(4)
    x = torch.randn(2, 4, 6, 6)
    condition = torch.randn(2, 5)
    up = UpBlock(4, 3, 5).eval()
    with torch.no_grad():
        y = up.conv2(up.norm2(up.conv1(up.norm1(x, condition).relu()), condition).relu())
        torch.testing.assert_close(up(x, condition), y + up.skip(x))
        assert y.shape == (2, 3, 12, 12)
        for norms, of_images in ((True, True), (True, False), (False, True), (False, False)):
            down = DownBlock(4, 3, norms=norms, of_images=of_images).eval()
            given = x.clone()
            first = x if of_images and not norms else down.norm1(x).relu()
            y = down.conv2(down.norm2(down.conv1(first)).relu())
            torch.testing.assert_close(down(given), y + down.skip(x))
            assert torch.equal(given, x)
            assert y.shape == (2, 3, 3, 3)
            block = ResidualBlock(4, norms=norms).eval()
            y = block.norm2(block.conv2(block.norm1(block.conv1(x)).relu()))
            torch.testing.assert_close(block(given), y + x)
            assert torch.equal(given, x)


def test_attention_matches_its_formula() -> None:
    torch.manual_seed(5)
    attention = SelfAttention(16).eval()
    torch.nn.init.constant_(attention.gain, 0.5)
    x = torch.randn(2, 16, 4, 6)
    with torch.no_grad():
        keys, values = (
            torch.nn.functional.max_pool2d(layer(x), 2).flatten(2)
            for layer in (attention.keys, attention.values)
        )
        assert (keys.shape[1], values.shape[1]) == (2, 8)
        queries = attention.queries(x).flatten(2)
        weights = torch.einsum("ncp,ncq->npq", queries, keys).softmax(dim=2)
        seen = torch.einsum("npq,ncq->ncp", weights, values).view(2, 8, 4, 6)
        for fused in (True, False):
            attention.fused = fused
            torch.testing.assert_close(attention(x), x + 0.5 * attention.out(seen))
    assert SelfAttention(8).fused is True


def test_networks_chain_their_blocks_with_attention_at_64_px() -> None:
    torch.manual_seed(6)
    model = BigGan(width=8, gain_starts_at=1.0).eval()
    torch.nn.init.constant_(model.generator.attention.gain, 0.5)
    torch.nn.init.constant_(model.discriminator.attention.gain, 0.5)
    latent = torch.randn(1, 128)
    parts = latent.split([20, 20, 20, 20, 20, 28], dim=1)
    made, judge = model.generator, model.discriminator
    with torch.no_grad():
        x = made.dense(parts[0]).view(1, 4, 4, 128).permute(0, 3, 1, 2)
        for number, (block, part) in enumerate(zip(made.up, parts[1:], strict=True)):
            if x.shape[2] == 64:
                x = made.attention(x)
                assert number == 4
            x = block(x, part)
        images = made.out(made.norm(x).relu()).tanh()
        torch.testing.assert_close(model(latent), images)
        y = judge.down[0](images)
        assert y.shape == (1, 8, 64, 64)
        y = judge.attention(y)
        for block in list(judge.down)[1:]:
            y = block(y)
        assert y.shape == (1, 128, 4, 4)
        logits = judge.out(judge.block(y).relu().sum((2, 3)))
        torch.testing.assert_close(judge(images), logits)
    norms = [part for part in model.modules() if isinstance(part, torch.nn.BatchNorm2d)]
    assert {(norm.eps, norm.momentum) for norm in norms} == {(1e-5, 0.1)}


def test_network_options_reach_every_layer() -> None:
    for moves, fused, norms in ((True, False, False), (False, True, True)):
        model = BigGan(
            width=8,
            latent=12,
            moves_in_evaluation=moves,
            fused_attention=fused,
            discriminator_norms=norms,
        )
        assert {layer.moves_in_evaluation for _, layer in spectral_layers(model)} == {moves}
        assert (model.generator.attention.fused, model.discriminator.attention.fused) == (
            fused,
            fused,
        )
        assert model.discriminator.norms is norms
        assert model.generator.parts == [2] * 6
        biases = [layer.bias for _, layer in spectral_layers(model) if layer.bias is not None]
        assert biases
        assert not any(bias.any() for bias in biases)
    plain = BigGan(width=8)
    assert {layer.moves_in_evaluation for _, layer in spectral_layers(plain)} == {False}
    assert plain.generator.attention.fused
    assert plain.discriminator.norms
    assert len(list(spectral_layers(plain))) == len({name for name, _ in spectral_layers(plain)})
    assert latent_parts(6) == [1] * 6
    with pytest.raises(
        ValueError, match="a latent vector of 7 numbers cannot be split into 6 parts; use 128 or"
    ):
        latent_parts(7)
    with pytest.raises(ValueError, match="a width of 7 channels is below 8"):
        BigGan(width=7)
