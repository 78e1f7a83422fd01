import pytest
import torch
from torch import nn

from jumar.training.clipping import clip_gradients


def with_gradients(*gradients: torch.Tensor) -> list[nn.Parameter]:
    made = [nn.Parameter(torch.zeros_like(gradient)) for gradient in gradients]
    for parameter, gradient in zip(made, gradients, strict=True):
        parameter.grad = gradient.clone()
    return made


def grads(parameters: list[nn.Parameter]) -> list[torch.Tensor]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def test_global_norm_clipping_scales_all_gradients_by_one_factor() -> None:
    own = with_gradients(torch.tensor([3.0, 0.0]), torch.tensor([0.0, 4.0]))
    norm = clip_gradients(own, "global_norm", 1.0)
    assert norm is not None
    assert norm.item() == 5.0
    torch.testing.assert_close(grads(own), [torch.tensor([0.6, 0.0]), torch.tensor([0.0, 0.8])])


def test_norm_clipping_scales_each_gradient_by_its_own_factor() -> None:
    own = with_gradients(torch.tensor([3.0, 4.0]), torch.tensor([0.3, 0.4]))
    clip_gradients(own, "norm", 1.0)
    torch.testing.assert_close(grads(own), [torch.tensor([0.6, 0.8]), torch.tensor([0.3, 0.4])])


def test_value_clipping_bounds_each_element() -> None:
    own = with_gradients(torch.tensor([-3.0, 0.5, 2.0]))
    assert clip_gradients(own, "value", 1.0) is None
    assert grads(own)[0].tolist() == [-1.0, 0.5, 1.0]


@pytest.mark.parametrize("kind", ["none", "global_norm", "norm", "value"])
def test_gradients_within_the_limit_keep_every_bit(kind: str) -> None:
    gradient = torch.randn(17, generator=torch.Generator().manual_seed(0)) * 1e-3
    own = with_gradients(gradient)
    clip_gradients(own, kind, 1.0)
    assert torch.equal(grads(own)[0], gradient)


def test_non_finite_norm_shows_in_every_gradient() -> None:
    own = with_gradients(torch.tensor([1.0]), torch.tensor([float("inf")]))
    clip_gradients(own, "global_norm", 1.0)
    assert all(gradient.isnan().all() for gradient in grads(own))


def test_16_bit_gradients_are_measured_in_32_bits_together_with_the_others() -> None:
    own = with_gradients(torch.full((4,), 300.0, dtype=torch.float16), torch.full((1,), 800.0))
    norm = clip_gradients(own, "global_norm", 1.0)
    assert norm is not None
    assert norm.item() == 1000.0
    assert grads(own)[0].dtype == torch.float16
    torch.testing.assert_close(grads(own)[0].float(), torch.full((4,), 0.3), atol=2e-4, rtol=0)


def test_parameters_without_a_gradient_are_skipped() -> None:
    own = [*with_gradients(torch.tensor([2.0])), nn.Parameter(torch.zeros(3))]
    clip_gradients(own, "norm", 1.0)
    assert own[1].grad is None
    assert clip_gradients(own[1:], "norm", 1.0) is None


def test_unknown_kind_is_an_error_and_none_is_a_no_op() -> None:
    own = with_gradients(torch.tensor([3.0, 4.0]))
    with pytest.raises(ValueError, match="unknown clipping 'norms'"):
        clip_gradients(own, "norms", 1.0)
    assert clip_gradients(own, "none", 1.0) is None
    for kind in ("global_norm", "norm", "value"):
        assert clip_gradients([nn.Parameter(torch.zeros(2))], kind, 1.0) is None
    assert grads(own)[0].tolist() == [3.0, 4.0]
    norm = clip_gradients(own, "norm", 5.0)
    assert norm is not None
    assert norm.item() == 5.0
    assert grads(own)[0].tolist() == [3.0, 4.0]
