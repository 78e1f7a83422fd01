"""Random numbers by key, row and feature, against the published hashes in plain whole numbers."""

import math
from dataclasses import FrozenInstanceError

import pytest
import torch
from scipy import stats
from torch import nn

from jumar.models.keyed_random import (
    Keyed,
    KeyedNormal,
    RandomPosition,
    keyed_bits,
    keyed_normal,
    keyed_token_bits,
    keyed_uniform,
    random_position,
    set_random_position,
)

CPU = torch.device("cpu")
SPLITMIX = {0: 0xE220A8397B1DCDAF, 1234567: 6457827717110365317}
"""The first number of the generator with this seed, as in its authors' C code."""


def splitmix(number: int) -> int:
    number = (number + 0x9E3779B97F4A7C15) % 2**64
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    number = (number ^ number >> 27) * 0x94D049BB133111EB % 2**64
    return number ^ number >> 31


def lowbias(number: int) -> int:
    """Without its last shift."""
    number %= 2**32
    number = (number ^ number >> 16) * 0x7FEB352D % 2**32
    return (number ^ number >> 15) * 0x846CA68B % 2**32


def signed(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


def expected_bits(key: int, first: int, rows: int, features: int) -> list[list[int]]:
    mixed = splitmix(key % 2**64)
    return [
        [
            signed(lowbias(lowbias(lowbias(row + mixed + first) + (mixed >> 32)) + lowbias(column)))
            for column in range(features)
        ]
        for row in range(rows)
    ]


@pytest.mark.parametrize(("key", "first"), [(0, 0), (1234567, 3), (2**64 - 1, 2**31 - 1)])
def test_position_consists_of_both_halves_of_the_mixed_key(key: int, first: int) -> None:
    position = random_position(key, first)
    mixed = SPLITMIX.get(key, splitmix(key))
    assert position.start.item() == signed(mixed + first)
    assert position.key.item() == signed(mixed >> 32)
    assert (position.start.dtype, position.key.dtype) == (torch.int32, torch.int32)
    assert random_position(key).start.item() == signed(mixed)


@pytest.mark.parametrize(("key", "first"), [(0, 0), (7, 5), (-3, 2**31 - 2), (2**63, 1000)])
def test_bits_and_uniform_numbers_match_the_hash(key: int, first: int) -> None:
    position = random_position(key, first)
    expected = expected_bits(key, first, 4, 6)
    assert keyed_bits(4, 6, position, CPU).tolist() == expected
    uniform = [[((bits % 2**32 >> 9) + 0.5) / 2**23 for bits in row] for row in expected]
    result = keyed_uniform(4, 6, position, CPU)
    assert result.dtype == torch.float32
    # Exactly: 23 bits and a half fit into float32.
    assert result.double().tolist() == uniform
    for truncation in (math.inf, 0.7):
        normal = keyed_normal(4, 6, position, CPU, truncation=truncation)
        within = torch.tensor(stats.truncnorm.ppf(uniform, -truncation, truncation)).float()
        torch.testing.assert_close(normal, within, rtol=1e-4, atol=1e-5)
    plain = keyed_normal(4, 6, position, CPU)
    assert torch.equal(plain, keyed_normal(4, 6, position, CPU, truncation=math.inf))


def test_token_bits_match_the_hash_of_sample_position_and_feature() -> None:
    samples, places = torch.tensor([0, 0, 3]), torch.tensor([0, 5, 2])
    mixed = splitmix(11)
    expected = []
    for sample, place in zip(samples.tolist(), places.tolist(), strict=True):
        token = lowbias(lowbias(sample + mixed + 40) + (mixed >> 32))
        token = lowbias(token + lowbias(place + 1))
        expected.append([signed(lowbias(token + lowbias(column))) for column in range(4)])
    result = keyed_token_bits(samples, places, 4, random_position(11, 40))
    assert result.tolist() == expected


def test_layers_are_numbered_in_network_order() -> None:
    layers = nn.Sequential(KeyedNormal(3), nn.Identity(), KeyedNormal(3, truncation=1.5))
    set_random_position(layers, 9, 4)
    for number, layer in enumerate((layers[0], layers[2])):
        assert isinstance(layer, KeyedNormal)
        position = random_position(splitmix(9) + number, 4)
        expected = keyed_normal(2, 3, position, CPU, truncation=(math.inf, 1.5)[number])
        assert torch.equal(layer(2, CPU), expected)


def test_layer_without_keys_says_what_to_call() -> None:
    with pytest.raises(RuntimeError) as error:
        KeyedNormal(3)(2, CPU)
    assert str(error.value) == (
        "KeyedNormal does not know which rows it gets: call "
        "set_random_position(model, key, first_row) before each forward in training"
    )
    assert Keyed().position is None


def test_shapes_are_inferred_without_data_for_compilers() -> None:
    """As `torch.compile` asks for them."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    position = random_position(1)
    samples = torch.zeros(5, dtype=torch.int32)
    with FakeTensorMode(allow_non_fake_inputs=True):
        bits = keyed_bits(2, 3, position, CPU)
        tokens = keyed_token_bits(samples, samples, 4, position)
    assert (tuple(bits.shape), bits.dtype) == ((2, 3), torch.int32)
    assert (tuple(tokens.shape), tokens.dtype) == ((5, 4), torch.int32)


def test_position_is_immutable_and_equals_only_itself() -> None:
    one, other = random_position(1), random_position(1)
    assert one != other
    assert len({one, other}) == 2
    with pytest.raises(FrozenInstanceError):
        one.key = other.key  # type: ignore[misc]
    assert isinstance(one, RandomPosition)
