"""One canonical name for each construct, however it is imported."""

import json
from functools import cache
from importlib.resources import files

_SAME_ROOT = (
    ("tensorflow.compat.v1.", "tensorflow."),
    ("tensorflow._api.v1.", "tensorflow."),
    ("tensorflow.python.keras.", "tensorflow.keras."),
    ("tensorflow.python.estimator.estimator.", "tensorflow.estimator."),
    ("tensorflow.python.estimator.run_config.", "tensorflow.estimator."),
    ("tensorflow.python.estimator.", "tensorflow.estimator."),
    ("tensorflow_estimator.python.estimator.estimator.", "tensorflow.estimator."),
    ("tensorflow_estimator.python.estimator.run_config.", "tensorflow.estimator."),
    ("tensorflow.core.protobuf.config_pb2.", "tensorflow."),
    ("tensorflow.contrib.tpu.python.tpu.tpu_estimator.", "tensorflow.contrib.tpu."),
    ("tensorflow.contrib.tpu.python.tpu.tpu_config.", "tensorflow.contrib.tpu."),
    ("tensorflow.contrib.tpu.python.tpu.tpu_optimizer.", "tensorflow.contrib.tpu."),
    ("tensorflow.estimator.tpu.TPU", "tensorflow.contrib.tpu.TPU"),
    ("tensorflow.estimator.tpu.InputPipelineConfig", "tensorflow.contrib.tpu.InputPipelineConfig"),
    ("tensorflow.estimator.tpu.RunConfig", "tensorflow.contrib.tpu.RunConfig"),
    ("tensorflow.tpu.CrossShardOptimizer", "tensorflow.contrib.tpu.CrossShardOptimizer"),
    ("tensorflow.contrib.learn.python.learn.estimators.run_config.", "tensorflow.estimator."),
    ("tensorflow.contrib.slim.python.slim.learning.", "tensorflow.contrib.slim.learning."),
    ("tensorflow.contrib.data.Dataset", "tensorflow.data.Dataset"),
    (
        "tensorflow.contrib.data.batch_and_drop_remainder",
        "tensorflow.data.experimental.batch_and_drop_remainder",
    ),
    ("tensorflow.contrib.data.map_and_batch", "tensorflow.data.experimental.map_and_batch"),
    ("tf_slim.", "tensorflow.contrib.slim."),
    ("keras.api.", "keras."),
    ("torch.cuda.amp.autocast_mode.", "torch.cuda.amp."),
    ("torch.cuda.amp.grad_scaler.", "torch.cuda.amp."),
    ("torch.amp.autocast_mode.", "torch.amp."),
    ("torch.amp.grad_scaler.", "torch.amp."),
    ("torch.nn.parallel.data_parallel.", "torch.nn."),
    ("torch.nn.parallel.distributed.", "torch.nn.parallel."),
    ("torch.nn.modules.module.", "torch.nn."),
    ("torch.distributed.distributed_c10d.", "torch.distributed."),
    ("torch.profiler.profiler.", "torch.profiler."),
    ("torch.optim.adam.", "torch.optim."),
    ("torch.optim.adamw.", "torch.optim."),
    ("torch.optim.sgd.", "torch.optim."),
    ("torch._tensor.", "torch."),
    ("npu_bridge.estimator.npu_ops", "npu_bridge.npu_init.npu_ops"),
    ("npu_bridge.estimator.npu_unary_ops", "npu_bridge.npu_init.npu_unary_ops"),
    ("npu_bridge.hccl.hccl_ops", "npu_bridge.npu_init.hccl_ops"),
    ("npu_bridge.estimator.npu.npu_config.", "npu_bridge.npu_init."),
    ("npu_bridge.estimator.npu.npu_estimator.", "npu_bridge.npu_init."),
    ("npu_bridge.estimator.npu.npu_hook.", "npu_bridge.npu_init."),
    ("npu_bridge.estimator.npu.npu_optimizer.", "npu_bridge.npu_init."),
    ("npu_bridge.estimator.npu.npu_loss_scale_optimizer.", "npu_bridge.npu_init."),
    ("npu_bridge.estimator.npu.npu_loss_scale_manager.", "npu_bridge.npu_init."),
)
_INTERNAL = ("tensorflow.python.", "tensorflow.contrib.learn.python.")
_SAME = {
    "tensorflow.compat.v1": "tensorflow",
    "tensorflow.core.protobuf.config_pb2": "tensorflow",
    "tensorflow.python.keras": "tensorflow.keras",
    "tf_slim": "tensorflow.contrib.slim",
    "torch.autocast": "torch.amp.autocast",
    "torch.nn.parallel.DataParallel": "torch.nn.DataParallel",
}


@cache
def _public_names() -> dict[str, str]:
    """The public names of TensorFlow 1.15's functions and classes, by internal name.

    The file lists what TensorFlow records on each object (`_tf_api_names_v1`): the names in each
    module, grouped by the public module that exports them; `internal=public` if the two differ.
    """
    file = files("jumar.porting.script").joinpath("internal_modules.json")
    modules: dict[str, dict[str, str]] = json.loads(file.read_text(encoding="utf-8"))
    public: dict[str, str] = {}
    for module, exports in modules.items():
        for root, names in exports.items():
            for name in names.split():
                internal, _, public_name = name.partition("=")
                public[f"{module}.{internal}"] = f"{root}.{public_name or internal}"
    return public


def canonical(name: str) -> str:
    """The name that rules use for a construct: for TensorFlow, the public one of release 1.15.

    `tensorflow.compat.v1` and the internal modules (`tensorflow.python...`) become the public
    names, such as `tensorflow.nn.relu`, so that no rule has to list several names.
    """
    while True:
        if name in _SAME:
            return _SAME[name]
        if name.startswith(_INTERNAL) and (public := _public_names().get(name)):
            return public
        for longer, shorter in _SAME_ROOT:
            if name.startswith(longer):
                name = shorter + name[len(longer) :]
                break
        else:
            return name
