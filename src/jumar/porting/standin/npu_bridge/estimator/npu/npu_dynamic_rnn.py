"""Recurrent layers that a device runs as one operator, computed step by step.

Inputs are time-major: time, batch, features. Results have the names of the operator's outputs.
"""

import math

import tensorflow.compat.v1 as tf1
from tensorflow.python.layers import base as base_layer

from npu_bridge_standin.signatures import keep, with_signature

DYNAMIC_RNN_UNIDIRECTION = "UNIDIRECTIONAL"
DYNAMIC_RNN_BIDIRECTION = "BIDIRECTIONAL"
DYNAMIC_RNN_REDIRECTIONAL = "REDIRECTIONAL"


class _DynamicBasic(base_layer.Layer):
    """Base class of the layers."""

    def __init__(self, **options):
        super().__init__()
        keep(self, options)
        if self._direction not in (DYNAMIC_RNN_UNIDIRECTION, DYNAMIC_RNN_BIDIRECTION):
            raise ValueError("unknown direction {!r}".format(self._direction))
        shape = (self._cell_depth, self._num_proj, self._time_major, self._activation)
        if shape != (1, 0, True, "tanh"):
            raise NotImplementedError(
                "npu_bridge stand-in: recurrent layers support only one tanh layer without "
                "projection, and time-major inputs"
            )

    def build(self, input_shape):
        """Create the variable for the sequence lengths, which checkpoints contain."""
        steps, batch = input_shape[0].value or 1, input_shape[1].value or 16
        self._seq_length = self.add_variable(
            "dynamicbase/seq_length",
            shape=[batch],
            dtype=tf1.int32,
            initializer=tf1.constant_initializer(steps, dtype=tf1.int32),
            trainable=False,
        )
        super().build(input_shape)

    def _features(self, input_shape):
        if input_shape[2].value is None:
            raise ValueError(
                "the number of features must be known, but the shape is {}".format(input_shape)
            )
        return input_shape[2].value


class DynamicRNN(_DynamicBasic):
    """LSTM; returns y, h, c, the gates i, j, f, o, and tanh(c), each for every step."""

    @with_signature(__name__, "DynamicRNN")
    def __init__(self, **options):
        super().__init__(**options)
        if self._cell_type != "LSTM" or self._use_peephole:
            raise NotImplementedError(
                "npu_bridge stand-in: only LSTM without peepholes is supported"
            )

    def build(self, input_shape):
        """Create weight and bias, one pair for each direction."""
        rows = self._features(input_shape) + self._hidden_size
        directions = [2] if self._direction == DYNAMIC_RNN_BIDIRECTION else []
        self._rnn_w = self.add_variable(
            "dynamicrnn/w",
            shape=[*directions, rows, 4 * self._hidden_size],
            dtype=self._dtype,
            initializer=tf1.glorot_uniform_initializer(seed=10, dtype=self._dtype),
        )
        self._rnn_b = self.add_variable(
            "dynamicrnn/b",
            shape=[*directions, 4 * self._hidden_size],
            dtype=self._dtype,
            initializer=tf1.zeros_initializer(dtype=self._dtype),
        )
        super().build(input_shape)

    def call(self, x, seq_length=None, init_h=None, init_c=None, weight=None, bias=None):
        """Run over time; the first axis of initial states is the direction."""
        bidirectional = self._direction == DYNAMIC_RNN_BIDIRECTION
        shape = [2 if bidirectional else 1, tf1.shape(x)[1], self._hidden_size]
        init_h = tf1.zeros(shape, self._dtype) if init_h is None else init_h
        init_c = tf1.zeros(shape, self._dtype) if init_c is None else init_c
        weight = self._rnn_w if weight is None else weight
        bias = self._rnn_b if bias is None else bias
        if not bidirectional:
            return self._one_way(x, seq_length, init_h[0], init_c[0], weight, bias)
        forward = self._one_way(x, seq_length, init_h[0], init_c[0], weight[0], bias[0])
        backward = self._one_way(
            _reversed(x, seq_length), seq_length, init_h[1], init_c[1], weight[1], bias[1]
        )
        backward = [_reversed(output, seq_length) for output in backward]
        return [tf1.stack(pair) for pair in zip(forward, backward)]

    def _one_way(self, x, seq_length, init_h, init_c, weight, bias):
        def step(state, current):
            _, h, c = state[:3]
            inputs, alive = current
            gates = tf1.matmul(tf1.concat([inputs, h], axis=1), weight) + bias
            i, j, f, o = tf1.split(gates, 4, axis=1)
            i, j, o = tf1.sigmoid(i), tf1.tanh(j), tf1.sigmoid(o)
            f = tf1.sigmoid(f + self._forget_bias)
            new_c = f * c + i * j
            if self._cell_clip > 0:
                new_c = tf1.clip_by_value(new_c, -self._cell_clip, self._cell_clip)
            tanh_c = tf1.tanh(new_c)
            new_h = o * tanh_c
            kept_h = alive * new_h + (1 - alive) * h
            kept_c = alive * new_c + (1 - alive) * c
            return (alive * new_h, kept_h, kept_c, i, j, f, o, tanh_c)

        zeros = tf1.zeros_like(init_h)
        start = (zeros, init_h, init_c, zeros, zeros, zeros, zeros, zeros)
        return list(tf1.scan(step, (x, _alive(x, seq_length)), initializer=start))


class DynamicGRUV2(_DynamicBasic):
    """GRU; returns y, h, and the update, reset, new and hidden gates, each for every step."""

    _variables_prefix = "dynamicgruv2"

    @with_signature(__name__, "DynamicGRUV2")
    def __init__(self, **options):
        super().__init__(**options)
        gates = sorted(self._gate_order)
        if self._direction != DYNAMIC_RNN_UNIDIRECTION or gates != sorted("zrh"):
            raise NotImplementedError(
                "npu_bridge stand-in: only GRU in one direction with gates z, r, h is supported"
            )

    def build(self, input_shape):
        """Create the weights."""
        limit = 1.0 / math.sqrt(self._hidden_size)

        def variable(name, shape):
            return self.add_variable(
                "{}/{}".format(self._variables_prefix, name),
                shape=shape,
                dtype=self._dtype,
                initializer=tf1.random_uniform_initializer(-limit, limit),
            )

        width = 3 * self._hidden_size
        self._weight_input = variable("weight_input", [self._features(input_shape), width])
        self._weight_hidden = variable("weight_hidden", [self._hidden_size, width])
        self._bias_input = variable("bias_input", [width])
        self._bias_hidden = variable("bias_hidden", [width])
        super().build(input_shape)

    def call(self, x, seq_length=None, init_h=None):
        """Run over time."""
        results = self._run(x, tf1.zeros_like(x[:, :, :1]), seq_length, init_h)
        return [results[index] for index in (0, 1, 2, 4, 5, 6)]

    def _run(self, x, attention, seq_length, init_h):
        if init_h is None:
            init_h = tf1.zeros([tf1.shape(x)[1], self._hidden_size], self._dtype)
        elif init_h.shape.ndims == 3:
            init_h = init_h[0]

        def parts(tensor):
            named = dict(zip(self._gate_order, tf1.split(tensor, 3, axis=-1)))
            return named["z"], named["r"], named["h"]

        def step(state, current):
            h = state[1]
            inputs, alive, attention_weight = current
            projected = tf1.matmul(inputs, self._weight_input) + self._bias_input
            input_z, input_r, input_n = parts(projected)
            hidden_z, hidden_r, hidden_n = parts(
                tf1.matmul(h, self._weight_hidden) + self._bias_hidden
            )
            reset = tf1.sigmoid(input_r + hidden_r)
            if self._reset_after:
                new = tf1.tanh(input_n + reset * hidden_n)
            else:
                _, _, weight = parts(self._weight_hidden + 0)
                _, _, bias = parts(self._bias_hidden + 0)
                new = tf1.tanh(input_n + tf1.matmul(reset * h, weight) + bias)
            update = tf1.sigmoid(input_z + hidden_z)
            attended = (1 - attention_weight) * update
            new_h = attended * h + (1 - attended) * new
            kept = alive * new_h + (1 - alive) * h
            return (alive * new_h, kept, update, attended, reset, new, hidden_n)

        zeros = tf1.zeros_like(init_h)
        start = (zeros, init_h, zeros, zeros, zeros, zeros, zeros)
        elements = (x, _alive(x, seq_length), attention)
        return list(tf1.scan(step, elements, initializer=start))


class DynamicAUGRU(DynamicGRUV2):
    """GRU whose update gate is scaled down by attention weights per step and sample."""

    _variables_prefix = "dynamicaugru"

    def call(self, x, weight_att, seq_length=None, init_h=None):
        """Run over time."""
        return self._run(x, tf1.expand_dims(weight_att, -1), seq_length, init_h)


def _alive(x, seq_length):
    """Return 1 for the steps of each sequence, 0 after its end."""
    steps = tf1.shape(x)[0]
    if seq_length is None:
        return tf1.ones_like(x[:, :, :1])
    mask = tf1.sequence_mask(seq_length, steps, dtype=x.dtype)
    return tf1.expand_dims(tf1.transpose(mask), -1)


def _reversed(x, seq_length):
    if seq_length is None:
        return tf1.reverse(x, axis=[0])
    return tf1.reverse_sequence(x, seq_length, seq_axis=0, batch_axis=1)
