"""Gradient clipping as TensorFlow does it."""

# Torch documents its list functions and fused kernels under these names but does not export them.
# pyright: reportPrivateImportUsage=false

from collections.abc import Iterable

import torch
from torch import Tensor, nn

KINDS = ("none", "global_norm", "norm", "value")


@torch.no_grad()
def clip_gradients(parameters: Iterable[nn.Parameter], kind: str, limit: float) -> Tensor | None:
    """Clip gradients in place; nothing is read back from the device.

    Weight decay that the optimizer adds to the gradients comes after clipping, whereas in the
    original scripts the L2 losses are part of the gradients being clipped.

    Args:
        parameters: Parameters without a gradient are skipped.
        kind: `global_norm`: all gradients are scaled by one factor so that their joint norm is at
            most the limit (tf.clip_by_global_norm). `norm`: each gradient by its own factor
            (tf.clip_by_norm). `value`: each element to plus or minus the limit
            (tf.clip_by_value). `none`: nothing.
        limit: In units of the unscaled gradients.

    Returns:
        The joint norm before clipping, a float32 scalar on the device; None where clipping does
        not need it. With `global_norm`, a non-finite norm turns every gradient into NaN, as in
        TensorFlow, so that the step is recognized as bad.
    """
    if kind not in KINDS:
        raise ValueError(f"unknown clipping {kind!r}")
    by_dtype: dict[torch.dtype, list[Tensor]] = {}
    for parameter in parameters:
        if parameter.grad is not None:
            by_dtype.setdefault(parameter.grad.dtype, []).append(parameter.grad)
    if kind == "none" or not by_dtype:
        return None
    if kind == "value":
        for grads in by_dtype.values():
            torch._foreach_clamp_min_(grads, -limit)
            torch._foreach_clamp_max_(grads, limit)
        return None
    norms = {
        dtype: torch.stack(torch._foreach_norm(grads, 2, dtype=torch.float32))
        for dtype, grads in by_dtype.items()
    }
    joint = torch.cat(list(norms.values())).square().sum().sqrt()
    factor = limit / joint.clamp(min=limit)
    factor = torch.where(joint.isfinite(), factor, torch.nan)
    for dtype, grads in by_dtype.items():
        if kind == "global_norm":
            torch._foreach_mul_(grads, factor)
        else:
            factors = limit / norms[dtype].clamp(min=limit)
            torch._foreach_mul_(grads, list(factors.unbind()))
    return joint
