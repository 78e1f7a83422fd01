"""Optimizers that average gradients over ranks."""

import os

import tensorflow.compat.v1 as tf1
from tensorflow.python.keras import optimizers
from tensorflow.python.keras.optimizer_v2 import optimizer_v2

from npu_bridge.estimator.npu import util
from npu_bridge.estimator.npu.npu_common import NPUBasics
from npu_bridge.estimator.npu.npu_loss_scale_optimizer import (
    finite_everywhere,
    scaled_loss,
    unscaled,
)
from npu_bridge.hccl import hccl_ops
from npu_bridge_standin.record import record


def allreduce(tensor, average=True):
    """Return the sum or mean of a tensor or of slices over all ranks."""
    size = NPUBasics("").size()
    if isinstance(tensor, tf1.IndexedSlices):
        return _gathered_slices(tensor, size, average, "hccl_world_group")
    summed = hccl_ops.allreduce(tensor, "sum")
    return tf1.div(summed, tf1.cast(size, summed.dtype)) if average else summed


def reduce(tensor, root_rank, average=True, fusion=0, fusion_id=-1):
    """Return the sum or mean, on one rank."""
    size = NPUBasics("").size()
    if isinstance(tensor, tf1.IndexedSlices):
        return _gathered_slices(tensor, size, average, "hccl_world_group")
    device = _own_device()
    summed = hccl_ops.reduce(tensor, "sum", root_rank, fusion, fusion_id)
    return (
        tf1.div(summed, tf1.cast(size, summed.dtype)) if average and root_rank == device else summed
    )


def npu_allreduce(values, reduction="mean", fusion=1, fusion_id=-1, group="hccl_world_group"):
    """Reduce one tensor, or each of several, over the ranks of a group."""
    if not isinstance(values, (list, tuple)):
        return npu_allreduce([values], reduction, fusion, fusion_id, group)[0]
    size, mean = int(util.get_ranksize()), reduction == "mean"
    reduced = []
    for value in values:
        if isinstance(value, tf1.IndexedSlices):
            reduced.append(_gathered_slices(value, size, mean, group))
            continue
        reduced_value = hccl_ops.allreduce(
            value, "sum" if mean else reduction, fusion, fusion_id, group
        )
        reduced.append(
            tf1.div(reduced_value, tf1.cast(size, reduced_value.dtype)) if mean else reduced_value
        )
    return reduced


def _gathered_slices(slices, size, average, group):
    values = hccl_ops.allgather(slices.values, size, group)
    indices = hccl_ops.allgather(slices.indices, size, group)
    values = tf1.div(values, tf1.cast(size, values.dtype)) if average else values
    return tf1.IndexedSlices(values, indices, dense_shape=slices.dense_shape)


def _own_device():
    text = os.environ.get("DEVICE_ID", "")
    if not text.isdigit():
        raise ValueError(
            "the environment variable DEVICE_ID must be a number, got {!r}".format(text)
        )
    return int(text)


def _one_rank():
    return int(util.get_ranksize()) <= 1


def _averaged(grads_and_vars, scope):
    with tf1.name_scope(scope):
        return [
            (None if grad is None else allreduce(grad, True), variable)
            for grad, variable in grads_and_vars
        ]


def _averaged_gradients(grads, scope):
    return [grad for grad, _ in _averaged([(grad, None) for grad in grads], scope)]


class _Wrapping(tf1.train.Optimizer):
    """An optimizer around another one, which owns the slots."""

    def __init__(self, inner, name):
        super().__init__(use_locking=False, name=name)
        self._inner = inner

    def get_slot(self, *args, **kwargs):
        """Return a slot of the inner optimizer."""
        return self._inner.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        """Return the slot names of the inner optimizer."""
        return self._inner.get_slot_names(*args, **kwargs)

    def variables(self, *args, **kwargs):
        """Return the variables of the inner optimizer."""
        return self._inner.variables(*args, **kwargs)


class NPUOptimizer(_Wrapping):
    """Averages gradients over ranks and scales the loss, each if requested."""

    def __init__(
        self,
        opt,
        loss_scale_manager=None,
        is_distributed=False,
        is_loss_scale=False,
        is_tailing_optimization=False,
        name=None,
    ):
        if is_loss_scale and loss_scale_manager is None:
            raise ValueError("is_loss_scale=True needs a loss_scale_manager")
        super().__init__(opt, name or "NPUOptimizer" + type(opt).__name__)
        record("loss scale" if is_loss_scale else "hccl", optimizer=type(opt).__name__)
        self._opt = opt
        self._loss_scale_manager = loss_scale_manager
        self._is_distributed = is_distributed
        self._is_loss_scale = is_loss_scale
        self._is_tailing_optimization = is_tailing_optimization

    def compute_gradients(
        self,
        loss,
        var_list=None,
        gate_gradients=tf1.train.Optimizer.GATE_OP,
        aggregation_method=None,
        colocate_gradients_with_ops=False,
        grad_loss=None,
    ):
        """Return the gradients of the loss, averaged over ranks if requested."""
        scale = self._loss_scale_manager.get_loss_scale() if self._is_loss_scale else None
        grads_and_vars = self._opt.compute_gradients(
            loss if scale is None else scaled_loss(loss, scale),
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        if self._is_distributed:
            grads_and_vars = _averaged(grads_and_vars, self.get_name() + "_Allreduce")
        return grads_and_vars if scale is None else unscaled(grads_and_vars, scale)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """Apply gradients; with loss scaling, only finite ones."""
        grads_and_vars = list(grads_and_vars)
        if not self._is_loss_scale:
            return self._opt.apply_gradients(grads_and_vars, global_step, name)
        finite = finite_everywhere(grads_and_vars, self._is_distributed)
        update = tf1.cond(
            finite,
            lambda: tf1.group(self._opt.apply_gradients(grads_and_vars, global_step, name)),
            tf1.no_op,
        )
        return tf1.group(update, self._loss_scale_manager.update_loss_scale(finite))


class NPUDistributedOptimizer(_Wrapping):
    """Averages the gradients of another optimizer over all ranks."""

    def __init__(self, optimizer, is_weight_update_sharding=False, name=None):
        super().__init__(optimizer, name or "Distributed" + type(optimizer).__name__)
        record("hccl", optimizer=type(optimizer).__name__, ranks=util.get_ranksize())
        self._optimizer = optimizer
        self._is_weight_update_sharding = is_weight_update_sharding

    def compute_gradients(self, *args, **kwargs):
        """Return the inner optimizer's gradients, averaged if there are several ranks."""
        grads_and_vars = self._optimizer.compute_gradients(*args, **kwargs)
        if _one_rank():
            return grads_and_vars
        if self._is_weight_update_sharding:
            size = int(util.get_ranksize())
            if size > len(grads_and_vars):
                raise ValueError(
                    "{} gradients cannot be distributed over {} ranks".format(
                        len(grads_and_vars), size
                    )
                )
            _own_device()
            util.add_grads_and_vars(grads_and_vars, size)
        return _averaged(grads_and_vars, self.get_name() + "_Allreduce")

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """Apply all gradients, even sharded ones, as if the owning ranks had sent the weights."""
        return self._optimizer.apply_gradients(grads_and_vars, global_step, name)


class KerasDistributeOptimizer(optimizer_v2.OptimizerV2):
    """Averages the gradients of a Keras optimizer over all ranks."""

    def __init__(self, optimizer, name="NpuKerasOptimizer", **kwargs):
        super().__init__(name, **kwargs)
        record("hccl", optimizer=type(optimizer).__name__, ranks=util.get_ranksize())
        self._optimizer = optimizer
        inner_gradients = optimizer.get_gradients

        def averaged_gradients(loss, params):
            grads = inner_gradients(loss, params)
            return grads if _one_rank() else _averaged_gradients(grads, name + "_Allreduce")

        optimizer.get_gradients = averaged_gradients

    def get_updates(self, loss, params):
        """Return the updates of the inner optimizer."""
        return self._optimizer.get_updates(loss, params)

    def apply_gradients(self, grads_and_vars, name=None):
        """Apply gradients with the inner optimizer."""
        return self._optimizer.apply_gradients(grads_and_vars, name)

    def get_config(self):
        """Return the configuration to recreate this optimizer."""
        config = super().get_config()
        config["optimizer"] = self._optimizer
        return config

    def _compute_gradients(self, loss, var_list, grad_loss=None):
        grads_and_vars = self._optimizer._compute_gradients(loss, var_list, grad_loss)
        return grads_and_vars if _one_rank() else _averaged(grads_and_vars, "KerasAllreduce")


def npu_distributed_optimizer_wrapper(optimizer):
    """Make a TensorFlow or Keras optimizer average its gradients, in place, and return it."""
    if isinstance(optimizer, str):
        optimizer = optimizers.get(optimizer)
    record("hccl", optimizer=type(optimizer).__name__, ranks=util.get_ranksize())
    one_rank = _one_rank()

    def patch(name, averaged):
        inner = getattr(optimizer, name, None)
        if inner is None:
            return

        def patched(*args, **kwargs):
            grads = inner(*args, **kwargs)
            return grads if one_rank else averaged(grads, "Npu_Distributed_optimizer_Allreduce")

        setattr(optimizer, name, patched)

    patch("compute_gradients", _averaged)
    patch("get_gradients", _averaged_gradients)
    patch("_compute_gradients", _averaged)
    return optimizer
