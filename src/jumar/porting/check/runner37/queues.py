"""Makes queues return the same elements in the same order in every run.

`tf.train.batch` and similar functions fill a queue from several threads, in any order; a shuffling
queue picks from its contents at that time. Here, one thread fills each queue, running its ops in
turn, and a shuffling queue is full whenever an element is taken. Buckets of sequences keep one
thread each, since an empty bucket would block all others.
"""

import itertools
import os
import sys

from tensorflow.python.ops import data_flow_ops
from tensorflow.python.training import queue_runner_impl


class _InTurn:
    """A session for the thread of a queue, whose callable runs several ops in turn."""

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
    """Limit queue runners to one thread, and keep queues of `tf.train.shuffle_batch` full."""
    runner = queue_runner_impl.QueueRunner
    runner._init_from_args = _with_one_thread(runner._init_from_args)
    runner._init_from_proto = _with_one_thread(runner._init_from_proto)
    runner._run = _in_turn(runner._run)
    data_flow_ops.RandomShuffleQueue.__init__ = _full(data_flow_ops.RandomShuffleQueue.__init__)


def _with_one_thread(original):
    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        distinct_ops = list(dict.fromkeys(self._enqueue_ops))
        self._jumar_in_turn = not _have_separate_sources(distinct_ops)
        self._jumar_enqueue_ops = distinct_ops
        self._enqueue_ops = distinct_ops[:1] if self._jumar_in_turn else distinct_ops

    return init


def _have_separate_sources(enqueue_ops):
    """Return whether several ops take batches, each from a separate queue, as with buckets."""
    batches = ("QueueDequeueMany", "QueueDequeueUpTo")
    source_queues = [
        {value.op.inputs[0] for value in _inputs(op) if value.op.type.startswith(batches)}
        for op in enqueue_ops
    ]
    disjoint = len(set().union(*source_queues)) == sum(map(len, source_queues))
    return len(source_queues) > 1 and all(source_queues) and disjoint


def _inputs(enqueue):
    """Return the inputs of an op, or of the op of a tensor (from `keep_input`)."""
    return getattr(enqueue, "op", enqueue).inputs


def _in_turn(original):
    def run(self, sess, enqueue_op, coord=None):
        turns = _InTurn(sess, self._jumar_enqueue_ops) if self._jumar_in_turn else sess
        return original(self, turns, enqueue_op, coord)

    return run


def _full(original):
    def init(self, capacity, min_after_dequeue, *args, **kwargs):
        caller = sys._getframe(1).f_code.co_filename
        # Other callers, which may fill their queue from the main thread, would block forever.
        if caller.endswith(os.path.join("training", "input.py")):
            capacity = min_after_dequeue + 1
        original(self, capacity, min_after_dequeue, *args, **kwargs)

    return init
