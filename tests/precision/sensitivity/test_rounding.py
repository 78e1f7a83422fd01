"""Noise is as large as the rounding of the dtype, for tensors of any dtype."""

import pytest
import torch

from jumar.precision.sensitivity.rounding import BITS, add_noise

LOW = [torch.float16, torch.bfloat16]


def noisy(tensor: torch.Tensor, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    result = tensor.clone()
    add_noise(result, dtype, torch.Generator().manual_seed(seed))
    return result


def ulp(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    exponents = torch.frexp(tensor.float())[1] - BITS[dtype]
    return torch.ldexp(torch.ones_like(tensor), exponents.clamp(min=-24))


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("wide", [torch.float32, torch.float64])
def test_wider_tensor_gets_errors_like_rounding(dtype: torch.dtype, wide: torch.dtype) -> None:
    tensor = torch.randn(100_000, generator=torch.Generator().manual_seed(1)).to(wide)
    added = noisy(tensor, dtype) - tensor
    assert (added.abs() <= 0.5001 * ulp(tensor, dtype)).all()
    rounding = tensor.to(dtype).to(wide) - tensor
    assert added.norm().item() == pytest.approx(rounding.norm().item(), rel=0.02)
    assert abs(added.mean().item()) < 3 * added.std().item() / 100_000**0.5


@pytest.mark.parametrize("dtype", LOW)
def test_tensor_of_the_dtype_moves_by_whole_steps_with_the_same_variance(
    dtype: torch.dtype,
) -> None:
    tensor = torch.rand(100_000, generator=torch.Generator().manual_seed(1)).add(1).to(dtype)
    moved = noisy(tensor, dtype)
    steps = (moved.float() - tensor.float()) / ulp(tensor, dtype)
    assert set(steps.unique().tolist()) == {-1.0, 0.0, 1.0}
    assert steps.square().mean().item() == pytest.approx(1 / 12, rel=0.03)
    assert abs(steps.mean().item()) < 0.005


@pytest.mark.parametrize("dtype", [torch.float32, *LOW])
def test_zeros_and_non_finite_values_are_unchanged(dtype: torch.dtype) -> None:
    largest = torch.finfo(dtype).max
    tensor = torch.tensor([0.0, float("inf"), float("-inf"), float("nan"), largest], dtype=dtype)
    for seed in range(40):
        result = noisy(tensor, torch.float16, seed)
        torch.testing.assert_close(result[:4], tensor[:4], rtol=0, atol=0, equal_nan=True)
        assert result[4].isfinite()


def test_float16_subnormals_keep_the_smallest_step_as_error() -> None:
    tensor = torch.full((10_000,), 1e-6)
    added = noisy(tensor, torch.float16) - tensor
    assert added.std().item() == pytest.approx(2**-24 / 12**0.5, rel=0.05)


def test_generator_determines_the_noise() -> None:
    tensor = torch.randn(100)
    assert torch.equal(noisy(tensor, torch.float16, 3), noisy(tensor, torch.float16, 3))
    assert not torch.equal(noisy(tensor, torch.float16, 3), noisy(tensor, torch.float16, 4))
