"""Configurations: `NPURunConfig` and its parts, and the wrapper of sessions."""

import json
import os
from enum import Enum

from tensorflow.python.distribute.parameter_server_strategy import ParameterServerStrategyV1
from tensorflow.python.training import server_lib
from tensorflow_estimator.python.estimator import run_config as run_config_lib

from npu_bridge_standin.sessions import npu_session_init as decorator_tf_session

PUBLIC_OPTIONS = (
    "iterations_per_loop",
    "mix_compile_mode",
    "enable_data_pre_proc",
    "is_tailing_optimization",
    "variable_format_optimize",
    "horovod_mode",
    "graph_run_mode",
    "op_debug_level",
    "enable_scope_fusion_passes",
    "enable_exception_dump",
    "topo_sorting_mode",
    "aoe_config_file",
    "insert_op_file",
    "stream_sync_timeout",
    "event_sync_timeout",
    "es_cluster_config",
)
"""Those that are attributes of this name; the others begin with an underscore."""

TENSORFLOW_OPTIONS = (
    "model_dir",
    "tf_random_seed",
    "save_summary_steps",
    "save_checkpoints_steps",
    "save_checkpoints_secs",
    "session_config",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
    "train_distribute",
    "eval_distribute",
)


class NPURunConfig(run_config_lib.RunConfig):
    """A `tf.estimator.RunConfig` with the options of the NPU, which may also be given by place."""

    def __init__(
        self,
        iterations_per_loop=1,
        profiling_config=None,
        model_dir=None,
        tf_random_seed=None,
        save_summary_steps=0,
        save_checkpoints_steps=None,
        save_checkpoints_secs=None,
        session_config=None,
        keep_checkpoint_max=5,
        keep_checkpoint_every_n_hours=10000,
        log_step_count_steps=100,
        distribute=None,
        enable_data_pre_proc=True,
        precision_mode=None,
        enable_reduce_precision=False,
        variable_format_optimize=None,
        mix_compile_mode=False,
        hcom_parallel=True,
        graph_memory_max_size=None,
        variable_memory_max_size=None,
        dump_config=None,
        stream_max_parallel_num=None,
        is_tailing_optimization=False,
        horovod_mode=False,
        graph_run_mode=1,
        op_debug_level=None,
        enable_scope_fusion_passes=None,
        enable_exception_dump=2,
        op_select_implmode=None,
        optypelist_for_implmode=None,
        dynamic_input_config=None,
        aoe_mode=None,
        work_path=None,
        buffer_optimize="l2_optimize",
        enable_small_channel=0,
        fusion_switch_file=None,
        enable_compress_weight=False,
        compress_weight_conf=None,
        op_compiler_cache_mode=None,
        op_compiler_cache_dir=None,
        debug_dir=None,
        hcom_multi_mode=False,
        dynamic_input=None,
        dynamic_graph_execute_mode="dynamic_execute",
        dynamic_inputs_shape_range=None,
        train_distribute=None,
        eval_distribute=None,
        local_rank_id=None,
        local_device_list=None,
        session_device_id=None,
        distribute_config=None,
        modify_mixlist=None,
        op_precision_mode=None,
        device_type="default_device_type",
        soc_config=None,
        hccl_timeout=None,
        op_wait_timeout=None,
        op_execute_timeout=None,
        HCCL_algorithm=None,
        customize_dtypes=None,
        op_debug_config=None,
        memory_config=None,
        experimental_config=None,
        topo_sorting_mode=None,
        aoe_config_file=None,
        insert_op_file=None,
        stream_sync_timeout=-1,
        event_sync_timeout=-1,
        external_weight=False,
        es_cluster_config=None,
        deterministic=0,
        frozen_variable=False,
        variable_placement="Device",
        jit_compile="auto",
        precision_mode_v2=None,
        ac_parallel_enable=None,
    ):
        given = dict(locals())
        given.pop("self")
        given.pop("__class__")
        _check_options(given)
        if save_checkpoints_steps is None and save_checkpoints_secs is None:
            given["save_checkpoints_steps"] = 100
        tensorflow_options = {name: given.pop(name) for name in TENSORFLOW_OPTIONS}
        experimental_distribute = _experimental_distribute(given.pop("distribute"))
        self.npu_options = given
        for name, value in given.items():
            setattr(self, name if name in PUBLIC_OPTIONS else "_" + name, value)
        super().__init__(experimental_distribute=experimental_distribute, **tensorflow_options)


def _check_options(given):
    # Imported here, because util gives out two classes of this module.
    from npu_bridge.estimator.npu import util

    util.check_positive_integer(given["iterations_per_loop"], "iterations_per_loop")
    if not isinstance(given["mix_compile_mode"], bool):
        raise TypeError("mix_compile_mode must be bool, got {!r}".format(given["mix_compile_mode"]))
    if given["mix_compile_mode"] and given["iterations_per_loop"] != 1:
        raise ValueError("iterations_per_loop must be 1 where mix_compile_mode is True")
    if not isinstance(given["jit_compile"], str):
        raise TypeError("jit_compile must be str, got {!r}".format(given["jit_compile"]))
    if not isinstance(given["horovod_mode"], bool):
        raise ValueError("horovod_mode must be bool, got {!r}".format(given["horovod_mode"]))
    util.check_nonnegative_integer(given["graph_run_mode"], "graph_run_mode")
    if given["graph_run_mode"] > 1:
        raise ValueError("graph_run_mode must be 0 or 1, got {}".format(given["graph_run_mode"]))
    util.check_nonnegative_integer(given["enable_exception_dump"], "enable_exception_dump")
    for name, kind in (
        ("dump_config", DumpConfig),
        ("experimental_config", ExperimentalConfig),
        ("dynamic_input_config", DynamicInputConfig),
    ):
        if given[name] is not None and not isinstance(given[name], kind):
            raise ValueError("{} must be a {}, got {!r}".format(name, kind.__name__, given[name]))
    cluster = _cluster()
    if bool(cluster) != isinstance(given["distribute"], ParameterServerStrategyV1):
        raise ValueError(
            "a cluster in TF_CONFIG and distribute=ParameterServerStrategy belong together"
        )
    if cluster and not given["mix_compile_mode"]:
        raise ValueError("a cluster in TF_CONFIG needs mix_compile_mode=True")


def _cluster():
    said = json.loads(os.environ.get("TF_CONFIG") or "{}")
    return server_lib.ClusterSpec(said.get("cluster", {}))


def _experimental_distribute(distribute):
    if not isinstance(distribute, ParameterServerStrategyV1):
        return None
    # tf.contrib takes seconds to import, and only parameter servers need it.
    from tensorflow.contrib.distribute import DistributeConfig

    return DistributeConfig(distribute, distribute, None)


class ProfilingConfig:
    """Whether and what to profile; the options are a JSON text."""

    def __init__(self, enable_profiling=False, profiling_options=None):
        self._enable_profiling = enable_profiling
        self._profiling_options = profiling_options


class MemoryConfig:
    """How memory is cleaned and reused."""

    def __init__(
        self, atomic_clean_policy=0, static_memory_policy=0, memory_optimization_policy=None
    ):
        self._atomic_clean_policy = atomic_clean_policy
        self._static_memory_policy = static_memory_policy
        self._memory_optimization_policy = memory_optimization_policy


class DumpConfig:
    """Which tensors, or which overflows, are written to files."""

    def __init__(
        self,
        enable_dump=False,
        dump_path=None,
        dump_step=None,
        dump_mode="output",
        enable_dump_debug=False,
        dump_debug_mode="all",
        dump_data="tensor",
        dump_layer=None,
    ):
        self._enable_dump = enable_dump
        self._dump_path = dump_path
        self._dump_step = dump_step
        self._dump_mode = dump_mode
        self._enable_dump_debug = enable_dump_debug
        self._dump_debug_mode = dump_debug_mode
        self.dump_data = dump_data
        self.dump_layer = dump_layer


class GraphMemoryOptimizeConfig:
    """Recomputation and slicing: each None, "auto" or "manual"."""

    def __init__(self, recompute=None, graph_slice=None):
        for name, value in (("recompute", recompute), ("graph_slice", graph_slice)):
            if value not in (None, "auto", "manual"):
                raise ValueError("{} must be 'auto' or 'manual', got {!r}".format(name, value))
        self._recompute = recompute
        self._graph_slice = graph_slice


class ExperimentalConfig:
    """Options that may change."""

    def __init__(
        self,
        logical_device_cluster_deploy_mode="LB",
        logical_device_id=None,
        model_deploy_mode=None,
        model_deploy_devicelist=None,
        graph_memory_optimize_config=None,
        enable_graph_parallel=None,
        graph_parallel_option_path=None,
        graph_compiler_cache_dir=None,
        resource_config_path=None,
        accelerate_train_mode=None,
    ):
        if graph_memory_optimize_config is not None and not isinstance(
            graph_memory_optimize_config, GraphMemoryOptimizeConfig
        ):
            raise ValueError("graph_memory_optimize_config must be a GraphMemoryOptimizeConfig")
        self._logical_device_cluster_deploy_mode = logical_device_cluster_deploy_mode
        self._logical_device_id = logical_device_id
        self._model_deploy_mode = model_deploy_mode
        self._model_deploy_devicelist = model_deploy_devicelist
        self._graph_memory_optimize_config = graph_memory_optimize_config
        self._enable_graph_parallel = enable_graph_parallel
        self._graph_parallel_option_path = graph_parallel_option_path
        self._graph_compiler_cache_dir = graph_compiler_cache_dir
        self._resource_config_path = resource_config_path
        self._accelerate_train_mode = accelerate_train_mode


class NpuExecutePlacement(Enum):
    """Where something runs."""

    ALL = "all"
    CUBE = "cube"
    VECTOR = "vector"
    TAISHAN = "taishan"
    DVPP = "dvpp"
    HOST = "host"


class DynamicInputConfig:
    """Shapes that inputs take; `dynamic_node_type` is 0 for a data set, 1 for placeholders."""

    def __init__(self, input_shape, dynamic_dims, dynamic_node_type):
        self._input_shape = input_shape
        self._dynamic_dims = dynamic_dims
        self._dynamic_node_type = dynamic_node_type
