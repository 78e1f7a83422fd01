import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from jumar.models.biggan import BigGan, Discriminator, SelfAttention, latent_parts


def test_the_original_has_as_many_parameters() -> None:
    with torch.device("meta"):
        model = BigGan(width=96)
    count = {
        name: sum(p.numel() for p in network.parameters())
        for name, network in model.named_children()
    }
    assert count == {"generator": 99_832_561, "discriminator": 98_985_584}


def test_latent_vectors_are_cut_as_in_the_original() -> None:
    assert latent_parts(128) == [20, 20, 20, 20, 20, 28]
    assert latent_parts(120) == [20] * 6
    for wrong in (100, 0, 5):
        with pytest.raises(ValueError, match="multiple of 6"):
            latent_parts(wrong)


def test_too_narrow_networks_are_refused() -> None:
    with pytest.raises(ValueError, match="below 8"):
        Discriminator(width=7)


def test_weights_start_as_in_the_original() -> None:
    torch.manual_seed(1)
    model = BigGan(width=8)
    weight = model.generator.up[0].conv1.weight
    assert weight.abs().max().item() <= 0.04
    assert weight.std().item() == pytest.approx(0.0176, rel=0.02)  # 0.02, cut at two deviations
    assert model.generator.attention.gain.item() == 0
    assert model.generator.up[0].norm1.gain.bias.abs().max().item() == 0
    assert BigGan(width=8, gain_starts_at=1).generator.up[0].norm1.gain.bias.min().item() == 1


def test_fused_attention_equals_the_written_out_one_in_value_gradient_and_second_gradient() -> None:
    torch.manual_seed(2)
    attention = SelfAttention(16).double().eval()
    torch.nn.init.constant_(attention.gain, 0.7)
    found = []
    for fused in (False, True):
        attention.fused = fused
        images = torch.linspace(-1, 1, 16 * 64).sin().view(1, 16, 8, 8).double().requires_grad_()
        with sdpa_kernel(SDPBackend.MATH):
            made = attention(images)
        (slope,) = torch.autograd.grad(made.square().sum(), images, create_graph=True)
        (second,) = torch.autograd.grad(slope.square().sum(), images)
        found.append((made, slope, second))
    for written, fused in zip(*found, strict=True):
        torch.testing.assert_close(fused, written)


def test_images_are_float32_within_bounds_in_low_precision_too() -> None:
    model = BigGan(width=8).eval()
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        images = model(torch.randn(1, 128))
    assert images.shape == (1, 3, 128, 128)
    assert images.dtype == torch.float32
    assert images.abs().max().item() <= 1


def test_a_discriminator_without_norms_sees_each_picture_alone_and_its_brightness() -> None:
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
