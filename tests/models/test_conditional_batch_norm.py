import pytest
import torch

from jumar.models.conditional_batch_norm import EPSILON, ConditionalBatchNorm2d


def layer() -> ConditionalBatchNorm2d:
    torch.manual_seed(5)
    return ConditionalBatchNorm2d(3, 4).double()


def test_training_normalises_with_the_biased_variance_of_the_batch() -> None:
    norm, images, condition = layer(), torch.randn(2, 3, 4, 5).double(), torch.randn(2, 4).double()
    mean = images.mean((0, 2, 3), keepdim=True)
    variance = images.var((0, 2, 3), correction=0, keepdim=True)
    gain, shift = norm.gain(condition)[:, :, None, None], norm.shift(condition)[:, :, None, None]
    expected = (images - mean) / (variance + EPSILON).sqrt() * gain + shift
    torch.testing.assert_close(norm(images, condition), expected)
    torch.testing.assert_close(norm.running_mean, 0.1 * mean.flatten())
    torch.testing.assert_close(norm.running_var, 0.9 + 0.1 * variance.flatten())


def test_evaluation_uses_running_statistics_without_updating_them() -> None:
    norm = layer().eval()
    norm.running_mean.copy_(torch.tensor([1.0, 2.0, 3.0]))
    norm.running_var.copy_(torch.tensor([4.0, 5.0, 6.0]))
    before = norm.running_var.clone()
    images, condition = torch.randn(1, 3, 4, 5).double(), torch.randn(1, 4).double()
    result = norm(images, condition)
    gain, shift = norm.gain(condition)[:, :, None, None], norm.shift(condition)[:, :, None, None]
    mean, variance = norm.running_mean[:, None, None], norm.running_var[:, None, None]
    expected = (images - mean) / (variance + EPSILON).sqrt() * gain + shift
    torch.testing.assert_close(result, expected)
    assert torch.equal(norm.running_var, before)


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_memory_format_is_kept(memory_format: torch.memory_format) -> None:
    norm = ConditionalBatchNorm2d(3, 4)
    images = torch.randn(2, 3, 4, 5).contiguous(memory_format=memory_format)
    assert norm(images, torch.randn(2, 4)).is_contiguous(memory_format=memory_format)
