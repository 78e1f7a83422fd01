"""Configurations: `NPURunConfig` and its parts, and the wrapper of sessions."""

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
    """A `tf.estimator.RunConfig` with the options of the NPU, also by position."""

    @with_signature(__name__, "NPURunConfig")
    def __init__(self, **given):
        _check_options(given)
        if given["save_checkpoints_steps"] is None and given["save_checkpoints_secs"] is None:
            given["save_checkpoints_steps"] = 100
        tensorflow_options = {name: given.pop(name) for name in TENSORFLOW_OPTIONS}
        experimental_distribute = _experimental_distribute(given.pop("distribute"))
        self.npu_options = given
        keep(self, given, PUBLIC_OPTIONS)
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


def _keep(instance, **given):
    keep(instance, given)


class ProfilingConfig:
    """Whether and what to profile; the options are a JSON text."""

    __init__ = with_signature(__name__, "ProfilingConfig")(_keep)


class MemoryConfig:
    """How memory is cleaned and reused."""

    __init__ = with_signature(__name__, "MemoryConfig")(_keep)


class DumpConfig:
    """Which tensors, or which overflows, are written to files."""

    @with_signature(__name__, "DumpConfig")
    def __init__(self, **given):
        keep(self, given, public=("dump_data", "dump_layer"))


class GraphMemoryOptimizeConfig:
    """Recomputation and slicing: each None, "auto" or "manual"."""

    @with_signature(__name__, "GraphMemoryOptimizeConfig")
    def __init__(self, **given):
        for name, value in given.items():
            if value not in (None, "auto", "manual"):
                raise ValueError("{} must be 'auto' or 'manual', got {!r}".format(name, value))
        keep(self, given)


class ExperimentalConfig:
    """Options that may change."""

    @with_signature(__name__, "ExperimentalConfig")
    def __init__(self, **given):
        memory = given["graph_memory_optimize_config"]
        if memory is not None and not isinstance(memory, GraphMemoryOptimizeConfig):
            raise ValueError("graph_memory_optimize_config must be a GraphMemoryOptimizeConfig")
        keep(self, given)


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

    __init__ = with_signature(__name__, "DynamicInputConfig")(_keep)
