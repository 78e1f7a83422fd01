"""`NPUEstimator`: TensorFlow's estimator with the options and hooks of the NPU."""

import json
import os
import random
import string
import sys
from pathlib import Path

import tensorflow.compat.v1 as tf1
from tensorflow.python.util import function_utils, tf_inspect
from tensorflow_estimator.python.estimator import estimator as estimator_lib
from tensorflow_estimator.python.estimator import model_fn as model_fn_lib

from npu_bridge.estimator.npu import util
from npu_bridge.estimator.npu.npu_common import NPUBasics
from npu_bridge.estimator.npu.npu_config import NPURunConfig
from npu_bridge.estimator.npu.npu_hook import (
    NPUBroadcastGlobalVariablesHook,
    NPUCheckpointSaverHook,
    NPUInfeedOutfeedSessionHook,
    NPULogOutfeedSessionHook,
    SetIterationsVarHook,
)
from npu_bridge.estimator.npu.npu_saver import NPUSaver
from npu_bridge_standin.option_table import NOT_READ, OPTIONS
from npu_bridge_standin.record import ignored_option, record
from npu_bridge_standin.sessions import OPTIMIZER_NAME

GRAPH_OPTIMIZERS = (
    "pruning",
    "function",
    "constfold",
    "shape",
    "arithmetic",
    "loop",
    "dependency",
    "layout",
)
"""TensorFlow's graph optimizers to run: all but remapping and memory optimisation. The adapter adds
another."""


class NPUEstimatorSpec(model_fn_lib.EstimatorSpec):
    """TensorFlow's spec with `host_call`: a function and the tensors passed to it in each step."""

    def __new__(
        cls,
        mode,
        predictions=None,
        loss=None,
        train_op=None,
        eval_metric_ops=None,
        export_outputs=None,
        training_chief_hooks=None,
        training_hooks=None,
        scaffold=None,
        evaluation_hooks=None,
        prediction_hooks=None,
        host_call=None,
    ):
        if host_call is not None:
            _check_host_call(host_call)
        spec = super().__new__(
            cls,
            mode=mode,
            predictions=predictions,
            loss=loss,
            train_op=train_op,
            eval_metric_ops=eval_metric_ops,
            export_outputs=export_outputs,
            training_chief_hooks=training_chief_hooks,
            training_hooks=training_hooks,
            scaffold=scaffold,
            evaluation_hooks=evaluation_hooks,
            prediction_hooks=prediction_hooks,
        )
        spec._host_call = host_call
        return spec


def _check_host_call(host_call):
    if not isinstance(host_call, (tuple, list)):
        raise ValueError("host_call must be a tuple or list: (function, tensors)")
    if len(host_call) != 2:
        raise ValueError("host_call must have two elements: (function, tensors)")
    function, tensors = host_call
    if not callable(function):
        raise TypeError("host_call[0] must be a function")
    if not isinstance(tensors, (tuple, list, dict)):
        raise ValueError("host_call[1] must be a tuple, list or dict of tensors")
    if isinstance(tensors, dict) or tf_inspect.getfullargspec(function).varargs is not None:
        return
    num_parameters = len(function_utils.fn_args(function))
    if num_parameters != len(tensors):
        raise RuntimeError(
            "host_call passes {} tensors to a function with {} parameters".format(
                len(tensors), num_parameters
            )
        )


class NPUEstimator(estimator_lib.Estimator):
    """TensorFlow's estimator, whose sessions carry the options of a `NPURunConfig`."""

    def __init__(
        self,
        model_fn=None,
        model_dir=None,
        config=None,
        params=None,
        job_start_file="",
        warm_start_from=None,
    ):
        if not isinstance(config, NPURunConfig):
            raise ValueError("config must be a NPURunConfig, got {!r}".format(config))
        model_fn_lib.verify_model_fn_args(model_fn, params)
        if config.session_config is None:
            config = config.replace(session_config=tf1.ConfigProto())
        add_block(config)
        job = NPUBasics(job_start_file).jobinfo
        if job is None:
            raise ValueError(
                "npu_bridge stand-in: NPUEstimator requires the environment variable JOB_ID; "
                "set it to any text, such as JOB_ID=10086"
            )
        model_dir = _model_dir(model_dir, config)
        restore_from = (
            warm_start_from or job._local_checkpoint_dir or os.environ.get("RESTORE_FROM")
        )
        record(
            "estimator",
            model_dir=model_dir,
            iterations_per_loop=config.iterations_per_loop,
            warm_start_from=restore_from,
        )
        super().__init__(
            model_fn=_with_npu_hooks(model_fn, model_dir, config, job._device_info),
            model_dir=model_dir,
            config=config,
            params=params or {},
            warm_start_from=restore_from,
        )

    def _assert_members_are_not_overridden(self):
        """TensorFlow forbids subclasses that override methods; the real NPUEstimator does not."""


def _model_dir(model_dir, config):
    if model_dir is not None and config.model_dir is not None and model_dir != config.model_dir:
        raise ValueError(
            "model_dir is '{}' for NPUEstimator and '{}' for NPURunConfig; set it once".format(
                model_dir, config.model_dir
            )
        )
    model_dir = model_dir or config.model_dir
    while model_dir is None:
        # Like the real class, this does not draw from TensorFlow's random numbers.
        letters = random.SystemRandom().sample(string.ascii_letters + string.digits, 10)
        path = Path.cwd() / ("model_dir_" + "".join(letters))
        if not path.exists():
            path.mkdir()
            model_dir = str(path)
    return model_dir


def add_block(config):
    """Append a block with the options of an `NPURunConfig` to its session config."""
    rewrites = config.session_config.graph_options.rewrite_options
    rewrites.optimizers.extend(GRAPH_OPTIMIZERS)
    block = rewrites.custom_optimizers.add()
    block.name = OPTIMIZER_NAME
    for name, value in _block_values(config).items():
        if value is None:
            continue
        field = OPTIONS[name]["field"]
        if field == "s" and name != "insert_op_file":
            value = tf1.compat.as_bytes(value)
        setattr(block.parameter_map[name], field, value)


def _block_values(config):
    options = dict(config.npu_options)
    if options.pop("enable_reduce_precision"):
        text = "enable_reduce_precision has no effect, it is " + NOT_READ["enable_reduce_precision"]
        ignored_option("enable_reduce_precision", True, text)
    values = {name: value for name, value in options.items() if name in OPTIONS}
    values["use_off_line"] = True
    for name in ("graph_memory_max_size", "variable_memory_max_size"):
        values[name] = None if values[name] is None else str(values[name])
    if values["aoe_mode"] is None:
        values["work_path"] = values["distribute_config"] = None
    elif values["work_path"] is None:
        values["work_path"] = "./"
    values.update(_profiling_values(options["profiling_config"]))
    values.update(_dump_values(options["dump_config"]))
    values.update(_memory_values(options["memory_config"]))
    values.update(_experimental_values(options["experimental_config"]))
    values.update(_dynamic_values(options["dynamic_input_config"]))
    values.update(_task_values())
    return values


def _profiling_values(profiling):
    if profiling is None:
        return {}
    values = {"profiling_mode": profiling._enable_profiling}
    if profiling._enable_profiling:
        values["profiling_options"] = profiling._profiling_options or ""
    return values


def _dump_values(dump):
    if dump is None:
        return {"enable_dump": False, "enable_dump_debug": False}
    return {
        "enable_dump": dump._enable_dump,
        "enable_dump_debug": dump._enable_dump_debug,
        "dump_path": dump._dump_path,
        "dump_step": dump._dump_step,
        "dump_mode": dump._dump_mode,
        "dump_debug_mode": dump._dump_debug_mode,
        "dump_data": dump.dump_data,
        "dump_layer": dump.dump_layer,
    }


def _memory_values(memory):
    if memory is None:
        return {}
    return {
        "atomic_clean_policy": memory._atomic_clean_policy,
        "static_memory_policy": memory._static_memory_policy,
        "memory_optimization_policy": memory._memory_optimization_policy,
    }


def _experimental_values(experimental):
    prefix = "experimental_"
    if experimental is None:
        return {prefix + "logical_device_cluster_deploy_mode": "LB"}
    memory = experimental._graph_memory_optimize_config
    return {
        prefix + "logical_device_cluster_deploy_mode": (
            experimental._logical_device_cluster_deploy_mode
        ),
        prefix + "logical_device_id": experimental._logical_device_id,
        prefix + "model_deploy_mode": experimental._model_deploy_mode,
        prefix + "model_deploy_devicelist": experimental._model_deploy_devicelist,
        prefix + "accelerate_train_mode": experimental._accelerate_train_mode,
        "resource_config_path": experimental._resource_config_path,
        "graph_compiler_cache_dir": experimental._graph_compiler_cache_dir,
        "graph_parallel_option_path": experimental._graph_parallel_option_path,
        "enable_graph_parallel": experimental._enable_graph_parallel,
        "graph_slice": None if memory is None else memory._graph_slice,
    }


def _dynamic_values(dynamic):
    if dynamic is None:
        return {}
    values = {
        "input_shape": dynamic._input_shape,
        "dynamic_dims": dynamic._dynamic_dims,
        "dynamic_node_type": dynamic._dynamic_node_type,
    }
    # The real class writes all three or none.
    return {} if None in values.values() else values


def _task_values():
    task = json.loads(os.environ.get("TF_CONFIG") or "{}").get("task", {})
    if not task.get("type"):
        return {"job": "localhost", "task_index": 0}
    return {"job": task["type"], "task_index": int(task.get("index", 0))}


def _with_npu_hooks(model_fn, model_dir, config, device):
    """Wrap `model_fn` so that its spec has the hooks of the NPU."""

    def model_fn_for_npu(features, labels, mode, params):
        accepted = function_utils.fn_args(model_fn)
        available = {"labels": labels, "mode": mode, "params": params, "config": config}
        arguments = {name: value for name, value in available.items() if name in accepted}
        spec = model_fn(features=features, **arguments)
        if mode == model_fn_lib.ModeKeys.PREDICT:
            return spec
        if not isinstance(spec, model_fn_lib.EstimatorSpec):
            raise RuntimeError(
                "the model function must return NPUEstimatorSpec or EstimatorSpec, got {}".format(
                    type(spec)
                )
            )
        is_training = mode == model_fn_lib.ModeKeys.TRAIN
        spec, hooks = _with_host_call(spec, mode)
        if not is_training:
            return spec._replace(evaluation_hooks=(*hooks, *(spec.evaluation_hooks or ())))
        hooks = _training_hooks(config, model_dir, device) + hooks
        if config.iterations_per_loop > 1:
            hooks.append(SetIterationsVarHook(config.iterations_per_loop))
            spec = spec._replace(train_op=tf1.group(spec.train_op, name="IterationOp"))
        return spec._replace(training_hooks=(*hooks, *(spec.training_hooks or ())))

    return model_fn_for_npu


def _training_hooks(config, model_dir, device):
    hooks = []
    size = util.get_ranksize()
    if size.isdigit() and int(size) > 1 and not config.horovod_mode:
        hooks.append(NPUBroadcastGlobalVariablesHook(device._root_rank, device._index))
    if config.save_checkpoints_steps or config.save_checkpoints_secs:
        hooks.append(
            NPUCheckpointSaverHook(
                checkpoint_dir=model_dir,
                save_secs=config.save_checkpoints_secs,
                save_steps=config.save_checkpoints_steps,
                saver=NPUSaver(max_to_keep=config.keep_checkpoint_max),
            )
        )
    return hooks


def _with_host_call(spec, mode):
    """Make the loss of a spec depend on the host call; return the spec and the hooks for this."""
    if not isinstance(spec, NPUEstimatorSpec):
        return spec, []
    hooks = [NPULogOutfeedSessionHook(sys.stderr)]
    host_call = getattr(spec, "_host_call", None)
    if host_call is None:
        return spec, hooks
    function, tensors = host_call
    dependency = spec.train_op if mode == model_fn_lib.ModeKeys.TRAIN else spec.loss
    # The function is called outside, since opening the summary writer it creates must not train.
    with tf1.control_dependencies([dependency]):
        tensors = tf1.nest.map_structure(tf1.identity, tensors)
    results = function(**tensors) if isinstance(tensors, dict) else function(*tensors)
    with tf1.control_dependencies([item for item in tf1.nest.flatten(results) if item is not None]):
        loss = tf1.identity(spec.loss)
    hooks.insert(0, NPUInfeedOutfeedSessionHook(results, mode))
    return spec._replace(loss=loss), hooks
