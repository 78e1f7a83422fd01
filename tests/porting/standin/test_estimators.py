"""NPUEstimator, NPURunConfig and iterations of the stand-in, in TensorFlow 1.15."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.porting.standin.standing import run_beside_standin

pytestmark = pytest.mark.slow

PROGRAM = """
import inspect
from npu_bridge.npu_init import *
from npu_bridge.estimator.npu.npu_config import ExperimentalConfig, GraphMemoryOptimizeConfig

signature = inspect.signature(NPURunConfig.__init__).parameters
ANSWERS["parameters"] = {name: one.default for name, one in signature.items() if name != "self"}
plain = NPURunConfig()
ANSWERS["defaults"] = [plain.save_summary_steps, plain.save_checkpoints_steps,
                       plain.keep_checkpoint_max, plain.keep_checkpoint_every_n_hours]
ANSWERS["errors"] = {
    "protocol": error(NPURunConfig, protocol="grpc"),
    "iterations": error(NPURunConfig, iterations_per_loop=0),
    "iterations text": error(NPURunConfig, iterations_per_loop="10"),
    "mixed": error(NPURunConfig, mix_compile_mode=True, iterations_per_loop=10),
    "mix type": error(NPURunConfig, mix_compile_mode=1),
    "jit": error(NPURunConfig, jit_compile=True),
    "run mode": error(NPURunConfig, graph_run_mode=2),
    "horovod": error(NPURunConfig, horovod_mode=1),
    "dump": error(NPURunConfig, dump_config={"enable_dump": True}),
    "slice": error(GraphMemoryOptimizeConfig, graph_slice="x"),
}

def input_fn():
    random = np.random.RandomState(0)
    inputs = random.randn(256, 3).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices(({"x": inputs}, inputs.sum(axis=1, keepdims=True)))
    return data.repeat().batch(32)

def eval_fn():
    return input_fn().take(4)

def host_summaries(value):
    SEEN.append(value)
    writer = tf.contrib.summary.create_file_writer(folder + "/host")
    with writer.as_default(), tf.contrib.summary.always_record_summaries():
        tf.contrib.summary.scalar("host_loss", value[0], step=tf.train.get_global_step())
    return tf.contrib.summary.all_summary_ops()

SEEN, PARAMS = [], []

def model_fn(features, labels, mode, params):
    PARAMS.append(dict(params))
    predictions = tf.layers.dense(features["x"], 1, name="out")
    if mode == tf.estimator.ModeKeys.PREDICT:
        return NPUEstimatorSpec(mode, predictions={"y": predictions})
    loss = tf.losses.mean_squared_error(labels, predictions)
    train = tf.train.AdamOptimizer(0.05).minimize(loss, tf.train.get_global_step())
    return NPUEstimatorSpec(
        mode, loss=loss, train_op=train,
        eval_metric_ops={"error": tf.metrics.mean_absolute_error(labels, predictions)},
        host_call=(host_summaries, [tf.reshape(loss, [1])]) if params.get("host") else None)

def estimator(**options):
    where = dict(model_dir=options.pop("model_dir", None), params=options.pop("params", None))
    config = NPURunConfig(model_dir=folder + "/" + options.pop("name", "plain"), **options)
    return NPUEstimator(model_fn=model_fn, config=config, **where)

ANSWERS["no job"] = error(estimator)
os.environ["JOB_ID"] = "10086"
ANSWERS["no run config"] = error(NPUEstimator, model_fn, config=tf.estimator.RunConfig())
ANSWERS["two folders"] = error(estimator, model_dir=folder + "/other")

class Own(NPUEstimator):
    def train(self, *args, **kwargs):
        return super().train(*args, **kwargs)

config = NPURunConfig(model_dir=folder + "/own", precision_mode="allow_mix_precision",
                      save_checkpoints_steps=50)
own = Own(model_fn=model_fn, config=config, params={"batch_size": 32})
own.train(input_fn, steps=60)
first = own.evaluate(eval_fn)
own.train(input_fn, max_steps=200)
last = own.evaluate(eval_fn)
ANSWERS["own"] = [float(first["error"]), float(last["error"]), int(last["global_step"])]
ANSWERS["checkpoints"] = sorted(os.listdir(folder + "/own"))
predicted = list(own.predict(eval_fn))
ANSWERS["predicted"] = [len(predicted), list(predicted[0]["y"].shape)]
ANSWERS["params"] = PARAMS[0]
ANSWERS["empty params"] = [one for one in PARAMS if not one]
blocks = own.config.session_config.graph_options.rewrite_options.custom_optimizers
ANSWERS["block"] = {key: str(getattr(value, value.WhichOneof("value")))
                    for key, value in blocks[0].parameter_map.items()}

session_config = tf.ConfigProto()
made = session_config.graph_options.rewrite_options.custom_optimizers.add()
made.name = "NpuOptimizer"
made.parameter_map["use_off_line"].b = True
two = estimator(name="two", session_config=session_config)
ANSWERS["blocks"] = len(two.config.session_config.graph_options.rewrite_options.custom_optimizers)

wrong = estimator(name="wrong", precision_mode="allow_mix", save_checkpoints_steps=10)
ANSWERS["wrong mode"] = error(wrong.train, input_fn, steps=1)

looping = estimator(name="loop", iterations_per_loop=10, params={"host": True})
class Count(tf.train.SessionRunHook):
    runs = 0
    def after_run(self, run_context, run_values):
        Count.runs += 1
looping.train(input_fn, steps=40, hooks=[Count()])
ANSWERS["loop"] = [Count.runs, int(looping.get_variable_value("global_step")), len(SEEN)]
ANSWERS["host files"] = len(os.listdir(folder + "/host"))
ANSWERS["host call"] = error(NPUEstimatorSpec, "train", loss=tf.constant(1.0),
                             train_op=tf.no_op(), host_call=(len,))

# IterationOp in a session of one's own.
def counted(name, **fetch):
    with tf.Graph().as_default():
        counter = tf.Variable(0)
        train = tf.group(tf.assign_add(counter, 1))
        config = npu_config_proto()
        block = config.graph_options.rewrite_options.custom_optimizers[0]
        block.parameter_map["iterations_per_loop"].i = 5
        with tf.Session(config=config) as sess:
            sess.run(tf.global_variables_initializer())
            operation = util.set_iteration_per_loop(sess, train, 5)
            values = [sess.run(counter)]
            sess.run(operation)
            values.append(sess.run(counter))
            sess.run({"train": [operation], "counter": counter})
            values.append(sess.run(counter))
            sess.run(train)
            values.append(sess.run(counter))
            with tf.control_dependencies([operation]):
                behind = tf.identity(tf.constant(1), name="behind")
            sess.run("behind:0")
            values.append(sess.run(counter))
            ANSWERS[name] = [int(one) for one in values]
counted("several")
with tf.Graph().as_default():
    step = tf.train.get_or_create_global_step()
    loop = util.IterationPerLoop()
    train = loop.create_iteration_per_loop_var(tf.group(tf.assign_add(step, 1)))
    hooks = [tf.train.StopAtStepHook(last_step=12)]
    with said("loop without option"):
        with tf.train.MonitoredTrainingSession(hooks=hooks) as sess:
            loop.load_iteration_per_loop_var(sess, 4)
            runs = 0
            while not sess.should_stop():
                sess.run(train)
                runs += 1
    ANSWERS["monitored loop"] = runs
    ANSWERS["tensor"] = error(loop.create_iteration_per_loop_var, tf.constant(1))
    with said("second"):
        ANSWERS["second name"] = loop.create_iteration_per_loop_var(tf.no_op()).name

# A Keras model as an estimator.
layers = tf.keras.layers
model = tf.keras.Sequential([layers.Dense(1, input_shape=(3,), name="d")])
model.compile(optimizer=tf.keras.optimizers.Adam(0.05), loss="mse")
of_keras = keras_to_npu.model_to_npu_estimator(
    keras_model=model, model_dir=folder + "/keras",
    config=NPURunConfig(model_dir=folder + "/keras"))
def keras_input():
    return input_fn().map(lambda features, labels: ({"d_input": features["x"]}, labels))
of_keras.train(keras_input, steps=120)
ANSWERS["keras"] = [float(of_keras.evaluate(lambda: keras_input().take(4))["loss"]),
                    type(of_keras).__name__]

# TensorFlow's estimator and train_and_evaluate with the config that npu_run_config_init makes.
def plain_model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"], 1))
    train = tf.train.AdamOptimizer(0.05).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)
config = npu_run_config_init(tf.estimator.RunConfig(model_dir=folder + "/plain tf"))
plain = tf.estimator.Estimator(plain_model_fn, config=config)
found, _ = tf.estimator.train_and_evaluate(
    plain, tf.estimator.TrainSpec(input_fn, max_steps=150, hooks=npu_hooks_append()),
    tf.estimator.EvalSpec(eval_fn, throttle_secs=0))
ANSWERS["plain"] = float(found["loss"])
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    folder: Path = tmp_path_factory.mktemp("estimators")
    return run_beside_standin(PROGRAM, folder)


@pytest.fixture
def answers(ran: tuple[dict[str, Any], list[dict[str, Any]]]) -> dict[str, Any]:
    return ran[0]


def test_npu_run_config_has_the_real_parameters(answers: dict[str, Any]) -> None:
    parameters = answers["parameters"]
    assert len(parameters) == 76
    assert list(parameters)[:3] == ["iterations_per_loop", "profiling_config", "model_dir"]
    assert list(parameters)[-2:] == ["precision_mode_v2", "ac_parallel_enable"]
    assert parameters["enable_data_pre_proc"] is True
    assert parameters["buffer_optimize"] == "l2_optimize"
    assert answers["defaults"] == [0, 100, 5, 10000]


def test_npu_run_config_refuses_the_same_values_as_the_real_one(answers: dict[str, Any]) -> None:
    kinds = {case: text.split(":")[0] for case, text in answers["errors"].items()}
    assert kinds == {
        "protocol": "TypeError",
        "iterations": "ValueError",
        "iterations text": "TypeError",
        "mixed": "ValueError",
        "mix type": "TypeError",
        "jit": "TypeError",
        "run mode": "ValueError",
        "horovod": "ValueError",
        "dump": "ValueError",
        "slice": "ValueError",
    }


def test_estimator_needs_a_job_an_npu_run_config_and_one_folder(
    answers: dict[str, Any],
) -> None:
    assert "JOB_ID" in answers["no job"]
    assert answers["no run config"].startswith("ValueError: config must be a NPURunConfig")
    assert answers["two folders"].startswith("ValueError: model_dir")


def test_estimator_trains_evaluates_predicts_and_may_be_subclassed(
    answers: dict[str, Any],
) -> None:
    before, after, step = answers["own"]
    assert after < min(before, 0.2)
    assert step == 200
    assert "model.ckpt-200.index" in answers["checkpoints"]
    assert answers["predicted"] == [128, [1]]


def test_batch_size_is_in_the_params_only_if_given(answers: dict[str, Any]) -> None:
    assert answers["params"] == {"batch_size": 32}


def test_run_config_options_get_their_own_block(
    answers: dict[str, Any],
) -> None:
    block = answers["block"]
    assert block["precision_mode"] == "b'allow_mix_precision'"
    assert block["use_off_line"] == "True"
    assert block["enable_data_pre_proc"] == "True"
    assert block["jit_compile"] == "b'auto'"
    assert block["job"] == "b'localhost'"
    assert "modify_mixlist" not in block
    assert answers["blocks"] == 2


def test_wrong_option_stops_the_training(answers: dict[str, Any]) -> None:
    assert answers["wrong mode"].startswith("ValueError: npu_bridge stand-in: precision_mode = ")


def test_iterations_are_steps_of_one_run_and_summaries_are_written_by_host_calls(
    answers: dict[str, Any],
) -> None:
    assert answers["loop"] == [4, 40, 1]
    assert answers["host files"] == 1
    assert answers["host call"].startswith("ValueError: host_call must have two elements")


def test_set_iteration_per_loop_repeats_what_is_run_with_it(answers: dict[str, Any]) -> None:
    assert answers["several"] == [0, 5, 10, 11, 16]


def test_iteration_per_loop_works_in_a_monitored_session(answers: dict[str, Any]) -> None:
    assert answers["monitored loop"] == 3
    assert "no NpuOptimizer block has iterations_per_loop = 4" in answers["loop without option"]
    assert answers["tensor"].startswith("ValueError: train_op must be an Operation")


def test_second_iteration_operation_is_reported_not_to_loop(answers: dict[str, Any]) -> None:
    assert answers["second name"] == "IterationOp_1"
    assert "only IterationOp is run several times" in answers["second"]


def test_keras_model_becomes_an_estimator(answers: dict[str, Any]) -> None:
    loss, kind = answers["keras"]
    assert loss < 0.5
    assert kind == "NPUEstimator"


def test_tensorflows_estimator_runs_with_the_config(answers: dict[str, Any]) -> None:
    assert np.isfinite(answers["plain"])
    assert answers["plain"] < 1


def test_estimators_are_recorded(ran: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    found = [event for event in ran[1] if event["kind"] == "estimator"]
    assert 10 in {event["iterations_per_loop"] for event in found}
