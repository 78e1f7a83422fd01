import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.tasks.sampling import as_bytes, between, drawn, numbered_latents


@settings(max_examples=30)
@given(
    first=st.integers(0, 1000),
    count=st.integers(1, 20),
    seed=st.integers(0, 2**63),
    truncation=st.floats(0.01, 5),
)
def test_vector_depends_only_on_index_and_seed_and_respects_the_truncation(
    first: int, count: int, seed: int, truncation: float
) -> None:
    whole = numbered_latents(0, first + count, 6, seed=seed, truncation=truncation)
    part = numbered_latents(first, count, 6, seed=seed, truncation=truncation)
    assert torch.equal(whole[first:], part)
    assert part.abs().max().item() <= truncation * (1 + 1e-6)


def test_other_seeds_give_other_vectors() -> None:
    one, other = (numbered_latents(0, 2, 6, seed=seed, truncation=2) for seed in (1, 2))
    assert not torch.isclose(one, other).any()


def test_interpolations_are_straight_and_include_both_ends() -> None:
    starts, ends = torch.randn(2, 3), torch.randn(2, 3)
    lines = between(starts, ends, 5).view(2, 5, 3)
    torch.testing.assert_close(lines[:, 0], starts)
    torch.testing.assert_close(lines[:, 4], ends)
    torch.testing.assert_close(lines[:, 2], (starts + ends) / 2)


def test_batch_size_limits_memory_without_changing_the_images() -> None:
    sizes: list[int] = []

    def generator(latents: torch.Tensor) -> torch.Tensor:
        sizes.append(len(latents))
        return latents.tanh()[:, :, None, None].expand(-1, -1, 2, 2)

    latents = torch.randn(7, 3)
    device = torch.device("cpu")
    made = drawn(generator, latents, device=device, batch=3)
    assert sizes == [3, 3, 1]
    assert torch.equal(made, drawn(generator, latents, device=device, batch=7))


def test_byte_conversion_inverts_the_normalisation() -> None:
    levels = torch.arange(256, dtype=torch.uint8)
    assert torch.equal(as_bytes(levels / 127.5 - 1), levels)
    assert as_bytes(torch.tensor([-3.0, 3.0])).tolist() == [0, 255]


def test_sixteen_images_are_generated_at_once_without_gradients() -> None:
    sizes: list[int] = []
    weight = torch.ones(1, requires_grad=True)

    def generator(latents: torch.Tensor) -> torch.Tensor:
        sizes.append(len(latents))
        made = weight * latents[:, :, None, None]
        assert not made.requires_grad
        return made

    latents = torch.linspace(-1, 1, 33)[:, None].expand(33, 3)
    made = drawn(generator, latents, device=torch.device("cpu"))
    assert sizes == [16, 16, 1]
    expected = ((torch.linspace(-1, 1, 33).double() + 1) * 127.5).round().tolist()
    assert made[:, 0, 0, 0].tolist() == pytest.approx(expected, abs=1)
    assert made[[0, 16, 32], 2, 0, 0].tolist() == [0, 128, 255]
