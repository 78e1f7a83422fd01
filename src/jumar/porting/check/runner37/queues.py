"""Queues that give the same elements in the same order in every run.

`tf.train.batch` and its kin fill a queue from several threads, in any order; a shuffling queue
picks among what happens to be there. Here each queue is filled by one thread, whose ops take
turns, and a shuffling queue is full whenever something is taken.
"""

import itertools
import os
import sys

from tensorflow.python.ops import data_flow_ops
from tensorflow.python.training import queue_runner_impl


class _InTurn:
    """A session for a queue's thread: the callable it makes runs several ops in turn."""

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
        self._jumar_enqueue_ops = list(dict.fromkeys(self._enqueue_ops))
        self._enqueue_ops = self._jumar_enqueue_ops[:1]

    return init


def _in_turn(original):
    def run(self, sess, enqueue_op, coord=None):
        return original(self, _InTurn(sess, self._jumar_enqueue_ops), enqueue_op, coord)

    return run


def _full(original):
    def init(self, capacity, min_after_dequeue, *args, **kwargs):
        caller = sys._getframe(1).f_code.co_filename
        # A script that fills its own queue from its main thread would wait for ever.
        if caller.endswith(os.path.join("training", "input.py")):
            capacity = min_after_dequeue + 1
        original(self, capacity, min_after_dequeue, *args, **kwargs)

    return init
