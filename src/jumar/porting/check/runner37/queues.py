"""Queues that return the same elements in the same order in every run.

`tf.train.batch` and similar functions fill a queue from several threads, in any order; a shuffling
queue picks from what it contains at the time. Here one thread fills each queue, its ops taking
turns, and a shuffling queue is full whenever an element is taken. Buckets of sequences keep a
thread each, since an empty one would block all others.
"""

import itertools
import os
import sys

from tensorflow.python.ops import data_flow_ops
from tensorflow.python.training import queue_runner_impl


class _InTurn:
    """A session for a queue's thread: its callable runs several ops in turn."""

    def __init__(self, session, enqueue_ops):
        self._session = session
        self._enqueue_ops = enqueue_ops

    def __getattr__(self, name):
        return getattr(self._session, name)

    # The runner counts its threads in a dictionary by session.
    def __hash__(self):
        return hash(self._session)

    def __eq__(self, other):
        return other is self or other == self._session

    def make_callable(self, _):
        turns = itertools.cycle([self._session.make_callable(op) for op in self._enqueue_ops])

        def run_next():
            return next(turns)()

        return run_next


def install():
    """Give every queue runner one thread, and fill the queues of `tf.train.shuffle_batch`."""
    runner = queue_runner_impl.QueueRunner
    runner._init_from_args = _with_one_thread(runner._init_from_args)
    runner._init_from_proto = _with_one_thread(runner._init_from_proto)
    runner._run = _in_turn(runner._run)
    data_flow_ops.RandomShuffleQueue.__init__ = _full(data_flow_ops.RandomShuffleQueue.__init__)


def _with_one_thread(original):
    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        different = list(dict.fromkeys(self._enqueue_ops))
        self._jumar_in_turn = not _wait_for_each_their_own(different)
        self._jumar_enqueue_ops = different
        self._enqueue_ops = different[:1] if self._jumar_in_turn else different

    return init


def _wait_for_each_their_own(enqueue_ops):
    """Whether there are several, each taking batches from its own queue, as with buckets."""
    batches = ("QueueDequeueMany", "QueueDequeueUpTo")
    taken_from = [
        {value.op.inputs[0] for value in _inputs(op) if value.op.type.startswith(batches)}
        for op in enqueue_ops
    ]
    apart = len(set().union(*taken_from)) == sum(map(len, taken_from))
    return len(taken_from) > 1 and all(taken_from) and apart


def _inputs(enqueue):
    """The inputs of an op; the last one of a condition (`keep_input`) is a tensor."""
    return getattr(enqueue, "op", enqueue).inputs


def _in_turn(original):
    def run(self, sess, enqueue_op, coord=None):
        turns = _InTurn(sess, self._jumar_enqueue_ops) if self._jumar_in_turn else sess
        return original(self, turns, enqueue_op, coord)

    return run


def _full(original):
    def init(self, capacity, min_after_dequeue, *args, **kwargs):
        caller = sys._getframe(1).f_code.co_filename
        # A script that fills its own queue from its main thread would wait for ever.
        if caller.endswith(os.path.join("training", "input.py")):
            capacity = min_after_dequeue + 1
        original(self, capacity, min_after_dequeue, *args, **kwargs)

    return init
