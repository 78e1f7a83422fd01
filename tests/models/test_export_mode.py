"""In export mode networks compute what they compute otherwise."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from jumar.models.bert.heads import BertForClassification
from jumar.models.bert.network import BertSize
from jumar.models.biggan import BigGan, spectral_layers
from jumar.models.export_mode import export_mode, in_export_mode
from jumar.models.mfcc import Mfcc
from jumar.models.nlrn import NonLocal
from jumar.models.pointwise import PointwiseConv2d
from jumar.models.same_padding import SameMaxPool2d
from jumar.models.vqvae import VQVAE


def text_head(positions: str) -> tuple[Callable[..., Tensor], tuple[Tensor, ...]]:
    size = BertSize(
        vocab_size=30,
        hidden_size=8,
        num_layers=1,
        num_heads=2,
        intermediate_size=16,
        max_positions=300,
        positions="relative" if positions == "relative" else "absolute",
    )
    ids = torch.randint(0, 30, (3, 280))
    mask = (torch.arange(280) < torch.tensor([[280], [3], [40]])).long()
    return BertForClassification(size, 3).eval(), (ids, torch.zeros_like(ids), mask)


def case(name: str) -> tuple[Callable[..., Tensor], tuple[Tensor, ...]]:
    """A network and inputs for which its two forms differ."""
    if name == "front end":
        return Mfcc(), (0.1 * torch.randn(12, 16000),)
    if name == "non-local":
        return NonLocal(4, 2, similarities=50), (torch.randn(3, 4, 6, 7),)
    if name == "codes":
        return VQVAE(variant="mnist", codes=20, width=8).nearest, (torch.randn(2, 8, 5, 5),)
    if name == "pointwise":
        image = torch.randn(2, 3, 8, 8).contiguous(memory_format=torch.channels_last)
        return PointwiseConv2d(3, 5, stride=2), (image,)
    if name == "odd pooling":
        return SameMaxPool2d(), (torch.randn(1, 2, 7, 9),)
    return text_head(name)


@pytest.mark.parametrize(
    "name",
    ["front end", "non-local", "codes", "pointwise", "odd pooling", "absolute", "relative"],
)
def test_both_implementations_give_the_same_numbers(name: str) -> None:
    torch.manual_seed(3)
    network, inputs = case(name)
    with torch.no_grad():
        expected = network(*inputs)
        with export_mode():
            given = network(*inputs)
    torch.testing.assert_close(given, expected, rtol=1e-4, atol=1e-4)


def test_export_mode_ends_with_its_block_even_after_an_error() -> None:
    with export_mode():
        with pytest.raises(ValueError, match="inside"), export_mode():
            raise ValueError("inside")
        assert in_export_mode()
    assert not in_export_mode()


def test_folded_spectral_norms_give_the_same_images() -> None:
    torch.manual_seed(5)
    generator = BigGan(width=8, latent=6, gain_starts_at=1.0).generator.eval()
    latent = torch.randn(1, 6)
    with torch.no_grad():
        expected = generator(latent)
        layers: list[nn.Module] = []
        for _, layer in spectral_layers(generator):
            layer.fold()
            layers.append(layer)
        assert layers
        torch.testing.assert_close(generator(latent), expected)
        torch.testing.assert_close(generator(latent), generator(latent))
