"""Callbacks for Keras."""

from tensorflow.python import keras
from tensorflow.python.keras import backend
from tensorflow.python.ops import control_flow_ops, state_ops

from npu_bridge.estimator.npu import util
from npu_bridge.hccl import hccl_ops
from npu_bridge_standin.record import record


def broadcast_global_variables(root_rank):
    """Build the broadcast of the root's values for variables that Keras has initialised."""
    updates = []
    for variable in backend._get_variables(backend.get_graph()):
        if getattr(variable, "_keras_initialized", False):
            values = hccl_ops.broadcast([variable], root_rank)
            updates.append(state_ops.assign(variable, values[0]))
    return control_flow_ops.group(updates)


class BroadcastGlobalVariablesCallbackImpl:
    """The callback's implementation, for any version of Keras."""

    def __init__(self, root_rank, *args):
        super().__init__(*args)
        self.root_rank = root_rank
        self.broadcast_done = False
        record("hccl", callback=type(self).__name__, ranks=util.get_ranksize())

    def on_batch_begin(self, batch, logs=None):
        """Broadcast before the first batch."""
        if not self.broadcast_done and int(util.get_ranksize()) > 1:
            backend.get_session().run(broadcast_global_variables(self.root_rank))
        self.broadcast_done = True


class NPUBroadcastGlobalVariablesCallback(
    BroadcastGlobalVariablesCallbackImpl, keras.callbacks.Callback
):
    """Broadcasts the root's values to all ranks before the first batch."""

    def __init__(self, root_rank):
        super().__init__(root_rank)
