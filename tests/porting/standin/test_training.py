"""Optimizers, loss scales and Keras of the stand-in, in TensorFlow 1.15."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.porting.standin.standing import run_beside_standin

pytestmark = pytest.mark.slow

PROGRAM = """
from npu_bridge.npu_init import *

# The rule of TensorFlow's own manager, step by step, on the same random overflows.
from tensorflow.contrib import mixed_precision
finite_steps = np.random.RandomState(5).rand(160) > 0.3
settings = [(1024.0, 3, 2, 2, 0.8), (2.0 ** 32, 1, 1, 2, 0.5), (1.5, 2, 3, 4, 0.1),
            (1e38, 1, 2, 2, 0.5)]
ANSWERS["states"] = []
for setting in settings:
    with tf.Graph().as_default():
        finite = tf.placeholder(tf.bool, [])
        managers = [mixed_precision.ExponentialUpdateLossScaleManager(*setting),
                    ExponentialUpdateLossScaleManager(*setting)]
        updates = [one.update_loss_scale(finite) for one in managers]
        states = [[one._loss_scale, one._num_good_steps, one._num_bad_steps] for one in managers]
        seen = []
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for step in finite_steps:
                sess.run(updates, {finite: step})
                seen.append([[float(value) for value in one] for one in sess.run(states)])
        ANSWERS["states"].append(seen)

def regression(scale_of, steps, blow_up=(), **optimizer):
    with tf.Graph().as_default():
        random = np.random.RandomState(0)
        inputs = random.randn(64, 3).astype(np.float32)
        targets = inputs.dot(np.float32([[1.0], [-2.0], [0.5]]))
        factor = tf.placeholder_with_default(1.0, [])
        weights = tf.Variable(tf.zeros([3, 1]), name="w")
        loss = tf.reduce_mean((tf.matmul(inputs, weights) - targets) ** 2) * factor
        step = tf.train.get_or_create_global_step()
        manager = scale_of()
        inner = tf.train.MomentumOptimizer(0.05, 0.9)
        if optimizer.get("fused"):
            opt = NPUOptimizer(inner, manager, is_loss_scale=True)
        else:
            opt = NPULossScaleOptimizer(NPUDistributedOptimizer(inner), manager,
                                        is_distributed=optimizer.get("is_distributed", False))
        train = opt.minimize(loss, global_step=step)
        scale = manager.get_loss_scale()
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            losses, scales, kept = [], [], []
            for number in range(steps):
                before = sess.run(weights)
                feed = {factor: np.inf if number in blow_up else 1.0}
                sess.run(train, feed)
                losses.append(float(sess.run(loss)))
                scales.append(float(sess.run(scale)))
                kept.append(bool((sess.run(weights) == before).all()))
            return {"losses": losses, "scales": scales, "kept": kept,
                    "step": int(sess.run(step)), "weights": sess.run(weights).ravel().tolist()}

exponential = lambda: ExponentialUpdateLossScaleManager(2 ** 15, 100, 2, 2, 0.5)
ANSWERS["toy"] = regression(exponential, 300)
ANSWERS["overflows"] = regression(exponential, 60, blow_up=(10, 20))
ANSWERS["fused"] = regression(exponential, 60, blow_up=(10, 20), fused=True)
ANSWERS["distributed"] = regression(exponential, 60, blow_up=(10, 20), is_distributed=True)
ANSWERS["fixed"] = regression(lambda: FixedLossScaleManager(1024), 20, blow_up=(10,))
ANSWERS["unchecked"] = regression(
    lambda: FixedLossScaleManager(1024, enable_overflow_check=False), 12, blow_up=(10,))
npu_plugin.set_device_sat_mode(1)
ANSWERS["infinities"] = regression(
    lambda: FixedLossScaleManager(1024, enable_overflow_check=False), 12, blow_up=(10,))
npu_plugin.set_device_sat_mode(0)
ANSWERS["too small"] = error(FixedLossScaleManager, 0.5)
ANSWERS["no manager"] = error(NPUOptimizer, tf.train.AdamOptimizer(), is_loss_scale=True)

with tf.Graph().as_default():
    opt = NPULossScaleOptimizer(tf.train.AdamOptimizer(0.25), FixedLossScaleManager(8))
    ANSWERS["inner attribute"] = opt._lr
    ANSWERS["no attribute"] = error(lambda: opt.nothing_of_this_name)
    table = tf.Variable(tf.ones([4, 2]))
    unused = tf.Variable(1.0)
    pairs = opt.compute_gradients(tf.reduce_sum(tf.gather(table, [1, 1])), [table, unused])
    apply = opt.apply_gradients(pairs)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        ANSWERS["slices"] = [sess.run(pairs[0][0]).tolist(), pairs[1][0] is None]
        sess.run(apply)
        ANSWERS["rows"] = (sess.run(table) != 1).all(axis=1).tolist()

# Averaging over ranks.
def gradients(make, loss_of=lambda w: tf.reduce_sum(3.0 * w)):
    with tf.Graph().as_default():
        w = tf.Variable([1.0, 2.0])
        grads = make().compute_gradients(loss_of(w))
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            return sess.run([grad for grad, _ in grads])[0].tolist()

sgd = lambda: tf.train.GradientDescentOptimizer(1.0)
ANSWERS["one rank"] = gradients(lambda: NPUDistributedOptimizer(sgd()))
os.environ["RANK_SIZE"] = "4"
ANSWERS["no job"] = error(gradients, lambda: NPUDistributedOptimizer(sgd()))
os.environ["JOB_ID"] = "10086"
ANSWERS["four ranks"] = gradients(lambda: NPUDistributedOptimizer(sgd()))
ANSWERS["wrapped"] = gradients(lambda: npu_distributed_optimizer_wrapper(sgd()))
ANSWERS["sharded"] = error(
    gradients, lambda: NPUDistributedOptimizer(sgd(), is_weight_update_sharding=True))
same = sgd()
ANSWERS["wrapper gives back"] = npu_distributed_optimizer_wrapper(same) is same
with tf.Graph().as_default():
    tf.Variable(1.0, name="trained")
    tf.Variable(1.0, trainable=False, name="average")
    hook = NPUBroadcastGlobalVariablesHook(0, 0)
    with tf.train.MonitoredTrainingSession(hooks=[hook]) as sess:
        pass
    ANSWERS["broadcast"] = sorted(
        op.inputs[0].op.name for op in hook._broadcast.graph.get_operations()
        if op.type == "Assign" and "HcomBroadcast" in op.inputs[1].op.name)
del os.environ["RANK_SIZE"]

# Keras, in TensorFlow and through npu_convert_dropout.
def keras_fit(optimizer, callbacks):
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Dense(8, input_shape=(3,), activation="relu"),
                                 layers.Dropout(0.25), layers.Dense(1)])
    model.compile(optimizer=optimizer, loss="mse")
    random = np.random.RandomState(0)
    inputs = random.randn(128, 3)
    history = model.fit(inputs, inputs.sum(axis=1), epochs=60, batch_size=16, verbose=0,
                        callbacks=callbacks)
    return [float(loss) for loss in history.history["loss"]]

from npu_bridge.estimator.npu import npu_convert_dropout
tf.keras.backend.clear_session()
sess = set_keras_session_npu_config()
callbacks = npu_callbacks_append([tf.keras.callbacks.History()])
ANSWERS["keras"] = keras_fit(npu_distributed_optimizer_wrapper("adam"), callbacks)
ANSWERS["keras session"] = tf.keras.backend.get_session() is sess
close_session(sess)
npu_clear_session()
ANSWERS["keras distributed"] = keras_fit(
    npu_keras_optimizer(tf.keras.optimizers.Adam(0.01)), [])
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    folder: Path = tmp_path_factory.mktemp("training")
    return run_beside_standin(PROGRAM, folder)


@pytest.fixture
def answers(ran: tuple[dict[str, Any], list[dict[str, Any]]]) -> dict[str, Any]:
    return ran[0]


def test_loss_scale_changes_like_tensorflows(answers: dict[str, Any]) -> None:
    for seen in answers["states"]:
        theirs, ours = np.array(seen).swapaxes(0, 1)
        np.testing.assert_array_equal(ours, theirs)
        assert len({state[0] for state in ours.tolist()}) > 1


def test_toy_model_converges_in_300_steps_while_its_scale_doubles_every_100(
    answers: dict[str, Any],
) -> None:
    toy = answers["toy"]
    assert toy["losses"][-1] < 1e-8
    assert toy["weights"] == pytest.approx([1, -2, 0.5], abs=1e-4)
    assert toy["scales"][98:101] == [2**15, 2**16, 2**16]
    assert toy["scales"][-1] == 2**18
    assert toy["step"] == 300


@pytest.mark.parametrize("way", ["overflows", "fused", "distributed"])
def test_overflowing_step_is_skipped_and_two_halve_the_scale(
    answers: dict[str, Any], way: str
) -> None:
    found = answers[way]
    assert [number for number, kept in enumerate(found["kept"]) if kept] == [10, 20]
    assert found["step"] == 58
    assert found["scales"][19:21] == [2**15, 2**14]


def test_fixed_scale_skips_overflows_unless_checking_is_off(
    answers: dict[str, Any],
) -> None:
    assert answers["fixed"]["kept"][10]
    assert answers["fixed"]["step"] == 19
    assert set(answers["fixed"]["scales"]) == {1024}
    assert not np.isfinite(answers["unchecked"]["weights"]).any()
    assert answers["unchecked"]["step"] == 12
    assert answers["infinities"]["step"] == 11


def test_wrong_loss_scales_are_refused(answers: dict[str, Any]) -> None:
    assert answers["too small"].startswith("ValueError")
    assert answers["no manager"].startswith("ValueError")


def test_loss_scale_optimizer_forwards_unknown_names(answers: dict[str, Any]) -> None:
    assert answers["inner attribute"] == 0.25
    assert answers["no attribute"].startswith("AttributeError")


def test_gradients_of_rows_become_dense_and_missing_ones_stay_missing(
    answers: dict[str, Any],
) -> None:
    assert answers["slices"] == [[[0, 0], [2, 2], [0, 0], [0, 0]], True]
    assert answers["rows"] == [False, True, False, False]


def test_gradients_of_equal_ranks_average_to_themselves(answers: dict[str, Any]) -> None:
    assert answers["one rank"] == answers["four ranks"] == answers["wrapped"] == [3, 3]
    assert answers["wrapper gives back"]


def test_several_ranks_need_a_job(answers: dict[str, Any]) -> None:
    assert answers["no job"].startswith("ValueError")
    assert "JOB_ID" in answers["no job"]


def test_weights_are_distributed_only_if_there_are_enough(answers: dict[str, Any]) -> None:
    assert answers["sharded"].startswith("ValueError: 1 gradients cannot be distributed")


def test_hook_broadcasts_trainable_variables_only(answers: dict[str, Any]) -> None:
    assert answers["broadcast"] == ["trained"]


def test_keras_fits_with_each_way_of_wrapping_its_optimizer(answers: dict[str, Any]) -> None:
    assert answers["keras"][-1] < 0.6 * answers["keras"][0]
    assert answers["keras session"]
    assert answers["keras distributed"][-1] < 0.6 * answers["keras distributed"][0]


def test_loss_scales_and_keras_dropouts_are_recorded(
    ran: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    events = ran[1]
    scales = [event for event in events if event["kind"] == "loss scale"]
    assert {"fixed", "exponential"} <= {event.get("manager") for event in scales}
    assert 0.75 in {event["keep_prob"] for event in events if event["kind"] == "dropout"}
