"""TensorFlow's finished estimators, and classes derived from Estimator, keep their names."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.options import PortOptions
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import Example, rule
from jumar.porting.rewriting.view import View
from jumar.porting.rules.tensorflow.estimator import with_minimal_config
from jumar.porting.rules.tensorflow.estimator_plan import CANNED


@rule(
    "canned-estimators",
    title=Text(
        en="Finished estimators get a configuration for the NPU",
        zh="预置 Estimator 使用 NPU 运行配置",
    ),
    source="npu_init.py of Ascend/tensorflow; signatures of TensorFlow 1.15",
    calls=tuple(CANNED),
    examples=(
        Example(
            before="import tensorflow as tf\n\n"
            "model = tf.estimator.DNNClassifier([8], columns, config=rc)\n",
            after="import tensorflow as tf\n"
            "from npu_bridge.npu_init import npu_run_config_init\n\n"
            "model = tf.estimator.DNNClassifier("
            "[8], columns, config=npu_run_config_init(run_config=rc))\n",
        ),
        Example(
            before="from tensorflow.estimator import LinearRegressor as L\n\n"
            "model = L(feature_columns=columns)\n",
            after="from tensorflow.estimator import LinearRegressor as L\n"
            "from npu_bridge.npu_init import npu_run_config_init\n\n"
            "model = L(feature_columns=columns, config=npu_run_config_init())\n",
        ),
        Example(
            before="import tensorflow.compat.v1 as tf\n\n"
            "model = tf.estimator.LinearClassifier(columns)\n",
            after="import tensorflow.compat.v1 as tf\n"
            "from npu_bridge.npu_init import npu_config_proto, npu_run_config_init\n\n\n"
            "def npu_session_config(config=None):\n"
            '    """Session options for the NPU."""\n'
            "    config = npu_config_proto(config_proto=config)\n"
            "    for optimizer in config.graph_options.rewrite_options.custom_optimizers:\n"
            '        if optimizer.name == "NpuOptimizer":\n'
            '            optimizer.parameter_map["precision_mode"].s = b"force_fp16"\n'
            "    return config\n\n"
            "model = tf.estimator.LinearClassifier(columns, "
            "config=npu_run_config_init(run_config=tf.estimator.RunConfig("
            "session_config=npu_session_config())))\n",
            options=PortOptions(precision="force_fp16"),
        ),
    ),
    untouched=(
        "from sklearn.linear_model import LinearRegressor\n\nLinearRegressor(config=1)\n",
        "from autosklearn.classification import DNNClassifier\n\nDNNClassifier([8], columns)\n",
        "import tensorflow as tf\nfrom npu_bridge.npu_init import *\n\n"
        "tf.estimator.DNNClassifier([8], columns, config=npu_run_config_init())\n",
        "import tensorflow as tf\nfrom npu_bridge.npu_init import *\n\n"
        "rc = npu_run_config_init(run_config=rc0)\n"
        "tf.estimator.DNNClassifier([8], columns, config=rc)\n",
        "import tensorflow as tf\n\ntf.estimator.DNNClassifier(**words)\n",
    ),
)
def canned_estimators(call: ast.Call, view: View) -> Iterator[Change]:
    """Give the configuration to `npu_run_config_init`."""
    yield from with_minimal_config(call, CANNED[view.kinds.called(call) or ""], view)
