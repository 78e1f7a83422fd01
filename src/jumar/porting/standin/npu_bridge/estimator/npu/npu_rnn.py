"""Recurrent networks with a fixed number of steps."""

import tensorflow.compat.v1 as tf1


def npu_dynamic_rnn(cell, inputs, initial_state=None, dtype=None, sequence_length=None, scope=None):
    """Run `tf.nn.static_rnn` over the first axis; return the stacked outputs and the last state."""
    outputs, state = tf1.nn.static_rnn(
        cell,
        tf1.unstack(inputs, axis=0),
        initial_state=initial_state,
        dtype=dtype,
        sequence_length=sequence_length,
        scope=scope,
    )
    return tf1.stack(outputs, axis=0), state
