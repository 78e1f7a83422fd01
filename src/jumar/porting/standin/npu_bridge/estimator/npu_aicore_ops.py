"""Operators of the AI core."""

from tensorflow.python.framework import dtypes

from npu_bridge.estimator import npu_ops
from npu_bridge.helper import helper
from npu_bridge_standin.signatures import add_device_only

npu_aicore_ops = helper.get_gen_ops()


def fast_gelu_v2(x, name=None):
    """A cheaper approximation of the Gaussian error linear unit."""
    return npu_aicore_ops.fast_gelu_v2(x, name)


def centralization(x, axes, name=None):
    """The tensor minus its mean over some axes."""
    return npu_aicore_ops.centralization(x, axes, name=name)


def prelu(x, weight):
    """Parametric ReLU."""
    return npu_aicore_ops.p_relu(x, weight)


def dropout_v3(x, keep_prob, noise_shape=None, seed=None, name=None):
    """Like `npu_ops.dropout`."""
    return npu_ops.dropout(x, keep_prob, noise_shape, seed, name)


def dropout_v4(x, keep_prob, noise_shape=None, seed=None, output_dtype=dtypes.bool, name=None):
    """Like `npu_ops.dropout`; `output_dtype` is the type of the mask on the device."""
    del output_dtype
    return npu_ops.dropout(x, keep_prob, noise_shape, seed, name)


def layer_norm(
    x, gamma, beta, begin_norm_axis=0, begin_params_axis=0, epsilon=0.0000001, name=None
):
    """Layer normalisation; returns a list of the result, mean and variance."""
    return list(
        npu_aicore_ops.fused_layer_norm(
            x, gamma, beta, begin_norm_axis, begin_params_axis, epsilon, name
        )
    )


def nonzero(x, transpose=False, output_type=dtypes.int64, name=None):
    """The indices of the nonzero values."""
    return npu_aicore_ops.non_zero(x, transpose, output_type, name=name)


add_device_only(globals())
