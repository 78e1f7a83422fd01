"""The kinds of values that the classes and functions of libraries return."""

from typing import Literal

Kind = Literal[
    "Dataset",
    "Session",
    "MonitoredSession",
    "Supervisor",
    "ConfigProto",
    "GPUOptions",
    "Optimizer",
    "KerasOptimizer",
    "Estimator",
    "RunConfig",
    "KerasModel",
    "LossScale",
    "Strategy",
    "Saver",
    "Tensor",
]

_CONSTRUCTORS: dict[str, Kind] = {
    "tensorflow.Session": "Session",
    "tensorflow.InteractiveSession": "Session",
    "tensorflow.get_default_session": "Session",
    "tensorflow.keras.backend.get_session": "Session",
    "keras.backend.get_session": "Session",
    "keras.backend.tensorflow_backend.get_session": "Session",
    "tensorflow.train.MonitoredTrainingSession": "MonitoredSession",
    "tensorflow.train.MonitoredSession": "MonitoredSession",
    "tensorflow.train.SingularMonitoredSession": "MonitoredSession",
    "tensorflow.train.Supervisor": "Supervisor",
    "tensorflow.train.Saver": "Saver",
    "tensorflow.ConfigProto": "ConfigProto",
    "npu_bridge.npu_init.npu_config_proto": "ConfigProto",
    "tensorflow.GPUOptions": "GPUOptions",
    "tensorflow.estimator.Estimator": "Estimator",
    "tensorflow.contrib.tpu.TPUEstimator": "Estimator",
    "npu_bridge.npu_init.NPUEstimator": "Estimator",
    "tensorflow.keras.estimator.model_to_estimator": "Estimator",
    "tensorflow.estimator.RunConfig": "RunConfig",
    "tensorflow.contrib.tpu.RunConfig": "RunConfig",
    "npu_bridge.npu_init.NPURunConfig": "RunConfig",
    "npu_bridge.npu_init.npu_run_config_init": "RunConfig",
    "horovod.tensorflow.DistributedOptimizer": "Optimizer",
    "horovod.keras.DistributedOptimizer": "KerasOptimizer",
    "horovod.tensorflow.keras.DistributedOptimizer": "KerasOptimizer",
    "tensorflow.contrib.tpu.CrossShardOptimizer": "Optimizer",
    "tensorflow.contrib.mixed_precision.LossScaleOptimizer": "Optimizer",
    "tensorflow.train.experimental.MixedPrecisionLossScaleOptimizer": "Optimizer",
    "tensorflow.train.experimental.enable_mixed_precision_graph_rewrite": "Optimizer",
    "npu_bridge.npu_init.NPUDistributedOptimizer": "Optimizer",
    "npu_bridge.npu_init.npu_tf_optimizer": "Optimizer",
    "npu_bridge.npu_init.NPULossScaleOptimizer": "Optimizer",
    "npu_bridge.npu_init.NPUOptimizer": "Optimizer",
    "tensorflow.train.experimental.FixedLossScale": "LossScale",
    "tensorflow.train.experimental.DynamicLossScale": "LossScale",
}
_ESTIMATOR_SUFFIXES = ("Classifier", "Regressor", "Estimator")
_KERAS_ROOTS = ("tensorflow.keras.", "keras.")
_KERAS_MODELS = frozenset(
    "Model Sequential load_model clone_model model_from_json model_from_yaml model_from_config "  # noqa: SIM905
    "multi_gpu_model".split()
)
_KERAS_OPTIMIZERS = frozenset(
    "Adadelta Adagrad Adam Adamax Ftrl Nadam RMSprop SGD TFOptimizer".split()  # noqa: SIM905
)
"""Recognised in any module of Keras: after two star imports (`keras.models`, `keras.layers`), it is
unknown which of them a name comes from."""
_OPTIMIZER_ROOTS = ("tensorflow.train.", "tensorflow.contrib.opt.")
_DATASET_ROOT = "tensorflow.data."
DATASET_METHODS = frozenset(
    "apply batch cache concatenate enumerate filter flat_map from_generator "  # noqa: SIM905
    "from_sparse_tensor_slices from_tensor_slices from_tensors interleave list_files map "
    "map_with_legacy_function padded_batch prefetch range reduce repeat shard shuffle skip take "
    "unbatch window with_options zip".split()
)


def kind_of_call(name: str) -> Kind | None:
    """The kind of value that a library's class or function returns; None if unknown."""
    if name in _CONSTRUCTORS:
        return _CONSTRUCTORS[name]
    last = name.rpartition(".")[2]
    if name.startswith(_DATASET_ROOT):
        if last.endswith("Dataset") or (last in DATASET_METHODS and "Dataset" in name):
            return "Dataset"
        return "Dataset" if last in ("make_csv_dataset", "make_batched_features_dataset") else None
    if name.startswith(_KERAS_ROOTS) and last in _KERAS_MODELS | _KERAS_OPTIMIZERS:
        return "KerasModel" if last in _KERAS_MODELS else "KerasOptimizer"
    if name.startswith(_OPTIMIZER_ROOTS) and last.endswith("Optimizer"):
        return "Optimizer"
    if name.startswith("tensorflow.estimator.") and last.endswith(_ESTIMATOR_SUFFIXES):
        return "Estimator"
    if name.startswith(("tensorflow.keras.applications.", "keras.applications.")):
        return "KerasModel" if last[:1].isupper() else None
    return None
