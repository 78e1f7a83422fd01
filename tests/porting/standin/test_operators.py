"""Operators, collectives and recurrent layers of the stand-in, in TensorFlow 1.15."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.porting.standin.standing import run_beside_standin

pytestmark = pytest.mark.slow

PROGRAM = """
from npu_bridge.npu_init import *
from npu_bridge.estimator import npu_aicore_ops
from npu_bridge.estimator.npu.npu_dynamic_rnn import DynamicAUGRU, DynamicGRUV2, DynamicRNN

def values(*tensors, **feed):
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return [np.asarray(one).tolist() for one in sess.run(list(tensors))]

def in_graph(name):
    def run(function):
        with tf.Graph().as_default():
            tf.set_random_seed(7)
            ANSWERS[name] = function()
    return run

@in_graph("gelu")
def _():
    x = tf.constant(np.linspace(-3, 3, 13).astype(np.float32))
    y = npu_unary_ops.gelu(x)
    return values(x, y, tf.gradients(y, x)[0])

@in_graph("gelu of scripts")
def _():
    x = tf.constant(np.random.RandomState(1).normal(size=1000).astype(np.float32))
    theirs = x * (0.5 * (1.0 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3)))))
    ours = npu_unary_ops.gelu(x)
    return values(theirs, ours, tf.gradients(theirs, x)[0], tf.gradients(ours, x)[0])

@in_graph("gelu trains")
def _():
    w = tf.Variable([2.0])
    train = tf.train.GradientDescentOptimizer(0.1).minimize(npu_unary_ops.gelu(w))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        return float(sess.run(w)[0])

@in_graph("dropout")
def _():
    x = tf.ones([200, 50])
    ours = npu_ops.dropout(x, 0.75, seed=3)
    theirs = tf.nn.dropout(x, keep_prob=0.75, seed=3)
    whole = npu_ops.dropout(x, 0.5, noise_shape=[200, 50])
    fed = npu_ops.dropout(x, tf.constant(0.5))
    ours, theirs, whole, fed, grad = map(np.array, values(
        ours, theirs, whole, fed, tf.gradients(npu_ops.dropout(x, 0.5), x)[0]))
    return {
        "same masks": bool((ours == theirs).all()),
        "values": sorted(set(np.unique(ours).tolist())),
        "share": float((ours > 0).mean()),
        "whole": sorted(set(np.unique(whole).tolist())),
        "fed": sorted(set(np.unique(fed).tolist())),
        "grad": sorted(set(np.unique(grad).tolist())),
    }

@in_graph("dropout arguments")
def _():
    x = tf.ones([2])
    return {
        "all": npu_ops.dropout(x, 1.0) is x,
        "zero": error(npu_ops.dropout, x, 0.0),
        "more": error(npu_ops.dropout, x, 1.5),
        "integers": error(npu_ops.dropout, tf.constant([1]), 0.5),
        "rows": error(npu_ops.dropout, tf.ones([2, 3]), 0.5, noise_shape=[2, 1]),
        "columns": error(npu_ops.dropout, tf.ones([2, 3]), 0.5, noise_shape=[1, None]),
        "whole": npu_ops.dropout(tf.ones([2, 3]), 0.5, noise_shape=[None, 3]).shape == [2, 3],
    }

@in_graph("layer norm")
def _():
    x = tf.constant(np.random.RandomState(0).randn(4, 5).astype(np.float32))
    gamma, beta = tf.constant([1., 2., 3., 4., 5.]), tf.constant([.1] * 5)
    ours = npu_aicore_ops.layer_norm(x, gamma, beta, 1, 1, 1e-5)
    with tf.variable_scope("n"):
        theirs = tf.contrib.layers.layer_norm(x, scale=False, center=False, begin_norm_axis=1)
    return [len(ours)] + values(ours[0], (theirs * gamma + beta))

@in_graph("one rank")
def _():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    return values(
        hccl_ops.allreduce(x, "sum"), hccl_ops.allgather(x, 1), hccl_ops.broadcast([x], 0)[0],
        hccl_ops.reduce(x, "max", 0), hccl_ops.reduce_scatter(x, "sum", 1),
        npu_allreduce(x), npu_allreduce([x], "sum")[0])

@in_graph("refused")
def _():
    x = tf.constant([1.0])
    return {
        "reduction": error(hccl_ops.allreduce, x, "mean"),
        "type": error(hccl_ops.allreduce, tf.cast(x, tf.float64), "sum"),
        "fusion": error(hccl_ops.allreduce, x, "sum", 3),
        "broadcast fusion": error(hccl_ops.broadcast, [x], 0, 1),
        "no list": error(hccl_ops.broadcast, x, 0),
        "root": error(hccl_ops.broadcast, [x], 1),
        "rank size": error(hccl_ops.allgather, x, 8),
        "group": error(hccl_ops.allreduce, x, "sum", group="mine"),
        "device": error(hccl_ops.send, x, 0, 1),
    }

os.environ.update(RANK_SIZE="2", RANK_ID="1", JOB_ID="1")

@in_graph("two ranks")
def _():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    slices = tf.IndexedSlices(tf.constant([[2.0]]), tf.constant([1]), tf.constant([4, 1]))
    averaged = npu_allreduce(slices)
    return values(
        hccl_ops.allreduce(x, "sum"), hccl_ops.allreduce(x, "prod"), hccl_ops.allgather(x, 2),
        hccl_ops.reduce_scatter(x, "sum", 2), npu_allreduce(x), hccl_ops.allreduce(x, "min"),
        tf.convert_to_tensor(averaged))

with tf.Graph().as_default():
    NPUStrategy = npu_strategy.NPUStrategy()
    data = tf.data.Dataset.range(6).shard(get_rank_size(), get_rank_id())
    ANSWERS["strategy"] = [NPUStrategy.num_replicas_in_sync,
                           values(*[data.make_one_shot_iterator().get_next()])]
for name in ("RANK_SIZE", "RANK_ID"):
    del os.environ[name]

@in_graph("lstm")
def _():
    x = tf.constant(np.random.RandomState(1).randn(5, 3, 4).astype(np.float32))
    layer = DynamicRNN(6, tf.float32, forget_bias=1.0)
    y, h, c = layer(x)[:3]
    cell = tf.nn.rnn_cell.BasicLSTMCell(6, forget_bias=1.0)
    theirs, state = npu_rnn.npu_dynamic_rnn(cell, x, dtype=tf.float32)
    same = [tf.assign(cell.weights[0], layer.trainable_weights[0]),
            tf.assign(cell.weights[1], layer.trainable_weights[1])]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(same)
        one = sess.run([y, c[-1], theirs, state.c, tf.gradients(y, x)[0]])
    names = sorted(variable.name for variable in layer.variables)
    return [np.asarray(part).tolist() for part in one] + [names]

@in_graph("lstm shapes")
def _():
    x = tf.ones([5, 3, 4])
    both = DynamicRNN(6, tf.float32, direction="BIDIRECTIONAL")(x)
    short = DynamicRNN(6, tf.float32)(x, seq_length=tf.constant([5, 2, 1]))
    kept = [one[0] for one in values(short[0])]
    return [[list(one.shape.as_list()) for one in both], values(short[0])[0][2][1]]

@in_graph("gru")
def _():
    x = tf.constant(np.random.RandomState(2).randn(5, 3, 4).astype(np.float32))
    layer = DynamicGRUV2(6, tf.float32)
    found = layer(x)
    theirs = tf.keras.layers.GRU(6, reset_after=True, recurrent_activation="sigmoid",
                                 return_sequences=True, implementation=1)
    expected = theirs(tf.transpose(x, [1, 0, 2]))
    wi, wh, bi, bh = layer.trainable_weights
    same = [tf.assign(theirs.weights[0], wi), tf.assign(theirs.weights[1], wh),
            tf.assign(theirs.weights[2], tf.stack([bi, bh]))]
    attended = DynamicAUGRU(6, tf.float32)(x, tf.ones([5, 3]))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(same)
        ours, keras, full = sess.run([found[0], tf.transpose(expected, [1, 0, 2]), attended])
    return [ours.tolist(), keras.tolist(), len(found), len(full),
            bool(np.allclose(full[0], full[5]))]

with tf.Graph().as_default():
    with npu_scope.without_npu_compile_scope(), npu_scope.npu_stage_scope(2):
        host = tf.constant(1.0) + 1
    with npu_scope.keep_dtype_scope():
        kept = tf.constant(1.0)
    ANSWERS["scopes"] = [host.op.get_attr("_without_npu_compile"),
                         host.op.get_attr("_stage_level"), kept.op.get_attr("_keep_dtype")]
    util.keep_tensors_dtypes(tf.get_default_graph(), [host.name])
    marked = util.set_graph_exec_config(
        host, dynamic_input=True, dynamic_inputs_shape_range="x:[1~2]")
    ANSWERS["marks"] = [host.op.get_attr("_keep_dtype"), marked is host,
                        host.op.get_attr("_graph_dynamic_input"),
                        host.op.get_attr("_graph_dynamic_inputs_shape_range").decode()]
    ANSWERS["marked session"] = values(marked)
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    folder: Path = tmp_path_factory.mktemp("operators")
    return run_beside_standin(PROGRAM, folder)


@pytest.fixture
def answers(ran: tuple[dict[str, Any], list[dict[str, Any]]]) -> dict[str, Any]:
    return ran[0]


def test_gelu_is_the_tanh_approximation_with_its_derivative(answers: dict[str, Any]) -> None:
    x, y, slope = (np.array(one, dtype=np.float64) for one in answers["gelu"])

    def expected(at: np.ndarray) -> np.ndarray:
        return 0.5 * at * (1 + np.tanh(np.sqrt(2 / np.pi) * (at + 0.044715 * at**3)))

    np.testing.assert_allclose(y, expected(x), atol=1e-6)
    step = 1e-5
    np.testing.assert_allclose(
        slope, (expected(x + step) - expected(x - step)) / (2 * step), atol=1e-5
    )
    assert answers["gelu trains"] == pytest.approx(2 - 0.1 * 1.0861, abs=1e-3)


def test_gelu_rounds_like_the_formula_in_scripts(answers: dict[str, Any]) -> None:
    theirs, ours, slope, our_slope = answers["gelu of scripts"]
    assert ours == theirs
    assert our_slope == slope


def test_dropout_draws_tensorflows_masks(answers: dict[str, Any]) -> None:
    found = answers["dropout"]
    assert found["same masks"]
    assert found["values"] == pytest.approx([0, 4 / 3])
    assert found["share"] == pytest.approx(0.75, abs=0.02)
    assert found["whole"] == [0, 2]
    assert found["fed"] == [0, 2]
    assert found["grad"] == [0, 2]


def test_dropout_refuses_the_same_values_as_the_real_one(answers: dict[str, Any]) -> None:
    found = answers["dropout arguments"]
    assert found["all"]
    assert found["whole"]
    for case in ("zero", "more", "integers"):
        assert found[case].startswith("ValueError")
    for case in ("rows", "columns"):
        assert "the operator's kernels support no smaller mask" in found[case]


def test_layer_norm_matches_contrib(answers: dict[str, Any]) -> None:
    outputs, ours, theirs = answers["layer norm"]
    assert outputs == 3
    np.testing.assert_allclose(ours, theirs, atol=2e-4)


def test_collectives_of_one_rank_return_their_input(answers: dict[str, Any]) -> None:
    assert answers["one rank"] == [[[1, 2], [3, 4]]] * 7


def test_collectives_of_two_ranks_assume_equal_ranks(answers: dict[str, Any]) -> None:
    total, product, gathered, part, mean, least, slices = answers["two ranks"]
    assert total == [[2, 4], [6, 8]]
    assert product == [[1, 4], [9, 16]]
    assert gathered == [[1, 2], [3, 4]] * 2
    assert part == [[6, 8]]
    assert mean == least == [[1, 2], [3, 4]]
    assert slices == [[0], [2], [0], [0]]
    assert answers["strategy"] == [2, [1]]


def test_collectives_refuse_wrong_arguments(answers: dict[str, Any]) -> None:
    errors = {case: text.split(":")[0] for case, text in answers["refused"].items()}
    assert errors == {
        "reduction": "ValueError",
        "type": "TypeError",
        "fusion": "ValueError",
        "broadcast fusion": "ValueError",
        "no list": "TypeError",
        "root": "ValueError",
        "rank size": "ValueError",
        "group": "ValueError",
        "device": "NotImplementedError",
    }


def test_lstm_layer_matches_tensorflows_lstm(answers: dict[str, Any]) -> None:
    ours, last, theirs, state, slope, names = answers["lstm"]
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    np.testing.assert_allclose(last, state, atol=1e-6)
    assert np.abs(slope).sum() > 0
    assert [name.partition("/")[2] for name in names] == [
        "dynamicbase/seq_length:0",
        "dynamicrnn/b:0",
        "dynamicrnn/w:0",
    ]


def test_lstm_layer_supports_directions_and_lengths(answers: dict[str, Any]) -> None:
    shapes, behind_the_end = answers["lstm shapes"]
    assert shapes == [[2, 5, 3, 6]] * 8
    assert behind_the_end == [0] * 6


def test_gru_layer_matches_keras(answers: dict[str, Any]) -> None:
    ours, theirs, outputs, attended_outputs, full_attention_replaces = answers["gru"]
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert (outputs, attended_outputs) == (6, 7)
    assert full_attention_replaces


def test_scopes_mark_operations_and_sessions_still_run_them(answers: dict[str, Any]) -> None:
    assert answers["scopes"] == [True, 2, 1]
    assert answers["marks"] == [1, True, True, "x:[1~2]"]
    assert answers["marked session"] == [2]


def test_collectives_and_dropouts_are_recorded(
    ran: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    events = ran[1]
    calls = {event.get("call") for event in events if event["kind"] == "hccl"}
    assert {"allreduce", "allgather", "broadcast", "reduce", "reduce_scatter"} <= calls
    assert {event["keep_prob"] for event in events if event["kind"] == "dropout"} >= {0.75, 0.5}
