"""Enlarging feature maps as `tf.image.resize_bilinear` does by default in TensorFlow 1.

Output pixel i samples the input at i / factor; neither corners nor centres of pixels are aligned.
`F.interpolate` offers only these two alignments.
"""

import torch
import torch.nn.functional as F


def enlarge(maps: torch.Tensor, factor: int) -> torch.Tensor:
    """Enlarge maps to `factor` times as many rows and columns.

    With the last row and column repeated once, aligning the corners puts output pixel i exactly
    at i / factor, so that torch's kernel can be used; the excess pixels are cut off.

    Args:
        maps: [N, channels, height, width].
        factor: At least 1.

    Returns:
        [N, channels, height * factor, width * factor]; a view where rows are cut off.
    """
    if factor == 1:
        return maps
    height, width = maps.shape[2:]
    # Not F.pad: the gradient of its "replicate" is not deterministic on every device.
    longer = torch.cat([maps, maps[:, :, -1:]], dim=2)
    longer = torch.cat([longer, longer[:, :, :, -1:]], dim=3)
    size = (height * factor + 1, width * factor + 1)
    larger = F.interpolate(longer, size=size, mode="bilinear", align_corners=True)
    return larger[:, :, : height * factor, : width * factor]
