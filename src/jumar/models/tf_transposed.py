"""Transposed convolution with TensorFlow's SAME padding: `tf.nn.conv2d_transpose`.

SAME turns N positions into N * stride. The full result is longer by kernel - stride, which is cut
equally on both sides, with an odd row cut at the end. Torch's `padding` cuts equally on both sides
and its `output_padding` adds at the end: for kernel 3 and stride 2, `padding=1, output_padding=1`
has the right size but is off by one pixel.
"""

import torch.nn.functional as F
from torch import Tensor


def conv_transpose_same(input: Tensor, weight: Tensor, *, stride: int) -> Tensor:
    """The transposed convolution of images of any size.

    Args:
        input: [N, in, height, width].
        weight: [in, out, kernel, kernel].
        stride: Step of the window in output pixels, at most the kernel's size.

    Returns:
        [N, out, height * stride, width * stride]; a view where rows are cut off.

    Raises:
        ValueError: The stride is larger than the kernel, which leaves gaps.
    """
    kernel = weight.shape[2]
    if stride > kernel:
        raise ValueError(f"a stride of {stride} leaves gaps between windows of {kernel}")
    height, width = input.shape[2] * stride, input.shape[3] * stride
    before = (kernel - stride) // 2
    full = F.conv_transpose2d(input, weight, stride=stride, padding=before)
    return full[:, :, :height, :width]
