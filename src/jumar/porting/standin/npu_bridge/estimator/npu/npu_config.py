"""Configurations: `NPURunConfig` and its parts, and the wrapper for sessions."""

import json
import os
from enum import Enum

from tensorflow.python.distribute.parameter_server_strategy import ParameterServerStrategyV1
from tensorflow.python.training import server_lib
from tensorflow_estimator.python.estimator import run_config as run_config_lib

from npu_bridge_standin.sessions import npu_session_init as decorator_tf_session
from npu_bridge_standin.signatures import keep, with_signature

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
"""Options stored as attributes of the same name; the others get a leading underscore."""

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
    """A `tf.estimator.RunConfig` with the options of the NPU, also as positional arguments."""

    @with_signature(__name__, "NPURunConfig")
    def __init__(self, **options):
        _check_options(options)
        if options["save_checkpoints_steps"] is None and options["save_checkpoints_secs"] is None:
            options["save_checkpoints_steps"] = 100
        tensorflow_options = {name: options.pop(name) for name in TENSORFLOW_OPTIONS}
        experimental_distribute = _experimental_distribute(options.pop("distribute"))
        self.npu_options = options
        keep(self, options, PUBLIC_OPTIONS)
        super().__init__(experimental_distribute=experimental_distribute, **tensorflow_options)


def _check_options(options):
    # Imported here, since util imports two classes from this module.
    from npu_bridge.estimator.npu import util

    util.check_positive_integer(options["iterations_per_loop"], "iterations_per_loop")
    if not isinstance(options["mix_compile_mode"], bool):
        raise TypeError(
            "mix_compile_mode must be bool, got {!r}".format(options["mix_compile_mode"])
        )
    if options["mix_compile_mode"] and options["iterations_per_loop"] != 1:
        raise ValueError("iterations_per_loop must be 1 if mix_compile_mode is True")
    if not isinstance(options["jit_compile"], str):
        raise TypeError("jit_compile must be str, got {!r}".format(options["jit_compile"]))
    if not isinstance(options["horovod_mode"], bool):
        raise ValueError("horovod_mode must be bool, got {!r}".format(options["horovod_mode"]))
    util.check_nonnegative_integer(options["graph_run_mode"], "graph_run_mode")
    if options["graph_run_mode"] > 1:
        raise ValueError("graph_run_mode must be 0 or 1, got {}".format(options["graph_run_mode"]))
    util.check_nonnegative_integer(options["enable_exception_dump"], "enable_exception_dump")
    for name, kind in (
        ("dump_config", DumpConfig),
        ("experimental_config", ExperimentalConfig),
        ("dynamic_input_config", DynamicInputConfig),
    ):
        if options[name] is not None and not isinstance(options[name], kind):
            raise ValueError("{} must be a {}, got {!r}".format(name, kind.__name__, options[name]))
    cluster = _cluster()
    if bool(cluster) != isinstance(options["distribute"], ParameterServerStrategyV1):
        raise ValueError(
            "a cluster in TF_CONFIG requires distribute=ParameterServerStrategy, and vice versa"
        )
    if cluster and not options["mix_compile_mode"]:
        raise ValueError("a cluster in TF_CONFIG requires mix_compile_mode=True")


def _cluster():
    tf_config = json.loads(os.environ.get("TF_CONFIG") or "{}")
    return server_lib.ClusterSpec(tf_config.get("cluster", {}))


def _experimental_distribute(distribute):
    if not isinstance(distribute, ParameterServerStrategyV1):
        return None
    # tf.contrib takes seconds to import, and only parameter servers need it.
    from tensorflow.contrib.distribute import DistributeConfig

    return DistributeConfig(distribute, distribute, None)


def _keep(instance, **options):
    keep(instance, options)


class ProfilingConfig:
    """Profiling; the options are a JSON string."""

    __init__ = with_signature(__name__, "ProfilingConfig")(_keep)


class MemoryConfig:
    """Policies for cleaning and reusing memory."""

    __init__ = with_signature(__name__, "MemoryConfig")(_keep)


class DumpConfig:
    """Selects tensors or overflows to write to files."""

    @with_signature(__name__, "DumpConfig")
    def __init__(self, **options):
        keep(self, options, public=("dump_data", "dump_layer"))


class GraphMemoryOptimizeConfig:
    """Recomputation and slicing: each None, "auto" or "manual"."""

    @with_signature(__name__, "GraphMemoryOptimizeConfig")
    def __init__(self, **options):
        for name, value in options.items():
            if value not in (None, "auto", "manual"):
                raise ValueError("{} must be 'auto' or 'manual', got {!r}".format(name, value))
        keep(self, options)


class ExperimentalConfig:
    """Options that may change."""

    @with_signature(__name__, "ExperimentalConfig")
    def __init__(self, **options):
        memory = options["graph_memory_optimize_config"]
        if memory is not None and not isinstance(memory, GraphMemoryOptimizeConfig):
            raise ValueError("graph_memory_optimize_config must be a GraphMemoryOptimizeConfig")
        keep(self, options)


class NpuExecutePlacement(Enum):
    """The engine or memory to use."""

    ALL = "all"
    CUBE = "cube"
    VECTOR = "vector"
    TAISHAN = "taishan"
    DVPP = "dvpp"
    HOST = "host"


class DynamicInputConfig:
    """Possible input shapes; `dynamic_node_type` is 0 for a data set, 1 for placeholders."""

    __init__ = with_signature(__name__, "DynamicInputConfig")(_keep)
