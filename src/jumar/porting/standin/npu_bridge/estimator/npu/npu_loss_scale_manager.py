"""Loss scales for mixed precision."""

import tensorflow.compat.v1 as tf1

from npu_bridge_standin.record import record

MAX_SCALE = 3.4e38


class FixedLossScaleManager:
    """A constant loss scale."""

    def __init__(self, loss_scale, enable_overflow_check=True):
        if loss_scale < 1:
            raise ValueError("the loss scale must be 1 or more, got {}".format(loss_scale))
        record("loss scale", manager="fixed", loss_scale=float(loss_scale))
        self._loss_scale = tf1.convert_to_tensor(loss_scale, dtype=tf1.float32, name="loss_scale")
        self._enable_overflow_check = enable_overflow_check

    def get_loss_scale(self):
        """Return the loss scale."""
        return self._loss_scale

    def update_loss_scale(self, finite_grads):
        """Do nothing, since the scale is constant."""
        del finite_grads
        return tf1.no_op()

    def get_enable_overflow_check(self):
        """Return whether steps with non-finite gradients are skipped."""
        return self._enable_overflow_check


class ExponentialUpdateLossScaleManager:
    """A loss scale that grows while gradients are finite and falls when they are not."""

    def __init__(
        self,
        init_loss_scale,
        incr_every_n_steps,
        decr_every_n_nan_or_inf=2,
        incr_ratio=2,
        decr_ratio=0.8,
    ):
        record(
            "loss scale",
            manager="exponential",
            init_loss_scale=float(init_loss_scale),
            incr_every_n_steps=incr_every_n_steps,
            decr_every_n_nan_or_inf=decr_every_n_nan_or_inf,
            incr_ratio=incr_ratio,
            decr_ratio=decr_ratio,
        )
        self._incr_every_n_steps = incr_every_n_steps
        self._decr_every_n_nan_or_inf = decr_every_n_nan_or_inf
        self._incr_ratio = incr_ratio
        self._decr_ratio = decr_ratio
        self._loss_scale = _state("loss_scale", float(init_loss_scale), tf1.float32)
        self._num_good_steps = _state("good_steps", 0, tf1.int32)
        self._num_bad_steps = _state("bad_steps", 0, tf1.int32)

    def get_loss_scale(self):
        """Return the loss scale."""
        return self._loss_scale

    def update_loss_scale(self, finite_grads):
        """Return the operation that updates the scale after a step."""
        scale, good, bad = self._loss_scale, self._num_good_steps, self._num_bad_steps
        finite = tf1.convert_to_tensor(finite_grads)
        grows = finite & (good + 1 >= self._incr_every_n_steps)
        falls = tf1.logical_not(finite) & (bad + 1 >= self._decr_every_n_nan_or_inf)
        changes = grows | falls

        may_grow = scale < MAX_SCALE / self._incr_ratio
        larger = tf1.where(may_grow, scale * self._incr_ratio, scale + 0)
        smaller = tf1.maximum(1.0, scale * self._decr_ratio)
        new_scale = tf1.where(grows, larger, tf1.where(falls, smaller, scale + 0))
        # Overflows add up until the scale changes: finite steps in between do not reset the count.
        new_good = tf1.where(finite & ~changes, good + 1, tf1.zeros_like(good))
        new_bad = tf1.where(changes, tf1.zeros_like(bad), bad + tf1.cast(~finite, tf1.int32))
        with tf1.control_dependencies([new_scale, new_good, new_bad]):
            return tf1.group(
                tf1.assign(scale, new_scale), tf1.assign(good, new_good), tf1.assign(bad, new_bad)
            )


def _state(name, value, dtype):
    return tf1.Variable(value, name=name, dtype=dtype, trainable=False)
