"""Makes the sessions of the script use one thread and no GPU, and watches training steps."""

import os
import sys
import threading

import numpy
from runner37.children import at_fork
from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2
from tensorflow.python.client import session as session_module
from tensorflow.python.framework import ops

_SECONDS_TO_LEAVE = 5.0


class Stop(SystemExit):
    """Leaves the script after the last step; no `except Exception` of the script catches it."""


class Counter:
    """Records each training step and ends the script after the last one."""

    def __init__(self, events, steps):
        self._events = events
        self._steps = steps
        self._reset()
        at_fork(self, after_in_child="_reset")

    def _reset(self):
        """Start counting, with a lock that no thread of the parent process holds."""
        self._done = 0
        self._lock = threading.Lock()

    def refuse_when_done(self):
        """Stop a script that swallowed the exit of the last step from training on."""
        if self._done >= self._steps:
            raise Stop(0)

    def count(self, losses, values):
        with self._lock:
            if self._done >= self._steps:
                return
            self._done += 1
            pairs = [[loss.name, _mean(value)] for loss, value in zip(losses, values)]
            self._events.write("step", step=self._done, losses=pairs)
            is_last_step = self._done >= self._steps
        if is_last_step:
            self._events.write("end", reason="steps")
            leave_soon()
            raise Stop(0)


def leave_soon():
    """End the process soon, even if threads or `finally` clauses of the script wait."""

    def leave():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    timer = threading.Timer(_SECONDS_TO_LEAVE, leave)
    timer.daemon = True
    timer.start()


def _mean(value):
    number = float(numpy.mean(numpy.asarray(value, dtype=numpy.float64)))
    return repr(number)


def install(watch, counter, events):
    """Hook into the script's sessions."""
    base = session_module.BaseSession
    base.__init__ = _reproducible(base.__init__)
    base.run = _watched_run(base.run, watch, counter)
    base.make_callable = _watched_callable(base.make_callable, watch, counter)
    base._make_callable_from_options = _watched_options(
        base._make_callable_from_options, watch, counter
    )
    _record_restores(events)


def _reproducible(original):
    def init(self, target="", graph=None, config=None):
        session_config = config_pb2.ConfigProto()
        if config is not None:
            session_config.CopyFrom(config)
        # Sums over several threads and parallel calls of maps would run in any order.
        session_config.intra_op_parallelism_threads = 1
        session_config.inter_op_parallelism_threads = 1
        session_config.allow_soft_placement = True
        # TensorFlow aborts if a list of visible GPUs names a missing one.
        session_config.ClearField("gpu_options")
        # A port switches this off for the NPU, and fused operators round differently.
        session_config.graph_options.rewrite_options.remapping = (
            rewriter_config_pb2.RewriterConfig.OFF
        )
        original(self, target, graph, session_config)

    return init


def _watched_run(original, watch, counter):
    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        step = watch.step(self.graph, list(_elements(self.graph, fetches)))
        if step is None:
            return original(self, fetches, feed_dict, options, run_metadata)
        counter.refuse_when_done()
        fetches_and_losses = [fetches, step.losses]
        result, values = original(self, fetches_and_losses, feed_dict, options, run_metadata)
        counter.count(step.losses, values)
        return result

    return run


def _watched_callable(original, watch, counter):
    def make_callable(self, fetches, feed_list=None, accept_options=False):
        step = watch.step(self.graph, list(_elements(self.graph, fetches)))
        if step is None:
            return original(self, fetches, feed_list, accept_options)
        inner = original(self, [fetches, step.losses], feed_list, accept_options)

        def call(*args, **kwargs):
            counter.refuse_when_done()
            result, values = inner(*args, **kwargs)
            counter.count(step.losses, values)
            return result

        return call

    return make_callable


def _watched_options(original, watch, counter):
    """Keras trains through these callables and never calls `run`."""

    def make_callable_from_options(self, callable_options):
        names = list(callable_options.fetch) + list(callable_options.target)
        step = watch.step(self.graph, list(_elements(self.graph, names)))
        if step is None:
            return original(self, callable_options)
        options = config_pb2.CallableOptions()
        options.CopyFrom(callable_options)
        options.fetch.extend([loss.name for loss in step.losses])
        inner = original(self, options)
        count = len(callable_options.fetch)

        def call(*args, **kwargs):
            counter.refuse_when_done()
            values = inner(*args, **kwargs)
            counter.count(step.losses, values[count:])
            return values[:count]

        return call

    return make_callable_from_options


def _elements(graph, fetches):
    """Yield the ops and tensors in any structure that a session can fetch."""
    if isinstance(fetches, dict):
        fetches = list(fetches.values())
    if isinstance(fetches, (list, tuple)):
        for part in fetches:
            yield from _elements(graph, part)
        return
    for part in getattr(fetches, "_flat_components", None) or [_plain(fetches)]:
        try:
            yield graph.as_graph_element(part, allow_tensor=True, allow_operation=True)
        except (TypeError, ValueError, KeyError):
            continue


def _plain(fetched):
    if isinstance(fetched, ops.IndexedSlices):
        return fetched.values
    return getattr(fetched, "op", fetched) if hasattr(fetched, "dense_shape") else fetched


def _record_restores(events):
    """Record which checkpoints were read: losses differ if one side resumes from one."""
    from tensorflow.python.training import saver

    original = saver.Saver.restore

    def restore(self, sess, save_path):
        events.write("restored", path=str(save_path))
        return original(self, sess, save_path)

    saver.Saver.restore = restore
