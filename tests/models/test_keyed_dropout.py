import copy
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from jumar.models import keyed_dropout, keyed_random
from jumar.models.keyed_dropout import KeyedDropout, KeyedTokenDropout
from jumar.models.keyed_random import (
    hashes_of_columns,
    hashes_of_rows,
    keyed_bits,
    keyed_token_bits,
    mixed_in_blocks,
    random_position,
    set_random_position,
)

KEYS = [0, 1, 2, 12345, 2**32, 2**63 + 1, -1]


def dropped(x: torch.Tensor, key: int, *, first_row: int = 0, p: float = 0.35) -> torch.Tensor:
    layer = KeyedDropout(p)
    set_random_position(layer, key, first_row)
    return layer(x)


def kept(key: int, rows: int, features: int, *, first_row: int = 0, p: float = 0.5) -> torch.Tensor:
    """1 where a feature is kept, else 0."""
    return (dropped(torch.ones(rows, features), key, first_row=first_row, p=p) != 0).double()


def largest_z_score(samples: torch.Tensor, p: float) -> float:
    """Largest correlation between two rows of masks, in standard deviations of chance."""
    centred = (samples - (1 - p)) / math.sqrt(p * (1 - p))
    scores = centred @ centred.T / math.sqrt(samples.shape[1])
    return scores.fill_diagonal_(0).abs().max().item()


@pytest.mark.parametrize("p", [0.01, 0.35, 0.5, 0.9])
@pytest.mark.parametrize("key", KEYS)
def test_share_of_kept_features_is_within_four_standard_deviations(key: int, p: float) -> None:
    mask = kept(key, 256, 512, p=p)
    deviation = math.sqrt(p * (1 - p) / mask.numel())
    assert abs(mask.mean().item() - (1 - p)) < 4 * deviation


def test_mean_is_preserved() -> None:
    x = torch.rand(512, 512) + 1
    assert dropped(x, 7).mean().item() == pytest.approx(x.mean().item(), rel=0.01)


@given(
    splits=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    first_row=st.integers(0, 2**31 - 64),
    key=st.integers(0, 2**64 - 1),
    features=st.lists(st.integers(1, 6), min_size=0, max_size=3),
)
@settings(max_examples=60)
def test_split_batch_is_masked_like_the_whole(
    splits: list[int], first_row: int, key: int, features: list[int]
) -> None:
    x = torch.ones(sum(splits), *features)
    whole = dropped(x, key, first_row=first_row)
    pieces: list[torch.Tensor] = []
    for piece in x.split(splits):
        pieces.append(dropped(piece, key, first_row=first_row))
        first_row += len(piece)
    assert torch.equal(torch.cat(pieces), whole)


def test_masks_of_rows_and_of_features_are_uncorrelated() -> None:
    mask = kept(3, 200, 2000)
    assert largest_z_score(mask, 0.5) < 6
    assert largest_z_score(mask.T, 0.5) < 6


def test_masks_of_keys_and_of_shifted_rows_are_uncorrelated() -> None:
    keys = [kept(key, 32, 512).flatten() for key in range(60)]
    shifted = [kept(0, 32, 512, first_row=32 * n).flatten() for n in range(1, 20)]
    assert largest_z_score(torch.stack(keys + shifted), 0.5) < 6


def test_masks_of_two_layers_are_uncorrelated() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = KeyedDropout(0.5)
            self.second = KeyedDropout(0.5)

    model = Both()
    masks: list[torch.Tensor] = []
    for key in range(30):
        set_random_position(model, key, 0)
        ones = torch.ones(32, 512)
        masks += [(layer(ones) != 0).double().flatten() for layer in (model.first, model.second)]
    assert largest_z_score(torch.stack(masks), 0.5) < 6


@pytest.mark.parametrize("direction", ["features", "rows"])
def test_patterns_of_eight_neighbours_are_equally_frequent(direction: str) -> None:
    mask = kept(11, 1024, 1024).long()
    mask = mask if direction == "features" else mask.T.contiguous()
    patterns = (mask.view(-1, 8) * 2 ** torch.arange(8)).sum(1)
    counts = torch.bincount(patterns, minlength=256).double()
    expected = len(patterns) / 256
    chi_square = ((counts - expected) ** 2 / expected).sum().item()
    assert chi_square < 255 + 5 * math.sqrt(2 * 255)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_mask_is_the_same_in_every_dtype(dtype: torch.dtype) -> None:
    output = dropped(torch.ones(16, 64, dtype=dtype), 5)
    assert output.dtype == dtype
    assert torch.equal(output != 0, dropped(torch.ones(16, 64), 5) != 0)


def test_autocast_keeps_the_dtype_of_the_input() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert dropped(torch.ones(2, 8, dtype=torch.bfloat16), 5).dtype == torch.bfloat16


def test_gradient_is_the_mask_divided_by_the_kept_share() -> None:
    x = torch.randn(8, 32, requires_grad=True)
    output = dropped(x, 9)
    output.sum().backward()
    assert x.grad is not None
    expected = (output.detach() != 0).float() / 0.65
    torch.testing.assert_close(x.grad, expected)


def test_mask_is_the_published_one() -> None:
    """A changed hash would make runs of two versions differ, and resumed runs diverge."""
    rows = ["".join(str(int(v)) for v in row) for row in kept(2024, 3, 24, first_row=5, p=0.35)]
    assert rows == [
        "001110110011101111110111",
        "100100011011111011011011",
        "111101111111010111101001",
    ]


def test_of_all_numbers_the_largest_is_kept_with_any_probability() -> None:
    bits = torch.tensor([-(2**31), 2**31 - 2, 2**31 - 1], dtype=torch.int32)
    is_kept = bits >= keyed_dropout._threshold(1 - 2**-33)
    assert is_kept.tolist() == [False, False, True]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_mask_keeps_the_features_whose_bits_reach_the_threshold(dtype: torch.dtype) -> None:
    dropout = KeyedTokenDropout(0.1)
    position = random_position(3, 2**31 - 2)
    dropout.position = position
    for tokens, features in ((0, 8), (3, 0), (1, 300_000), (700, 768)):
        samples, places = torch.arange(tokens) // 50, torch.arange(tokens) % 50
        is_kept = (
            keyed_token_bits(samples, places, features, position) >= round(0.1 * 2**32) - 2**31
        )
        mask = dropout(torch.ones(tokens, features, dtype=dtype), samples, places)
        assert torch.equal(mask, is_kept.to(dtype) * torch.tensor(1 / 0.9, dtype=dtype))


@given(rows=st.integers(0, 40), features=st.integers(1, 40), block=st.integers(1, 400))
def test_blocks_are_the_whole_in_order(rows: int, features: int, block: int) -> None:
    hashes = hashes_of_rows(torch.arange(rows), None, random_position(5))
    columns = hashes_of_columns(features, torch.device("cpu"))
    result = torch.zeros(rows, features, dtype=torch.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyed_random, "BLOCK", block)
        for first, bits in mixed_in_blocks(hashes, columns):
            assert bits.numel() <= max(features, block * torch.get_num_threads())
            result[first : first + len(bits)] += bits
    assert torch.equal(result, keyed_bits(rows, features, random_position(5), torch.device("cpu")))


def test_evaluation_and_probability_zero_are_the_identity() -> None:
    x = torch.randn(4, 8)
    assert KeyedDropout(0.5).eval()(x) is x
    assert KeyedDropout(0.0)(x) is x


def test_training_without_keys_is_refused() -> None:
    with pytest.raises(RuntimeError, match="set_random_position"):
        KeyedDropout(0.5)(torch.ones(2, 2))


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5])
def test_probabilities_outside_zero_to_below_one_are_refused(p: float) -> None:
    with pytest.raises(ValueError, match="probability"):
        KeyedDropout(p)


def test_probability_close_to_one_works() -> None:
    assert dropped(torch.ones(4, 64), 1, p=1 - 1e-12).isfinite().all()


def test_layer_has_no_saved_or_broadcast_state() -> None:
    layer = KeyedDropout(0.5)
    set_random_position(layer, 1, 0)
    assert not layer.state_dict()
    assert not list(layer.buffers())
    assert torch.equal(copy.deepcopy(layer)(torch.ones(4, 8)), layer(torch.ones(4, 8)))


def test_empty_batch_is_accepted() -> None:
    assert dropped(torch.ones(0, 8), 1).shape == (0, 8)


def test_compiled_layer_compiles_once_and_drops_equally() -> None:
    """`torch.compile` takes Python numbers on a module for constants and would compile every
    step anew."""
    compiled_graphs: list[torch.fx.GraphModule] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
        compiled_graphs.append(graph)
        return graph.forward

    layer = KeyedDropout(0.35)
    compiled = torch.compile(layer, backend=backend)
    x = torch.randn(4, 16)
    for step in range(3):
        set_random_position(layer, step, 4 * step)
        assert torch.equal(compiled(x), layer(x))
    assert len(compiled_graphs) == 1
