"""One small call for each of many operators, as a network would make it, on any device."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

Make = Callable[..., Tensor]
"""make(*shape) returns a positive tensor of the dtype and device under test."""


def _labels(make: Make, *shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.int64, device=make(1).device)


def _norm(make: Make) -> Tensor:
    # Not in training, where fake tensors of an absent device cannot be written into.
    mean, var = make(3).detach().float(), make(3).detach().float()
    return torch.batch_norm(make(2, 3, 4), None, None, mean, var, False, 0.1, 1e-5, False)


CALLS: dict[str, Callable[[Make], Tensor]] = {
    "mm": lambda m: torch.mm(m(2, 3), m(3, 2)),
    "matmul": lambda m: torch.matmul(m(2, 2, 3), m(3, 2)),
    "addmm": lambda m: torch.addmm(m(2), m(2, 3), m(3, 2)),
    "bmm": lambda m: torch.bmm(m(2, 2, 3), m(2, 3, 2)),
    "baddbmm": lambda m: torch.baddbmm(m(2, 2, 2), m(2, 2, 3), m(2, 3, 2)),
    "linear": lambda m: F.linear(m(2, 3), m(4, 3), m(4)),
    "einsum": lambda m: torch.einsum("ij,jk->ik", m(2, 3), m(3, 2)),
    "conv1d": lambda m: F.conv1d(m(1, 2, 5), m(3, 2, 3)),
    "conv2d": lambda m: F.conv2d(m(1, 2, 5, 5), m(3, 2, 3, 3)),
    "conv2d.padding": lambda m: F.conv2d(m(1, 2, 5, 5), m(3, 2, 3, 3), padding="same"),
    "conv3d": lambda m: F.conv3d(m(1, 2, 4, 4, 4), m(3, 2, 3, 3, 3)),
    "conv_transpose2d.input": lambda m: F.conv_transpose2d(m(1, 2, 4, 4), m(2, 3, 3, 3)),
    "prelu": lambda m: F.prelu(m(2, 3), m(3)),
    "scaled_dot_product_attention": lambda m: F.scaled_dot_product_attention(
        m(1, 2, 4, 8), m(1, 2, 4, 8), m(1, 2, 4, 8)
    ),
    "softmax.int": lambda m: torch.softmax(m(2, 3), -1),
    "log_softmax.int": lambda m: F.log_softmax(m(2, 3), dim=-1),
    "layer_norm": lambda m: F.layer_norm(m(2, 3), (3,), m(3), m(3)),
    "group_norm": lambda m: F.group_norm(m(2, 4, 3), 2, m(4), m(4)),
    "cross_entropy_loss": lambda m: F.cross_entropy(m(2, 3), _labels(m, 2)),
    "nll_loss": lambda m: F.nll_loss(m(2, 3), _labels(m, 2)),
    "mse_loss": lambda m: F.mse_loss(m(2, 3), m(2, 3)),
    "l1_loss": lambda m: F.l1_loss(m(2, 3), m(2, 3)),
    "smooth_l1_loss": lambda m: F.smooth_l1_loss(m(2, 3), m(2, 3)),
    "kl_div": lambda m: F.kl_div(m(2, 3), m(2, 3), reduction="sum"),
    "binary_cross_entropy": lambda m: F.binary_cross_entropy(m(2, 3) * 0.5, m(2, 3) * 0.5),
    "binary_cross_entropy_with_logits": lambda m: F.binary_cross_entropy_with_logits(
        m(2, 3), m(2, 3)
    ),
    "exp": lambda m: torch.exp(m(2, 3)),
    "expm1": lambda m: torch.expm1(m(2, 3)),
    "log": lambda m: torch.log(m(2, 3)),
    "log1p": lambda m: torch.log1p(m(2, 3)),
    "pow.Tensor_Scalar": lambda m: m(2, 3) ** 2.5,
    "pow.Scalar": lambda m: 2.0 ** m(2, 3),
    "reciprocal": lambda m: torch.reciprocal(m(2, 3)),
    "rsqrt": lambda m: torch.rsqrt(m(2, 3)),
    "softplus": lambda m: F.softplus(m(2, 3)),
    "cosine_similarity": lambda m: F.cosine_similarity(m(2, 3), m(2, 3)),
    "sum": lambda m: m(2, 3).sum(),
    "sum.dim_IntList": lambda m: m(2, 3).sum(1),
    "prod": lambda m: m(2, 3).prod(),
    "cumsum": lambda m: m(2, 3).cumsum(1),
    "cumprod": lambda m: m(2, 3).cumprod(1),
    "logsumexp": lambda m: m(2, 3).logsumexp(1),
    "linalg_vector_norm": lambda m: torch.linalg.vector_norm(m(2, 3)),
    "cdist": lambda m: torch.cdist(m(2, 3), m(4, 3)),
    "upsample_bilinear2d": lambda m: F.interpolate(m(1, 1, 4, 4), scale_factor=2, mode="bilinear"),
    "upsample_nearest2d": lambda m: F.interpolate(m(1, 1, 4, 4), scale_factor=2),
    "avg_pool3d": lambda m: F.avg_pool3d(m(1, 1, 4, 4, 4), 2),
    "fft_fft": lambda m: torch.fft.fft(m(4)).real,
    "mean": lambda m: m(2, 3).mean(),
    "mean.dim": lambda m: m(2, 3).mean(1),
    "batch_norm": _norm,
    "add.Tensor": lambda m: m(2, 3) + m(2, 3),
    "sub.Tensor": lambda m: m(2, 3) - m(2, 3),
    "mul.Tensor": lambda m: m(2, 3) * m(2, 3),
    "div.Tensor": lambda m: m(2, 3) / m(2, 3),
    "maximum": lambda m: torch.maximum(m(2, 3), m(2, 3)),
    "clamp": lambda m: m(2, 3).clamp(0, 1),
    "sqrt": lambda m: m(2, 3).sqrt(),
    "abs": lambda m: m(2, 3).abs(),
    "relu": lambda m: F.relu(m(2, 3)),
    "gelu": lambda m: F.gelu(m(2, 3)),
    "silu": lambda m: F.silu(m(2, 3)),
    "sigmoid": lambda m: m(2, 3).sigmoid(),
    "tanh": lambda m: m(2, 3).tanh(),
    "leaky_relu": lambda m: F.leaky_relu(m(2, 3)),
    "amax": lambda m: m(2, 3).amax(1),
    "max_pool2d": lambda m: F.max_pool2d(m(1, 1, 4, 4), 2),
    "max_pool3d": lambda m: F.max_pool3d(m(1, 1, 4, 4, 4), 2),
    "avg_pool2d": lambda m: F.avg_pool2d(m(1, 1, 4, 4), 2),
    "adaptive_avg_pool2d": lambda m: F.adaptive_avg_pool2d(m(1, 1, 4, 4), 1),
    "cat": lambda m: torch.cat([m(2, 3), m(2, 3)]),
    "stack": lambda m: torch.stack([m(2, 3), m(2, 3)]),
    "where.self": lambda m: torch.where(m(2, 3) > 1, m(2, 3), m(2, 3)),
    "index_select": lambda m: torch.index_select(m(3, 2), 0, _labels(m, 2)),
    "embedding": lambda m: F.embedding(_labels(m, 2), m(3, 2)),
    "constant_pad_nd": lambda m: F.pad(m(2, 3), (1, 1)),
    "reflection_pad2d": lambda m: F.pad(m(1, 1, 4, 4), (1, 1, 1, 1), mode="reflect"),
    "dropout": lambda m: F.dropout(m(2, 3), 0.5, True),
}


def maker(device: str, dtype: torch.dtype, *, requires_grad: bool = False) -> Make:
    """A `Make` for a device and dtype."""

    def make(*shape: int) -> Tensor:
        values = torch.rand(shape, device=device).add(0.1).to(dtype)
        return values.requires_grad_(requires_grad)

    return make
