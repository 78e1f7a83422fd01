"""The optimizer for mixed precision, which scales the loss and skips overflows."""

import tensorflow.compat.v1 as tf1

from npu_bridge.estimator.npu import npu_plugin
from npu_bridge.estimator.npu.npu_loss_scale_manager import FixedLossScaleManager
from npu_bridge.hccl import hccl_ops
from npu_bridge_standin.device_ops import all_finite
from npu_bridge_standin.record import record


class NPULossScaleOptimizer(tf1.train.Optimizer):
    """Scales the loss of another optimizer and skips steps that overflow.

    A device detects overflows by its status register; here, the gradients are checked.
    """

    def __init__(self, opt, loss_scale_manager, is_distributed=False):
        super().__init__(use_locking=False, name="NPULossScaleOptimizer" + type(opt).__name__)
        record("loss scale", optimizer=type(opt).__name__, is_distributed=is_distributed)
        self._opt = opt
        self._loss_scale_manager = loss_scale_manager
        self._is_distributed = is_distributed

    def __getattr__(self, attr):
        if attr == "_opt":
            raise AttributeError(attr)
        return getattr(self._opt, attr)

    def compute_gradients(
        self,
        loss,
        var_list=None,
        gate_gradients=tf1.train.Optimizer.GATE_OP,
        aggregation_method=None,
        colocate_gradients_with_ops=False,
        grad_loss=None,
    ):
        """Return the gradients of the unscaled loss, computed from the scaled loss."""
        scale = self._loss_scale_manager.get_loss_scale()
        grads_and_vars = self._opt.compute_gradients(
            scaled_loss(loss, scale),
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        return unscaled(grads_and_vars, scale)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """Apply finite gradients; otherwise leave variables and global step as they are."""
        grads_and_vars = list(grads_and_vars)
        if self._checks_overflow():
            finite = finite_everywhere(grads_and_vars, self._is_distributed)
        else:
            finite = tf1.constant(True)
        update = tf1.cond(
            finite,
            lambda: tf1.group(self._opt.apply_gradients(grads_and_vars, global_step, name)),
            tf1.no_op,
        )
        return tf1.group(update, self._loss_scale_manager.update_loss_scale(finite))

    def _checks_overflow(self):
        if npu_plugin.is_inf_nan_enabled():
            # A device in this mode checks for infinities, whatever the manager's setting is.
            return True
        if isinstance(self._loss_scale_manager, FixedLossScaleManager):
            return self._loss_scale_manager.get_enable_overflow_check()
        return True


def scaled_loss(loss, scale):
    """Return the loss, or the loss that a function returns, scaled in its own type."""
    value = loss() if callable(loss) else loss
    return value * tf1.cast(scale, value.dtype.base_dtype)


def unscaled(grads_and_vars, scale):
    """Divide gradients by the scale; sparse gradients become dense, as in TensorFlow."""
    factor = tf1.reciprocal(scale + 0)
    return [
        (None if grad is None else grad * tf1.cast(factor, grad.dtype.base_dtype), variable)
        for grad, variable in grads_and_vars
    ]


def finite_everywhere(grads_and_vars, is_distributed):
    """Return whether the gradients of this rank, or of all ranks, are finite."""
    finite = all_finite([grad for grad, _ in grads_and_vars if grad is not None])
    if not is_distributed:
        return finite
    overflows = hccl_ops.allreduce(tf1.cast(tf1.logical_not(finite), tf1.int32), "sum", fusion=0)
    return tf1.equal(overflows, 0)
