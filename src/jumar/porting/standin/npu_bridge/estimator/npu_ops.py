"""Operators that training scripts call: dropout, LARS, opening and closing a device."""

import numbers

import tensorflow.compat.v1 as tf1
from tensorflow.python.eager import context

from npu_bridge.helper import helper
from npu_bridge_standin.record import record
from npu_bridge_standin.signatures import add_device_only

gen_npu_ops = helper.get_gen_ops()


def _only_in_graphs(name):
    if context.executing_eagerly():
        raise RuntimeError("npu_bridge stand-in: {} does not work in eager mode".format(name))


def NPUInit(name=None):
    """The operation that opens the device."""
    _only_in_graphs("NPUInit")
    return gen_npu_ops.npu_init(name=name)


def NPUShutdown(name=None):
    """The operation that closes the device."""
    _only_in_graphs("NPUShutdown")
    return gen_npu_ops.npu_shutdown(name=name)


def initialize_system(name=None):
    """Like `NPUInit`."""
    return NPUInit(name)


def shutdown_system(name=None):
    """Like `NPUShutdown`."""
    return NPUShutdown(name)


def dropout(x, keep_prob, noise_shape=None, seed=None, name=None):
    """Set some values to zero and divide the others by `keep_prob`.

    The masks come from TensorFlow's generator: they equal those of `tf.nn.dropout` with the same
    seeds, not those of a device.
    """
    _only_in_graphs("dropout")
    x = tf1.convert_to_tensor(x, name="x")
    if not x.dtype.is_floating:
        raise ValueError("dropout requires a floating-point tensor, x is {}".format(x.dtype.name))
    constant = isinstance(keep_prob, numbers.Real)
    if constant and not 0 < keep_prob <= 1:
        raise ValueError("keep_prob must be in (0, 1], got {:g}".format(keep_prob))
    recorded = float(keep_prob) if constant else getattr(keep_prob, "name", str(keep_prob))
    record("dropout", tensor=x.name, keep_prob=recorded)
    if isinstance(keep_prob, float) and keep_prob == 1.0:
        return x
    rate = 1.0 - keep_prob if constant else 1 - tf1.cast(keep_prob, x.dtype)
    with tf1.control_dependencies([] if noise_shape is None else [_same_shape(x, noise_shape)]):
        return tf1.nn.dropout(x, rate=rate, noise_shape=noise_shape, seed=seed, name=name)


def _same_shape(x, noise_shape):
    """Check that a mask has the shape of its tensor; immediately if both shapes are known."""
    if isinstance(noise_shape, (list, tuple)):
        sizes = x.shape.as_list()
        noise_shape = [
            sizes[axis] if size is None else size for axis, size in enumerate(noise_shape)
        ]
    text = "noise_shape is not the shape of x: the operator's kernels support no smaller mask"
    return tf1.assert_equal(tf1.cast(noise_shape, tf1.int32), tf1.shape(x), message=text)


def LARS(inputs_w, inputs_g, weight_decay, hyperpara=0.001, epsilon=0.00001, name=None):
    """Layer-wise adaptive scaling of a list of gradients."""
    _only_in_graphs("LARS")
    return gen_npu_ops.lars(inputs_w, inputs_g, weight_decay, hyperpara, epsilon, name)


def LARSV2(
    input_weight,
    input_grad,
    weight_decay,
    learning_rate,
    hyperpara=0.001,
    epsilon=0.00001,
    use_clip=False,
    name=None,
):
    """Layer-wise adaptive scaling of one gradient."""
    _only_in_graphs("LARSV2")
    return gen_npu_ops.lars_v2(
        input_weight, input_grad, weight_decay, learning_rate, hyperpara, epsilon, use_clip, name
    )


def outfeed_enqueue_op(channel_name, inputs, name=None):
    """Put tensors into the channel; blocks if it is full."""
    values = [tf1.convert_to_tensor(tensor) for tensor in inputs]
    queue = _channel(channel_name, [value.dtype for value in values])
    return queue.enqueue(values, name=name)


def outfeed_dequeue_op(channel_name, output_types, output_shapes, name=None):
    """Take tensors out of the channel."""
    tensors = _channel(channel_name, list(output_types)).dequeue(name=name)
    tensors = tensors if isinstance(tensors, (list, tuple)) else [tensors]
    for tensor, shape in zip(tensors, output_shapes):
        tensor.set_shape(shape)
    return list(tensors)


def _channel(name, types):
    return tf1.FIFOQueue(1 << 16, types, shared_name="npu_outfeed_{}".format(name))


def scatter_elements(data, indices, updates, axis=0, name=None):
    """A copy of `data` with values replaced along one axis."""
    return gen_npu_ops.scatter_elements(
        tf1.convert_to_tensor(data),
        tf1.convert_to_tensor(indices),
        tf1.convert_to_tensor(updates),
        axis,
        name,
    )


add_device_only(globals())
