"""Scripts for Estimator, Keras and sessions, ported and then trained by TensorFlow 1.15 itself."""

from pathlib import Path

import pytest

from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText
from jumar.porting.standin import standin_folder
from tests.tensorflow115 import run_tensorflow

HEAD = """
import os
import tempfile
import numpy as np
import tensorflow as tf

losses = []
X = np.linspace(-1, 1, 32).reshape(16, 2).astype(np.float32)
Y = X.sum(axis=1, keepdims=True)


class Record(tf.train.SessionRunHook):
    def before_run(self, context):
        tensor = context.session.graph.get_tensor_by_name("the_loss:0")
        return tf.train.SessionRunArgs(tensor)

    def after_run(self, context, values):
        losses.append(float(values.results))


def model_fn(features, labels, mode, params):
    # With a graph seed, each operation's seed depends on its number, and a port adds operations.
    predicted = tf.layers.dense(features["x"], 1, kernel_initializer=tf.ones_initializer())
    loss = tf.identity(tf.reduce_mean(tf.square(predicted - labels)), name="the_loss")
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return SPEC(mode, loss=loss, train_op=step)


def input_fn(params=None):
    batch = params["batch_size"] if params else 4
    data = tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat()
    return data.batch(batch, drop_remainder=True)
"""
PLAIN = HEAD.replace("SPEC", "tf.estimator.EstimatorSpec")
SCRIPTS = {
    "estimator": PLAIN
    + """
def main(argv):
    config = tf.ConfigProto(allow_soft_placement=True)
    config.gpu_options.allow_growth = True
    config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
    run_config = tf.estimator.RunConfig(
        tempfile.mkdtemp(), 3, session_config=config, protocol=None)
    model = tf.estimator.Estimator(model_fn, config=run_config, params={"a": 1})
    model.train(lambda: input_fn(), (Record(),), steps=4)


if __name__ == "__main__":
    main([])
""",
    "default_estimator": PLAIN
    + """
def make(config=None):
    return tf.estimator.Estimator(model_fn, tempfile.mkdtemp(), config, {"a": 1})


spec = tf.estimator.TrainSpec(lambda: input_fn(), max_steps=3, hooks=[Record()])
tf.estimator.train_and_evaluate(
    make(tf.estimator.RunConfig(tf_random_seed=5)), spec,
    tf.estimator.EvalSpec(lambda: input_fn(), steps=1, throttle_secs=1000))
tf.estimator.Estimator(model_fn, params={"a": 1})
""",
    "canned": PLAIN
    + """
columns = [tf.feature_column.numeric_column("x", shape=2)]
model = tf.estimator.LinearRegressor(
    columns, config=tf.estimator.RunConfig(tempfile.mkdtemp(), tf_random_seed=2))
model.train(lambda: input_fn(), steps=3)
losses.append(float(model.evaluate(lambda: input_fn(), steps=1)["loss"]))
""",
    "tpu": HEAD.replace("SPEC", "tf.contrib.tpu.TPUEstimatorSpec")
    + """
use_tpu = False
run_config = tf.contrib.tpu.RunConfig(
    model_dir=tempfile.mkdtemp(), tf_random_seed=4,
    tpu_config=tf.contrib.tpu.TPUConfig(iterations_per_loop=10))
model = tf.contrib.tpu.TPUEstimator(
    model_fn, config=run_config, use_tpu=use_tpu, train_batch_size=4)
model.train(input_fn, hooks=[Record()], max_steps=3)
""",
    "keras": PLAIN
    + """
def train(epochs):
    tf.set_random_seed(7)
    layer = tf.keras.layers.Dense(1, kernel_initializer="ones", input_shape=(2,))
    model = tf.keras.Sequential([layer])
    model.compile("sgd", "mse")
    history = model.fit(X, Y, epochs=epochs, shuffle=False, verbose=0)
    losses.extend(float(value) for value in history.history["loss"])
    return history


if __name__ == "__main__":
    tf.keras.backend.clear_session()
    train(3)
""",
    "keras_estimator": PLAIN
    + """
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,), name="x")])
model.compile(tf.keras.optimizers.SGD(0.1), "mse")
model.set_weights([np.array([[0.5], [-0.5]]), np.zeros(1)])
estimator = tf.keras.estimator.model_to_estimator(
    model, config=tf.estimator.RunConfig(tempfile.mkdtemp(), tf_random_seed=6))


def batches():
    return tf.data.Dataset.from_tensor_slices(({"x_input": X}, Y)).repeat().batch(4, True)


estimator.train(batches, steps=3)
losses.append(float(estimator.evaluate(batches, steps=1)["loss"]))
""",
    "session": PLAIN
    + """
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
os.environ["TF_XLA_FLAGS"] = "--tf_xla_cpu_global_jit"
tf.reset_default_graph()
tf.set_random_seed(1)
with tf.device("/gpu:%d" % 0):
    x = tf.placeholder(tf.float32, [16, 2])
    predicted = tf.layers.dense(x, 1, kernel_initializer=tf.ones_initializer())
    loss = tf.reduce_mean(tf.square(predicted - Y))
gpu_options = tf.GPUOptions(per_process_gpu_memory_fraction=0.5)
config = tf.ConfigProto(gpu_options=gpu_options, allow_soft_placement=True)
step = tf.train.AdamOptimizer(0.1).minimize(loss)
with tf.train.MonitoredTrainingSession(config=config, hooks=()) as sess:
    for _ in range(4):
        losses.append(float(sess.run([step, loss], {x: X})[1]))
""",
}
OPTIONS = {
    "plain": PortOptions(),
    "minimal": PortOptions(minimal=True),
    "everything": PortOptions(
        precision="allow_mix_precision", devices=8, profiling=True, overflow_dump=True
    ),
}
RUN = """
import os, runpy
sys.dont_write_bytecode = True
folder, standin = sys.argv[1:3]
if standin:
    sys.path.insert(0, standin)
for name in ("RANK_SIZE", "RANK_ID", "CM_WORKER_SIZE", "DEVICE_ID", "JOB_ID", "TF_CONFIG"):
    os.environ.pop(name, None)
os.chdir(folder)
answers = {}
for name in sys.argv[3:]:
    tf.keras.backend.clear_session()
    tf.reset_default_graph()
    answers[name] = runpy.run_path(name + ".py", run_name="__main__")["losses"]
answer(answers)
"""


def trained(folder: Path, options: PortOptions | None) -> dict[str, list[float]]:
    folder.mkdir()
    for name, text in SCRIPTS.items():
        if options is not None:
            report = port_file(SourceText(text), f"{name}.py", Project(folder), options)
            assert report.status == "ported"
            text = report.after
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    standin = str(standin_folder()) if options is not None else ""
    return run_tensorflow(RUN, str(folder), standin, *SCRIPTS)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[float]]:
    return trained(tmp_path_factory.mktemp("original") / "scripts", None)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_ported_scripts_train_with_the_losses_of_the_originals(
    name: str, original: dict[str, list[float]], tmp_path: Path
) -> None:
    assert all(original.values())
    ported = trained(tmp_path / "scripts", OPTIONS[name])
    for script, losses in original.items():
        assert ported[script] == pytest.approx(losses, rel=1e-6), script
