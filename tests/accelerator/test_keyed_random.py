"""What is random on the device is keyed, so that it is the CPU's, bit for bit."""

import pytest
import torch

from jumar.devices.contract import Device
from jumar.models.keyed_dropout import KeyedDropout, KeyedTokenDropout
from jumar.models.keyed_random import keyed_bits, keyed_normal, random_position, set_random_position

pytestmark = pytest.mark.accelerator
KEYS = (0, 1, 2**63 - 1, 0x9E3779B97F4A7C15)


@pytest.mark.parametrize("key", KEYS)
def test_random_bits_match_the_cpu(device: Device, key: int) -> None:
    for rows, features, first in ((1, 1, 0), (7, 1023, 0), (64, 4096, 2**20)):
        position = random_position(key, first)
        here = keyed_bits(rows, features, position, device.torch)
        assert here.device.type == device.kind
        there = keyed_bits(rows, features, position, torch.device("cpu"))
        assert torch.equal(here.cpu(), there)


@pytest.mark.parametrize("p", [0.1, 0.35, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_mask_matches_the_cpu(device: Device, p: float, dtype: torch.dtype) -> None:
    dropout = KeyedDropout(p).train()
    set_random_position(dropout, 17, 5)
    x = torch.ones(32, 3, 17, 19, dtype=dtype)
    mask = dropout(x.to(device.torch)).cpu()
    assert torch.equal(mask, dropout(x))
    assert 0 < int((mask == 0).sum()) < mask.numel()


@pytest.mark.parametrize(("tokens", "features"), [(50, 64), (3000, 768), (200_000, 87)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_token_dropout_mask_matches_the_cpu(
    device: Device, tokens: int, features: int, dtype: torch.dtype
) -> None:
    dropout = KeyedTokenDropout(0.1).train()
    set_random_position(dropout, 3, 0)
    x = torch.ones(tokens, features, dtype=dtype)
    samples, places = torch.arange(tokens) // 10, torch.arange(tokens) % 10
    here = dropout(*(each.to(device.torch) for each in (x, samples, places)))
    assert torch.equal(here.cpu(), dropout(x, samples, places))


def test_latent_vectors_match_the_cpu_except_in_the_last_bits(device: Device) -> None:
    position = random_position(5)
    here = keyed_normal(16, 128, position, device.torch, truncation=2.0).cpu()
    there = keyed_normal(16, 128, position, torch.device("cpu"), truncation=2.0)
    assert here.abs().max() <= 2.0
    torch.testing.assert_close(here, there, rtol=1e-5, atol=1e-6)
