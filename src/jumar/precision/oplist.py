"""The op lists: a white, a gray and a black list, which are the same on every device.

The defaults are those of autocast in torch on CUDA and in torch_npu: matrix products and
convolutions are white; losses, softmax, norms, exponentials and sums are black. Torch's list for
the CPU differs (softmax and layer norm stay low), so that a run on a CPU would not predict a run on
an NPU.
"""

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Literal

import torch

from jumar.devices.registry import device_kind
from jumar.precision.modes import Form
from jumar.precision.optypes import op_groups, types_of
from jumar.precision.overloads import can_cast, find_overload

ListName = Literal["white", "gray", "black"]


class Treatment(Enum):
    """The treatment of an op inside the autocast region."""

    LOW = "inputs to the low precision"
    FP32 = "inputs to fp32"
    FOLLOW = "runs in the dtype of its inputs"
    WIDEST = "inputs to the widest of their dtypes"
    LOW_THEN_FP32 = "inputs to the low precision, outputs to fp32"
    LOW_BY_FP32 = "fp32 with inputs and outputs rounded to the low precision, outputs stored in it"
    LOW_BY_FP32_THEN_FP32 = "fp32 with inputs and outputs rounded to the low precision"
    ROUND = "fp32 with inputs and outputs rounded to fp16"
    ROUND_IN = "fp32 with inputs and gradients rounded to fp16"


_BY_FP32 = {
    Treatment.LOW: Treatment.LOW_BY_FP32,
    Treatment.LOW_THEN_FP32: Treatment.LOW_BY_FP32_THEN_FP32,
}


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CUDA_LOW = _names("""
    _convolution.deprecated _convolution conv1d conv2d conv3d conv_tbc conv_transpose1d
    conv_transpose2d.input conv_transpose3d.input convolution cudnn_convolution
    cudnn_convolution_transpose prelu addmm addmv addr matmul einsum mm mv linalg_vecdot linear
    addbmm baddbmm bmm chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell
    lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell _scaled_dot_product_flash_attention
    scaled_dot_product_attention
""")
_CUDA_FP32 = _names("""
    acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan
    pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar softplus layer_norm native_layer_norm rms_norm
    group_norm frobenius_norm.dim nuclear_norm nuclear_norm.dim cosine_similarity
    poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss
    smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss
    triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm
    logsumexp upsample_nearest1d _upsample_nearest_exact1d upsample_nearest2d
    _upsample_nearest_exact2d upsample_nearest3d _upsample_nearest_exact3d upsample_linear1d
    upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d upsample_bicubic2d
    _upsample_bicubic2d_aa prod prod.dim_int softmax.int log_softmax.int cumprod cumsum
    linalg_vector_norm linalg_matrix_norm linalg_matrix_norm.str_ord sum sum.dim_IntList
    norm.Scalar norm.ScalarOpt_dim
""")
_CUDA_WIDEST = _names("""
    addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add
""")
_CPU_LOW = _names("""
    _addmm_activation _convolution.deprecated _native_multi_head_attention addbmm addmm baddbmm bmm
    conv1d conv1d.padding conv2d conv2d.padding conv3d conv3d.padding conv_tbc conv_transpose1d
    conv_transpose2d.input conv_transpose3d.input linalg_vecdot linear matmul mkldnn_rnn_layer mm
    prelu scaled_dot_product_attention
""")
_CPU_WIDEST = _names("cat stack index_copy")
_CPU_FP32 = _names("""
    _grid_sampler_2d_cpu_fallback adaptive_avg_pool3d adaptive_max_pool3d binary_cross_entropy
    binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy_loss
    fake_quantize_per_tensor_affine fractional_max_pool2d fractional_max_pool3d grid_sampler
    grid_sampler_2d grid_sampler_3d hinge_embedding_loss huber_loss kl_div l1_loss
    margin_ranking_loss max_pool3d max_unpool2d max_unpool3d mse_loss nll_loss nll_loss2d
    poisson_nll_loss prod prod.dim_int reflection_pad1d reflection_pad2d replication_pad1d
    replication_pad2d replication_pad3d smooth_l1_loss soft_margin_loss trace triplet_margin_loss
""")
NO_LOW_KERNEL = _names("""
    avg_pool3d cdist _cdist_forward pdist ctc_loss.IntList ctc_loss.Tensor _ctc_loss
    multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward nuclear_norm
    nuclear_norm.dim linalg_matrix_norm linalg_matrix_norm.str_ord _upsample_bilinear2d_aa
    _upsample_bicubic2d_aa polar view_as_complex quantile quantile.scalar nanquantile
    nanquantile.scalar stft stft.center fft_fft fft_fft2 fft_fftn fft_hfft fft_ifft fft_ifft2
    fft_ifftn fft_ihfft fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn _lu_with_info
    cholesky cholesky_inverse cholesky_solve geqrf inverse linalg_cholesky linalg_cholesky_ex
    linalg_cond linalg_cond.p_str linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh
    linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq linalg_matrix_rank
    linalg_matrix_rank.atol_rtol_float linalg_matrix_rank.atol_rtol_tensor
    linalg_matrix_rank.tol_tensor linalg_qr linalg_solve linalg_svd linalg_svdvals
    linalg_tensorinv linalg_tensorsolve lu_solve orgqr ormqr pinverse qr slogdet svd
    triangular_solve histc
""")
"""Ops that the CPU, and mostly CUDA, support only in fp32 and above; always run in fp32."""

_RNN = _names("lstm.input gru.input rnn_tanh.input rnn_relu.input")
_WHITE = _CUDA_LOW | _CPU_LOW | _RNN
_BLACK = _CUDA_FP32 | NO_LOW_KERNEL | {"cross_entropy_loss", "binary_cross_entropy"}
_WIDEST = _CUDA_WIDEST | _CPU_WIDEST
_PROMOTE_BY_THEMSELVES = _names("cat stack")
_NATIVE = {
    "cpu": (_CPU_LOW, _CPU_FP32 | NO_LOW_KERNEL, _CPU_WIDEST),
    "cuda": (_CUDA_LOW, _CUDA_FP32, _CUDA_WIDEST),
}
"""Torch's lists. `binary_cross_entropy` is on none, because autocast on CUDA rejects it."""


@cache
def listed_ops() -> tuple[str, ...]:
    """Return the aten overloads on the lists that this torch has, in alphabetical order."""
    names = {op for group in op_groups() for op in group.ops}
    # Gray ops that torch's autocast casts on a CPU must be listed explicitly.
    names |= _WHITE | _BLACK | _WIDEST | _CPU_FP32
    overloads = ((op, find_overload(op)) for op in sorted(names))
    return tuple(op for op, overload in overloads if overload is not None and can_cast(overload))


def default_list(op: str) -> ListName:
    """Return the list of an op without a mixlist."""
    return "white" if op in _WHITE else "black" if op in _BLACK else "gray"


def default_lists() -> dict[str, ListName]:
    """Return the list of every op in `listed_ops`, without a mixlist."""
    return {op: default_list(op) for op in listed_ops()}


def treatments(
    form: Form,
    lists: Mapping[str, ListName],
    *,
    emulated: bool = False,
    multiplies_low: bool = True,
) -> dict[str, Treatment]:
    """Return the treatment of every op in a mode.

    Args:
        form: The ops that the mode runs in low precision; not `origin`, which has no region.
        lists: The list of every op: `default_lists()`, or the result of `load_mixlist`.
        emulated: Round to fp16 in fp32 arithmetic instead of computing in the low precision.
        multiplies_low: Whether the device has matrix instructions for the low precision. Without
            them, its kernels take up to a hundred times as long as in fp32, so products are
            computed in fp32 and rounded, which yields the same results.
    """
    low = Treatment.ROUND if emulated else Treatment.LOW
    cube = {op for group in op_groups() if group.kind == "cube" for op in group.ops}
    cube |= _WHITE - {"prelu"}
    compute = {op for group in op_groups() if group.kind == "compute" for op in group.ops}
    compute |= cube | _BLACK | _WHITE
    result: dict[str, Treatment] = {}
    for op, name in lists.items():
        treatment = _by_list(op, name, low)
        if form == "all" and op in compute and op not in NO_LOW_KERNEL:
            treatment = low
        elif form == "cube" and op in cube:
            treatment = Treatment.ROUND if emulated else Treatment.LOW_THEN_FP32
        elif form == "cube_fp32_out" and op in cube:
            treatment = Treatment.ROUND_IN
        elif form in ("cube", "cube_fp32_out") and name == "white":
            treatment = Treatment.FOLLOW
        result[op] = (
            treatment if multiplies_low or op not in cube else _BY_FP32.get(treatment, treatment)
        )
    return result


def native_treatment(device_type: str, op: str) -> Treatment | None:
    """Return the treatment of an op by torch (or torch_npu) itself; None if it is not known.

    No list must be installed, because the dispatcher is queried.
    """
    kind = device_kind(device_type)
    key = kind.autocast_key
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    if not has_kernel(f"aten::{op}", key):
        # cuDNN's autocast kernel for recurrent networks is called by these ops and needs its
        # weights in one block of memory, which casting them here one by one would split.
        flattens = op in _RNN and has_kernel("aten::_cudnn_rnn", key)
        return Treatment.LOW if flattens else Treatment.FOLLOW
    low, fp32, widest = _NATIVE[kind.native_lists]
    if op in low:
        return Treatment.LOW
    if op in fp32:
        return Treatment.FP32
    return Treatment.WIDEST if op in widest else None


def same_effect(op: str, one: Treatment, other: Treatment | None) -> bool:
    """Whether two treatments of an op result in the same dtypes."""
    promoting = {Treatment.FOLLOW, Treatment.WIDEST}
    return one == other or (op in _PROMOTE_BY_THEMSELVES and {one, other} == promoting)


def _by_list(op: str, name: ListName, low: Treatment) -> Treatment:
    if name == "black" or (name == "white" and op in NO_LOW_KERNEL):
        return Treatment.FP32
    if name == "white":
        return low
    return Treatment.WIDEST if op in _WIDEST else Treatment.FOLLOW


def op_table(form: Form, lists: Mapping[str, ListName]) -> list[dict[str, str]]:
    """Return one row per op: its list, its treatment in the mode, and the equivalent CANN op types.

    Args:
        form: The form of the mode; there are no rows for `origin`, which has no op lists.
        lists: See `treatments`.
    """
    if form == "origin":
        return []
    return [
        {
            "op": op,
            "list": lists[op],
            "default": default_list(op),
            "treatment": treatment.value,
            "CANN op types": ", ".join(types_of(op)),
        }
        for op, treatment in sorted(treatments(form, lists).items())
    ]
