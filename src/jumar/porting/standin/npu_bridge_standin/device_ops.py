"""The adapter's compiled operators that are meaningful on a CPU, built from TensorFlow's operators.

`helper.get_gen_ops()` returns this module, whereas the real one returns the operators of a library.
Device-only operators raise `NotImplementedError` when called, not when imported.
"""

import math

import tensorflow.compat.v1 as tf1
from tensorflow.python.ops import gen_math_ops, math_ops

from npu_bridge_standin import ranks
from npu_bridge_standin.ranks import WORLD_GROUP
from npu_bridge_standin.record import record
from npu_bridge_standin.signatures import add_device_only

REDUCTIONS = ("sum", "prod", "max", "min")
REDUCED_TYPES = ("int8", "int16", "int32", "int64", "float16", "float32", "bfloat16")
FLOAT_STATUS_WORDS = 8


def gelu(x, name=None):
    """The Gaussian error linear unit, as its tanh approximation."""
    with tf1.name_scope(name, "Gelu", [x]):
        x = tf1.convert_to_tensor(x)
        # In the order that scripts use, so that it rounds like theirs.
        cubic = x + 0.044715 * tf1.pow(x, 3)
        return 0.5 * x * (1.0 + tf1.tanh(math.sqrt(2.0 / math.pi) * cubic))


def fast_gelu(x, name=None):
    """The Gaussian error linear unit, as its sigmoid approximation."""
    with tf1.name_scope(name, "FastGelu", [x]):
        x = tf1.convert_to_tensor(x)
        return x * tf1.sigmoid(1.702 * x)


def fast_gelu_v2(x, name=None):
    """A cheaper `gelu` on the device; here, the tanh approximation."""
    return gelu(x, name)


def gelu_grad(dy, x, y, name=None):
    """The gradient of `gelu`."""
    del y
    return tf1.gradients(gelu(x), x, grad_ys=dy, name=name or "GeluGrad")[0]


def fast_gelu_grad(dy, x, name=None):
    """The gradient of `fast_gelu`."""
    return tf1.gradients(fast_gelu(x), x, grad_ys=dy, name=name or "FastGeluGrad")[0]


def p_relu(x, weight, name=None):
    """Parametric ReLU."""
    with tf1.name_scope(name, "PRelu", [x, weight]):
        return tf1.maximum(x, 0) + weight * tf1.minimum(x, 0)


def centralization(x, axes, name=None):
    """The tensor minus its mean over some axes."""
    return tf1.subtract(x, tf1.reduce_mean(x, axes, keepdims=True), name=name)


def fused_layer_norm(
    x, gamma, beta, begin_norm_axis=0, begin_params_axis=0, epsilon=0.0000001, name=None
):
    """Layer normalisation; returns the result, mean and variance."""
    with tf1.name_scope(name, "FusedLayerNorm", [x, gamma, beta]):
        x = tf1.convert_to_tensor(x)
        rank = x.shape.ndims
        axes = list(range(begin_norm_axis % rank, rank))
        expected = x.shape[begin_params_axis % rank :]
        for parameter in (gamma, beta):
            if not expected.is_compatible_with(tf1.convert_to_tensor(parameter).shape):
                raise ValueError("gamma and beta must have shape {}".format(expected))
        mean, variance = tf1.nn.moments(tf1.cast(x, tf1.float32), axes, keep_dims=True)
        normed = (tf1.cast(x, tf1.float32) - mean) * tf1.rsqrt(variance + epsilon)
        result = normed * tf1.cast(gamma, tf1.float32) + tf1.cast(beta, tf1.float32)
        return tf1.cast(result, x.dtype), mean, variance


def non_zero(x, transpose=False, output_type=tf1.int64, name=None):
    """Indices of the nonzero values, one per row, or one per column with `transpose`."""
    indices = tf1.cast(tf1.where(tf1.not_equal(x, 0)), output_type)
    return tf1.identity(tf1.transpose(indices) if transpose else indices, name=name)


def lars(inputs_w, inputs_g, weight_decay, hyperpara=0.001, epsilon=0.00001, name=None):
    """Gradients scaled layer by layer by the ratio of weight norm to gradient norm."""
    with tf1.name_scope(name, "LARS"):
        return [
            lars_v2(weight, grad, weight_decay, 1.0, hyperpara, epsilon)
            for weight, grad in zip(inputs_w, inputs_g)
        ]


def lars_v2(
    input_weight,
    input_grad,
    weight_decay,
    learning_rate,
    hyperpara=0.001,
    epsilon=0.00001,
    use_clip=False,
    name=None,
):
    """One gradient with weight decay, scaled by the ratio of the weight norm to its norm."""
    with tf1.name_scope(name, "LarsV2"):
        weight_norm, grad_norm = tf1.norm(input_weight), tf1.norm(input_grad)
        ratio = hyperpara * weight_norm / (grad_norm + weight_decay * weight_norm + epsilon)
        if use_clip:
            ratio = tf1.clip_by_value(ratio / learning_rate, 0.0, 1.0)
        return ratio * (input_grad + weight_decay * input_weight)


def scatter_elements(data, indices, updates, axis=0, name=None):
    """A copy of `data` with values replaced along one axis."""
    grid = tf1.meshgrid(
        *[tf1.range(size) for size in tf1.unstack(tf1.shape(indices))], indexing="ij"
    )
    grid[axis] = tf1.cast(indices, tf1.int32)
    return tf1.tensor_scatter_nd_update(data, tf1.stack(grid, axis=-1), updates, name=name)


def npu_init(name=None):
    """Do nothing, since there is no device to open."""
    return tf1.no_op(name=name or "NPUInit")


def npu_shutdown(name=None):
    """Do nothing, since there is no device to close."""
    return tf1.no_op(name=name or "NPUShutdown")


def npu_alloc_float_status(name=None):
    """A status register without overflow."""
    return tf1.zeros([FLOAT_STATUS_WORDS], tf1.float32, name=name or "NpuAllocFloatStatus")


def npu_get_float_status_v2(name=None):
    """A status register without overflow, since a CPU has none."""
    return tf1.zeros([FLOAT_STATUS_WORDS], tf1.int32, name=name or "NpuGetFloatStatusV2")


def npu_clear_float_status_v2(name=None):
    """Do nothing, since a CPU has no status register."""
    return tf1.no_op(name=name or "NpuClearFloatStatusV2")


def all_finite(grads):
    """Whether every gradient is finite, which replaces the device's status register."""
    values = [grad.values if isinstance(grad, tf1.IndexedSlices) else grad for grad in grads]
    finite = [math_ops.reduce_all(gen_math_ops.is_finite(value)) for value in values]
    return math_ops.reduce_all(finite) if finite else tf1.constant(True)


def hcom_all_reduce(input, reduction, group=WORLD_GROUP, fusion=1, fusion_id=-1, name=None):
    """The reduction over ranks that all have the same values."""
    value, size = _reduced("allreduce", input, reduction, group, fusion, fusion_id, (0, 1, 2))
    return _reduce_equal_ranks(value, reduction, size, name or "HcomAllReduce")


def hcom_reduce(input, reduction, root_rank, group=WORLD_GROUP, fusion=0, fusion_id=-1, name=None):
    """Like `hcom_all_reduce`."""
    value, size = _reduced("reduce", input, reduction, group, fusion, fusion_id, (0, 2))
    _check_rank("root_rank", root_rank, size)
    return _reduce_equal_ranks(value, reduction, size, name or "HcomReduce")


def hcom_reduce_scatter(
    input, reduction, rank_size, group=WORLD_GROUP, fusion=0, fusion_id=-1, name=None
):
    """The part of the reduction for this rank."""
    value, size = _reduced("reduce_scatter", input, reduction, group, fusion, fusion_id, (0, 2))
    _check_rank_size(rank_size, size)
    if value.shape[0].value is not None and value.shape[0].value % size:
        raise ValueError("{} rows cannot be split over {} ranks".format(value.shape[0].value, size))
    reduced = _reduce_equal_ranks(value, reduction, size, name or "HcomReduceScatter")
    return tf1.split(reduced, size)[ranks.rank_in(group)] if size > 1 else reduced


def hcom_all_gather(input, rank_size, group=WORLD_GROUP, fusion=0, fusion_id=-1, name=None):
    """The values of all ranks, concatenated."""
    value = tf1.convert_to_tensor(input)
    _check_fusion(fusion, fusion_id, (0, 2))
    _check_rank_size(rank_size, len(ranks.group_ranks(group)))
    record("hccl", call="allgather", group=group, tensor=value.name, rank_size=rank_size)
    return tf1.concat([value] * rank_size, axis=0, name=name or "HcomAllGather")


def hcom_broadcast(input, root_rank, group=WORLD_GROUP, fusion=2, fusion_id=0, name=None):
    """The tensors of the root, which equal those of this rank."""
    if not isinstance(input, (list, tuple)):
        raise TypeError("broadcast requires a list of tensors, got {!r}".format(input))
    _check_fusion(fusion, fusion_id, (0, 2))
    _check_rank("root_rank", root_rank, len(ranks.group_ranks(group)))
    values = [tf1.convert_to_tensor(tensor) for tensor in input]
    names = [value.name for value in values]
    record("hccl", call="broadcast", group=group, tensors=names, root_rank=root_rank)
    return [tf1.identity(value, name=name or "HcomBroadcast") for value in values]


def _reduced(call, tensor, reduction, group, fusion, fusion_id, fusions):
    value = tf1.convert_to_tensor(tensor)
    if reduction not in REDUCTIONS:
        raise ValueError(
            "reduction must be one of {1}, got {0!r}".format(reduction, ", ".join(REDUCTIONS))
        )
    if value.dtype.base_dtype.name not in REDUCED_TYPES:
        raise TypeError(
            "{} does not support {}; it supports {}".format(
                call, value.dtype.name, ", ".join(REDUCED_TYPES)
            )
        )
    _check_fusion(fusion, fusion_id, fusions)
    size = len(ranks.group_ranks(group))
    record("hccl", call=call, group=group, tensor=value.name, reduction=reduction, ranks=size)
    return value, size


def _reduce_equal_ranks(value, reduction, size, name):
    if size > 1 and reduction == "sum":
        return tf1.multiply(value, tf1.cast(size, value.dtype), name=name)
    if size > 1 and reduction == "prod":
        return tf1.pow(value, tf1.cast(size, value.dtype), name=name)
    return tf1.identity(value, name=name)


def _check_fusion(fusion, fusion_id, allowed):
    if fusion not in allowed:
        raise ValueError("fusion is {!r}; allowed values are {}".format(fusion, allowed))
    if not isinstance(fusion_id, int) or fusion_id < -1:
        raise ValueError("fusion_id must be an int of -1 or more, got {!r}".format(fusion_id))


def _check_rank(name, rank, size):
    if not isinstance(rank, int) or not 0 <= rank < size:
        raise ValueError("{} is {!r}, but the group has {} ranks".format(name, rank, size))


def _check_rank_size(rank_size, size):
    if rank_size != size:
        raise ValueError("rank_size is {!r}, but the group has {} ranks".format(rank_size, size))


add_device_only(globals())
