"""The module that ported scripts import, which configures every session for the NPU."""

import os

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig
from tensorflow.python.client import session
from tensorflow.python.keras import backend
from tensorflow.python.training import session_run_hook

from hccl.manage.api import (
    create_group,
    destroy_group,
    get_group_rank_from_world_rank,
    get_local_rank_id,
    get_local_rank_size,
    get_rank_id,
    get_rank_size,
    get_world_rank_from_group_rank,
)
from hccl.split.api import set_split_strategy_by_idx, set_split_strategy_by_size
from npu_bridge import embedding as npu_embedding
from npu_bridge.estimator import npu_ops
from npu_bridge.estimator.npu import (
    keras_to_npu,
    npu_plugin,
    npu_rnn,
    npu_scope,
    npu_strategy,
    util,
)
from npu_bridge.estimator.npu.npu_callbacks import NPUBroadcastGlobalVariablesCallback
from npu_bridge.estimator.npu.npu_config import (
    DumpConfig,
    DynamicInputConfig,
    MemoryConfig,
    NPURunConfig,
    ProfilingConfig,
    decorator_tf_session,
)
from npu_bridge.estimator.npu.npu_estimator import NPUEstimator, NPUEstimatorSpec
from npu_bridge.estimator.npu.npu_hook import (
    NPUBroadcastGlobalVariablesHook,
    NPUCheckpointSaverHook,
    NPUOutputTensorHook,
    SetIterationsVarHook,
    TellMeStepOrLossHook,
)
from npu_bridge.estimator.npu.npu_loss_scale_manager import (
    ExponentialUpdateLossScaleManager,
    FixedLossScaleManager,
)
from npu_bridge.estimator.npu.npu_loss_scale_optimizer import NPULossScaleOptimizer
from npu_bridge.estimator.npu.npu_optimizer import (
    KerasDistributeOptimizer,
    NPUDistributedOptimizer,
    NPUOptimizer,
    npu_allreduce,
    npu_distributed_optimizer_wrapper,
)
from npu_bridge.estimator.npu_unary_ops import npu_unary_ops
from npu_bridge.hccl import hccl_ops
from npu_bridge_standin.record import record as _record
from npu_bridge_standin.record import warn_once as _warn_once
from npu_bridge_standin.sessions import with_npu_defaults as _with_npu_defaults

# The real module has no `__all__`: a star import imports all its names, even `os` and `util`.

_RANK_FUNCTIONS = {
    "npu_rank_id": get_rank_id,
    "npu_local_rank_id": get_local_rank_id,
    "npu_rank_size": get_rank_size,
    "npu_local_rank_size": get_local_rank_size,
}

experimental_options = {
    "disable_model_pruning": False,
    "function_optimization": RewriterConfig.ON,
    "constant_folding": RewriterConfig.ON,
    "shape_optimization": RewriterConfig.ON,
    "arithmetic_optimization": RewriterConfig.ON,
    "loop_optimization": RewriterConfig.ON,
    "dependency_optimization": RewriterConfig.ON,
    "layout_optimizer": RewriterConfig.ON,
}


class NpuEmptyHook(session_run_hook.SessionRunHook):
    """A hook that does nothing."""


def npu_hooks_append(hooks_list=()):
    """Return the list of hooks with the broadcast appended; anything but a list is dropped."""
    hooks_list = _list_or_new("npu_hooks_append", hooks_list)
    hooks_list.append(NPUBroadcastGlobalVariablesHook(0, int(os.getenv("RANK_ID", "0"))))
    return hooks_list


def npu_callbacks_append(callbacks_list=()):
    """Return the list of callbacks with the broadcast appended; anything but a list is dropped."""
    callbacks_list = _list_or_new("npu_callbacks_append", callbacks_list)
    callbacks_list.append(NPUBroadcastGlobalVariablesCallback(0))
    return callbacks_list


def _list_or_new(function, value):
    if isinstance(value, list):
        return value
    if value:
        text = "{} drops its argument, because it is a {} and not a list: {!r}".format(
            function, type(value).__name__, value
        )
        _warn_once(text)
        _record("dropped argument", function=function, type=type(value).__name__, text=text)
    return []


def npu_config_proto(config_proto=None):
    """Return the configuration, or a new one, with the `NpuOptimizer` block."""
    return _with_npu_defaults(
        _instance_or_new("npu_config_proto", config_proto, config_pb2.ConfigProto)
    )


def npu_graph_options(graph_options=None):
    """Return the graph options, or new ones, without XLA."""
    graph_options = _instance_or_new("npu_graph_options", graph_options, config_pb2.GraphOptions)
    graph_options.optimizer_options.global_jit_level = config_pb2.OptimizerOptions.OFF
    return graph_options


def npu_optimizer_options(optimizer_options=None):
    """Return the optimizer options, or new ones, without XLA."""
    options = _instance_or_new(
        "npu_optimizer_options", optimizer_options, config_pb2.OptimizerOptions
    )
    options.global_jit_level = config_pb2.OptimizerOptions.OFF
    return options


def npu_run_config_init(run_config=None):
    """Return the run configuration, or a new one, with the block for its sessions."""
    run_config = _instance_or_new("npu_run_config_init", run_config, tf.estimator.RunConfig)
    run_config.__dict__["_session_config"] = npu_config_proto(run_config.session_config)
    return run_config


def _instance_or_new(function, value, kind):
    if isinstance(value, kind):
        return value
    if value is not None:
        text = "{} drops its argument, because it is a {} and not a {}".format(
            function, type(value).__name__, kind.__name__
        )
        _warn_once(text)
        _record("dropped argument", function=function, type=type(value).__name__, text=text)
    return kind()


def set_keras_session_npu_config(config=None):
    """Create a session for the NPU and make it the session of Keras."""
    config = _instance_or_new("set_keras_session_npu_config", config, config_pb2.ConfigProto)
    sess = session.Session(config=_with_npu_defaults(config))
    backend.set_session(sess)
    return sess


def npu_clear_session(config=None):
    """Clear Keras's graph and start a new session for the NPU."""
    backend.clear_session()
    backend.set_session(session.Session(config=npu_config_proto(config)))


def init_resource(config=None):
    """Open the device; return a session and the operation for `shutdown_resource`."""
    config = _instance_or_new("init_resource", config, config_pb2.ConfigProto)
    util.global_dict_init()
    init_op, shutdown_op = npu_ops.initialize_system(), npu_ops.shutdown_system()
    sess = session.Session(config=_with_npu_defaults(config))
    sess.run(init_op)
    for name, function in _RANK_FUNCTIONS.items():
        util.set_value(name, function())
    _record("resource", call="init_resource")
    return sess, shutdown_op


def shutdown_resource(sess, npu_shutdown):
    """Close the device."""
    sess.run(npu_shutdown)


def close_session(sess):
    """Close a session."""
    sess.close()


def get_npu_rank_id():
    """The rank of this process, 0 before `init_resource`."""
    return util.get_value("npu_rank_id", 0)


def get_npu_local_rank_id():
    """The rank of this process on its server, 0 before `init_resource`."""
    return util.get_value("npu_local_rank_id", 0)


def get_npu_rank_size():
    """The number of ranks, 1 before `init_resource`."""
    return util.get_value("npu_rank_size", 1)


def get_npu_local_rank_size():
    """The number of ranks of this server, 1 before `init_resource`."""
    return util.get_value("npu_local_rank_size", 1)


def npu_keras_optimizer(opt):
    """A Keras optimizer whose gradients are averaged over ranks."""
    return KerasDistributeOptimizer(opt)


def npu_tf_optimizer(opt):
    """A TensorFlow optimizer whose gradients are averaged over ranks."""
    return NPUDistributedOptimizer(opt)


for _session in (session.Session, session.InteractiveSession):
    _session.__init__ = decorator_tf_session(_session.__init__)
del _session
