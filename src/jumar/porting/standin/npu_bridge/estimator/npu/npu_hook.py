"""Hooks for monitored sessions and estimators."""

import os

import tensorflow.compat.v1 as tf1
from tensorflow.python.ops import summary_ops_v2
from tensorflow.python.platform import tf_logging as logging
from tensorflow.python.training import basic_session_run_hooks, session_run_hook

from npu_bridge.estimator import npu_ops
from npu_bridge.estimator.npu import util
from npu_bridge.hccl import hccl_ops
from npu_bridge_standin.record import record

for _name in util._LOOP_VARIABLES:
    util.register_func(_name)


class NPUShutDownHook(session_run_hook.SessionRunHook):
    """Closes the device at the end of a session."""

    def __init__(self, scaffold=None):
        super().__init__()
        self._scaffold = scaffold
        self._shutdown_npu_op = None

    def begin(self):
        """Build the operation."""
        self._shutdown_npu_op = npu_ops.NPUShutdown()

    def end(self, session):
        """Run the operation."""
        session.run(self._shutdown_npu_op)


class NPUBroadcastGlobalVariablesHook(session_run_hook.SessionRunHook):
    """Broadcasts the root's trainable variables to all ranks when a session begins."""

    def __init__(self, root_rank=None, index=None):
        super().__init__()
        self._root_rank = root_rank
        self._index = index
        self._broadcast = None
        size = util.get_ranksize()
        self._rank_size = int(size) if size.isdigit() else 1
        record("hccl", hook="NPUBroadcastGlobalVariablesHook", ranks=self._rank_size)

    def begin(self):
        """Build the broadcast."""
        if self._rank_size > 1:
            self._broadcast = broadcast_global_variables(self._root_rank)

    def after_create_session(self, session, coord):
        """Run the operation."""
        if self._rank_size > 1:
            session.run(self._broadcast)


def broadcast_global_variables(root_rank):
    """Build the broadcast of the root's variables; like the real one, only the trainable ones."""
    updates = []
    for variable in tf1.trainable_variables():
        values = hccl_ops.broadcast([variable], root_rank)
        updates.append(tf1.assign(variable, values[0]))
    return tf1.group(updates)


class NPUCheckpointSaverHook(basic_session_run_hooks.CheckpointSaverHook):
    """Saves checkpoints."""

    def __init__(
        self,
        checkpoint_dir,
        save_secs=None,
        save_steps=None,
        saver=None,
        checkpoint_basename="model.ckpt",
        scaffold=None,
        listeners=None,
    ):
        super().__init__(
            checkpoint_dir,
            save_secs=save_secs,
            save_steps=save_steps,
            saver=saver,
            checkpoint_basename=checkpoint_basename,
            scaffold=scaffold,
            listeners=listeners,
        )


class SetIterationsVarHook(session_run_hook.SessionRunHook):
    """Sets the number of steps that one run of `IterationOp` makes."""

    def __init__(self, iterations_per_loop=None):
        super().__init__()
        self._iterations_per_loop = iterations_per_loop
        self._variables = None

    def begin(self):
        """Create the loop variables."""
        self._variables = [util.create_or_get_var(name) for name in util._LOOP_VARIABLES]

    def after_create_session(self, session, coord):
        """Set the loop variables."""
        util._load(self._variables, session, self._iterations_per_loop)


class NPULogOutfeedSessionHook(session_run_hook.SessionRunHook):
    """On a device, prints the output of logging ops, which on a CPU print it themselves."""

    def __init__(self, output_stream):
        super().__init__()
        self._output_stream = output_stream


class NPUInfeedOutfeedSessionHook(session_run_hook.SessionRunHook):
    """Opens and flushes the summary writers of a host call."""

    def __init__(self, dequeue_ops, channel_name):
        super().__init__()
        self._dequeue_ops = dequeue_ops
        self._channel_name = channel_name
        self._opening = []
        self._flushing = []

    def begin(self):
        """Find the writers of the graph."""
        self._opening = list(summary_ops_v2.summary_writer_initializer_op())
        self._flushing = [summary_ops_v2.flush(writer=op.inputs[0]) for op in self._opening]

    def after_create_session(self, session, coord):
        """Open the writers."""
        session.run(self._opening)

    def end(self, session):
        """Flush the writers."""
        session.run(self._flushing)


class NPUOutputTensorHook(basic_session_run_hooks.LoggingTensorHook):
    """Passes the values of tensors to a function every few runs and at the end."""

    def __init__(self, tensors, dependencies=None, output_fn=None, output_every_n_steps=0):
        self._output_fn = output_fn
        self._output_every_n_steps = output_every_n_steps
        self._output_list = []
        self._runs = 0
        self._has_tensors = tensors is not None
        if tensors is not None and dependencies is not None:
            if not isinstance(dependencies, (list, tuple)):
                dependencies = [dependencies]
            with tf1.control_dependencies(dependencies):
                tensors = {name: tf1.identity(tensor) for name, tensor in tensors.items()}
        if tensors is not None:
            super().__init__(tensors, every_n_iter=1 << 31)

    def begin(self):
        """Look up the tensors."""
        if self._has_tensors:
            super().begin()

    def before_run(self, run_context):
        """Request the tensors."""
        return tf1.train.SessionRunArgs(self._current_tensors) if self._has_tensors else None

    def after_run(self, run_context, run_values):
        """Collect the values."""
        if self._has_tensors:
            values = run_values.results
            self._output_list.append({name: values[name] for name in self._tag_order})
        self._runs += 1
        if self._runs % self._output_every_n_steps == 0:
            self._output()

    def end(self, session):
        """Output the remaining values."""
        if self._output_list:
            self._output()

    def _output(self):
        self._output_fn(self._output_list)
        del self._output_list[:]


class TellMeStepOrLossHook(session_run_hook.SessionRunHook):
    """Reports the progress of training to the adapter through environment variables."""

    def __init__(self, step=None, total_step=None, loss=None, final_loss=None):
        super().__init__()
        if step is None and loss is None:
            raise ValueError("step or loss is required")
        self._fetches = {
            name: tensor
            for name, tensor in (("STEP_NOW", step), ("LOSS_NOW", loss))
            if tensor is not None
        }
        initial_values = {
            "STEP_NOW": None if step is None else "0",
            "TOTAL_STEP": total_step,
            "LOSS_NOW": None if loss is None else "0.0",
            "TARGET_LOSS": final_loss,
        }
        for name, value in initial_values.items():
            if value is not None:
                os.environ[name] = str(value)

    def before_run(self, run_context):
        """Request step and loss."""
        return tf1.train.SessionRunArgs(fetches=self._fetches)

    def after_run(self, run_context, run_values):
        """Record step and loss."""
        for name, value in run_values.results.items():
            logging.info("%s: %s", name, value)
            os.environ[name] = str(value)
