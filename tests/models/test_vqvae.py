import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from jumar.models import vqvae
from jumar.models.vqvae import (
    VARIANTS,
    VQVAE,
    nearest_codes,
    tf_names,
    tf_variables,
    unused_pull,
    vq_losses,
)


def small(variant: str = "cifar10") -> VQVAE:
    torch.manual_seed(0)
    model = VQVAE(variant=variant, codes=6, width=8)
    # As drawn, all features are nearly zero and share one code.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.3 * torch.randn_like(parameter))
    return model


def pictures(model: VQVAE, size: int = 16) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.rand(3, model.channels, size, size, generator=generator)


@pytest.mark.parametrize("variant", VARIANTS)
def test_image_is_reconstructed_in_its_size_from_codes_of_the_stated_size(variant: str) -> None:
    model = small(variant)
    images = pictures(model, 24)
    result = model(images)
    side = 24 // model.shrinking
    assert result.reconstruction.shape == images.shape
    assert result.codes.shape == (3, side, side)
    assert result.features.shape == result.chosen.shape == (3, 8, side, side)
    assert 0 < result.reconstruction.min() < result.reconstruction.max() < 1


def test_parameter_count_matches_the_published_mnist_checkpoint() -> None:
    model = VQVAE(variant="mnist", codes=5, width=64)
    assert 4 * sum(p.numel() for p in model.parameters()) == 331_652  # bytes of its data file


def test_each_part_gets_only_its_own_gradient() -> None:
    model = small()
    images = pictures(model)

    def gradients(*names: str) -> dict[str, torch.Tensor | None]:
        model.zero_grad(set_to_none=True)
        terms = vq_losses(images, model(images))
        torch.stack([terms[name] for name in names]).sum().backward()
        return {name: p.grad for name, p in model.named_parameters()}

    recon, vq, commit = gradients("recon"), gradients("vq"), gradients("commit")
    for name in recon:
        part = name.split(".")[0]
        assert (recon[name] is not None) == (part != "codebook"), name
        assert (vq[name] is not None) == (part == "codebook"), name
        assert (commit[name] is not None) == (part == "encoder"), name


def test_straight_through_gradient_reaches_the_encoder() -> None:
    model = small()
    images = pictures(model)
    codes = model.vectors(model(images).codes).detach().requires_grad_()
    (model.decode(codes) - images).square().mean().backward()
    model.zero_grad()
    model.encode(images).backward(codes.grad)
    expected = {n: p.grad.clone() for n, p in model.encoder.named_parameters()}
    model.zero_grad()
    vq_losses(images, model(images))["recon"].backward()
    for name, parameter in model.encoder.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name])


def test_image_that_hits_a_code_exactly_has_a_finite_gradient() -> None:
    model = small()
    images = pictures(model)
    with torch.no_grad():
        model.codebook[0] = model.encode(images)[0, :, 0, 0]
    terms = vq_losses(images, model(images))
    sum(terms.values()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@settings(max_examples=30)
@given(codes=st.integers(1, 40), width=st.integers(1, 9), most=st.integers(1, 200))
def test_nearest_code_does_not_depend_on_the_chunk_size(codes: int, width: int, most: int) -> None:
    generator = torch.Generator().manual_seed(codes * 100 + width)
    features = torch.randn(2, width, 3, 5, generator=generator)
    book = torch.randn(codes, width, generator=generator)
    before, vqvae._MAX_DISTANCES = vqvae._MAX_DISTANCES, most
    try:
        result = nearest_codes(features, book)
    finally:
        vqvae._MAX_DISTANCES = before
    rows = features.permute(0, 2, 3, 1).reshape(-1, 1, width).double()
    distances = (rows - book.double()).square().sum(-1)
    chosen = distances.gather(1, result.reshape(-1, 1))[:, 0]
    torch.testing.assert_close(chosen, distances.min(1).values, rtol=1e-5, atol=1e-5)


def test_codes_are_compared_in_float32_even_in_mixed_precision() -> None:
    book = torch.tensor([[1.0, 0.0], [1.0009765625, 0.0]])
    features = book.t().reshape(1, 2, 1, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert nearest_codes(features, book).flatten().tolist() == [0, 1]


def test_pull_moves_unused_codes_and_no_features() -> None:
    features = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).t().reshape(1, 2, 1, 2).requires_grad_()
    book = torch.tensor([[1.0, 0.0], [9.0, 2.0]], requires_grad=True)
    unused_pull(features, book).backward()
    assert book.grad is not None
    assert features.grad is None
    assert book.grad.tolist() == [[0.0, 0.0], [8.0, 2.0]]


def test_weights_are_initialised_as_in_the_original() -> None:
    torch.manual_seed(0)
    model = VQVAE(variant="imagenet", codes=512, width=128)
    # A normal of 0.02 cut at two deviations has a deviation of 0.0176.
    assert model.codebook.abs().max() <= 0.04
    assert model.codebook.std().item() == pytest.approx(0.0176, rel=0.01)
    transposed = model.decoder.get_submodule("tconv2d_1").weight
    assert transposed.std().item() == pytest.approx(0.02, rel=0.02)
    assert transposed.abs().max() > 0.05
    assert all(not p.any() for name, p in model.named_parameters() if name.endswith("bias"))


def test_checkpoint_names_match_the_originals_saver() -> None:
    model = small("mnist")
    names = [v.tf_name for v in tf_names(model).variables]
    assert names == [f"train/{v.tf_name}" for v in tf_variables(model)]
    assert "train/params/embed/embed" in names
    assert "train/params/dec/tconv2d_1/b" in names


@pytest.mark.parametrize(("variant", "width"), [("vqgan", 8), ("mnist", 6)])
def test_impossible_networks_are_refused(variant: str, width: int) -> None:
    with pytest.raises(ValueError, match=r"variant|multiple of 4"):
        VQVAE(variant=variant, codes=4, width=width)


@pytest.mark.parametrize(
    ("variant", "encoder", "decoder"),
    [
        (
            "mnist",
            ["conv2d_1 1 2", "relu_1", "conv2d_2 2 4", "relu_2", "conv2d_3 4 8", "relu_3"],
            ["tconv2d_1 8 4", "relu_2", "tconv2d_2 4 2", "relu_3", "tconv2d_3 2 1"],
        ),
        (
            "cifar10",
            ["conv2d_1 3 8", "relu_1", "conv2d_2 8 8", "relu_2", "res_1", "res_2"],
            ["res_1", "res_2", "tconv2d_1 8 8", "relu_2", "tconv2d_2 8 3"],
        ),
        (
            "imagenet",
            ["conv2d_1 3 4", "relu_1", "conv2d_2 4 8", "relu_2", *(f"res_{n}" for n in range(4))],
            [*(f"res_{n}" for n in range(4)), "relu_1", "tconv2d_1 8 4", "relu_2", "tconv2d_2 4 3"],
        ),
    ],
)
def test_layers_match_the_published_networks(
    variant: str, encoder: list[str], decoder: list[str]
) -> None:
    model = small(variant)

    def listed(part: nn.Module) -> list[str]:
        return [
            f"{name} {layer.in_channels} {layer.out_channels}"
            if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d)
            else name
            for name, layer in part.named_children()
        ]

    assert listed(model.encoder) == encoder
    assert listed(model.decoder) == decoder
    for layer in (*model.encoder, *model.decoder):
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
            assert (layer.kernel_size, layer.stride) == ((4, 4), (2, 2))
    assert (model.channels, model.shrinking) == ((1, 8) if variant == "mnist" else (3, 4))
    scopes = [
        f"train/params/{part}/{name.split()[0]}{end}"
        for part, names in (("enc", encoder), ("dec", decoder))
        for name in names
        if "relu" not in name
        for end in (("_3", "_1") if "res" in name else ("",))
    ]
    expected = [f"{scope}/{kind}" for scope in scopes for kind in "wb"]
    assert [v.tf_name for v in tf_names(model).variables] == [
        *expected,
        "train/params/embed/embed",
    ]


def test_loss_matches_its_formula_and_the_result_has_the_chosen_codes() -> None:
    model = small()
    images = pictures(model)
    result = model(images)
    rows = result.features.permute(0, 2, 3, 1)
    apart = (rows[..., None, :] - model.codebook).square().sum(-1)
    assert torch.equal(result.codes, apart.argmin(-1))
    torch.testing.assert_close(result.chosen, model.codebook[result.codes].permute(0, 3, 1, 2))
    torch.testing.assert_close(result.reconstruction, model.decoder(result.chosen).sigmoid())
    distance = apart.min(-1).values.mean()
    terms = vq_losses(images, result)
    assert list(terms) == ["recon", "vq", "commit"]
    torch.testing.assert_close(terms["recon"], (result.reconstruction - images).square().mean())
    for name in ("vq", "commit"):
        torch.testing.assert_close(terms[name], distance)


def test_residual_layer_adds_two_convolutions_with_activations() -> None:
    torch.manual_seed(3)
    layer = vqvae.Residual(4)
    x = torch.randn(1, 4, 5, 6)
    wide = nn.functional.conv2d(x.relu(), layer.wide.weight, layer.wide.bias, padding=1).relu()
    added = nn.functional.conv2d(wide, layer.pointwise.weight, layer.pointwise.bias)
    torch.testing.assert_close(layer(x), x + added)
    assert layer.wide.kernel_size == (3, 3)


def test_pull_is_the_mean_squared_distance_of_codes_to_their_nearest_feature() -> None:
    features = torch.tensor([[0.0, 0.0], [4.0, 3.0]]).t().reshape(1, 2, 1, 2)
    book = torch.tensor([[0.0, 1.0], [4.0, 1.0], [0.0, -2.0]])
    assert unused_pull(features, book).item() == pytest.approx((1 + 4 + 4) / 3)


def test_impossible_networks_are_named() -> None:
    with pytest.raises(ValueError, match="variant") as error:
        VQVAE(variant="vqgan", codes=4, width=8)
    assert str(error.value) == "the variant must be one of mnist, cifar10, imagenet, not 'vqgan'"
    with pytest.raises(ValueError, match="width") as error:
        VQVAE(variant="mnist", codes=4, width=6)
    assert str(error.value) == "the width of a code must be a multiple of 4, not 6"
    names = tf_names(small("mnist"))
    assert names.averages == "none"
    (renaming,) = names.renamings
    for stored in ("params/enc/x", "train/params/enc/x", "valid/params/enc/x"):
        assert re.sub(*renaming, stored) == "train/params/enc/x"
    assert re.sub(*renaming, "a/b/params/x") == "a/b/params/x"
    for ignored in (
        "train/params/enc/x/Adam_1",
        "train/beta2_power",
        "train/Variable",
        "global_step",
    ):
        assert any(re.search(pattern, ignored) for pattern in names.ignored)
