"""Scopes that mark operations for the device's compiler; on a CPU, the marks have no effect."""

import contextlib

import tensorflow.compat.v1 as tf1
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import ops

from npu_bridge.estimator.npu import util
from npu_bridge.estimator.npu.npu_config import NpuExecutePlacement


@contextlib.contextmanager
def _marked(**marks):
    values = {}
    for name, mark in marks.items():
        if isinstance(mark, bool):
            values[name] = attr_value_pb2.AttrValue(b=mark)
        elif isinstance(mark, int):
            values[name] = attr_value_pb2.AttrValue(i=mark)
        else:
            values[name] = attr_value_pb2.AttrValue(s=tf1.compat.as_bytes(mark))
    with ops.get_default_graph()._attr_scope(values):
        yield


def without_npu_compile_scope():
    """Operations that stay on the host; requires mix_compile_mode."""
    return _marked(_without_npu_compile=True)


def npu_variable_scope(placement=NpuExecutePlacement.ALL):
    """Variables in the memory of one kind of engine."""
    if not isinstance(placement, NpuExecutePlacement):
        raise ValueError("placement must be a NpuExecutePlacement, got {!r}".format(placement))
    return _marked(_variable_placement=placement.value)


def keep_dtype_scope():
    """Operations that keep their types in mixed precision."""
    return _marked(_keep_dtype=1)


def npu_stage_scope(stage):
    """A stage of a pipeline; requires iterations_per_loop above 1."""
    return _marked(_stage_level=stage)


def npu_mem_type_scope():
    """Outputs in remote memory."""
    return _marked(_output_memory_type=1)


def npu_weight_prefetch_scope(buffer_pool_id=0, buffer_pool_size=536870912):
    """Weights that are prefetched into a pool."""
    return _marked(_buffer_pool_id=buffer_pool_id, _buffer_pool_size=buffer_pool_size)


def op_specified_engine_scope(engine_name, kernel_lib_name):
    """Operations for a specific engine."""
    return _marked(_specified_engine_name=engine_name, _specified_kernel_lib_name=kernel_lib_name)


def npu_qos_label_scope(label):
    """Operations with a quality-of-service label."""
    return _marked(_qos_service_label=label)


def subgraph_multi_dims_scope(index):
    """Operations of a subgraph with several shapes."""
    return _marked(_subgraph_multi_dims_index=index)


def npu_optimizer_scope():
    """Operations of an optimizer."""
    return _marked(_optimizer=True)


def npu_recompute_scope():
    """Operations whose results are recomputed in the backward pass."""
    return ops.name_scope_v2("NpuRecompute")


def npu_graph_slice_scope(slice_num=None):
    """Operations that are sliced."""
    if slice_num is not None:
        util.check_positive_integer(slice_num, "slice_num")
    return ops.name_scope_v2("SliceNum-{0}-NpuGraphSlicing{0}".format(slice_num))
