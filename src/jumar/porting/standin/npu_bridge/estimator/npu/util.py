"""Functions to set iterations, graph options and ranks; named as in the real package."""

import os
from pathlib import Path

import six
import tensorflow.compat.v1 as tf1
from tensorflow.core.framework import attr_value_pb2, variable_pb2
from tensorflow.python.framework import ops
from tensorflow.python.ops import resource_variable_ops
from tensorflow.python.util import compat

from npu_bridge.estimator.npu.npu_config import ExperimentalConfig, GraphMemoryOptimizeConfig
from npu_bridge_standin.option_table import OPTIONS
from npu_bridge_standin.ranks import rank_size_text
from npu_bridge_standin.record import record
from npu_bridge_standin.sessions import run_several_steps, warn_unless_iteration_op

_LOOP_VARIABLES = ("iterations_per_loop", "loop_cond", "zero", "one")
_COLLECTION = "npu_runconfig_{}"

_GLOBAL_DICT = []
_GRADIENT_ITEMS = []


def check_not_none(value, name):
    """Raise if the value is None."""
    if value is None:
        raise ValueError("{} must not be None".format(name))


def check_positive_integer(value, name):
    """Raise unless the value is an integer of 1 or more."""
    _check_integer(value, name)
    if value <= 0:
        raise ValueError("{} must be positive, got {}".format(name, value))


def check_nonnegative_integer(value, name):
    """Raise unless the value is an integer of 0 or more."""
    _check_integer(value, name)
    if value < 0:
        raise ValueError("{} must be nonnegative, got {}".format(name, value))


def _check_integer(value, name):
    if not isinstance(value, six.integer_types):
        raise TypeError("{} must be int, got {}".format(name, type(value)))


def check_bool_type(value, name):
    """Raise unless the value is True or False."""
    if not isinstance(value, bool):
        raise TypeError("{} must be True or False, got {}".format(name, value))


def convert_bool_to_int(value):
    """Return 1 for True, 0 for False, -1 for anything else."""
    return int(value) if isinstance(value, bool) else -1


def format_string(value, name):
    """Return a string, empty for None."""
    if value is None:
        return ""
    if not isinstance(value, six.string_types):
        raise TypeError("{} must be string, got {}".format(name, type(value)))
    return str(value)


def check_profiling_options(profiling_options=()):
    """Return the options of old releases, joined by colons."""
    known = ("training_trace", "task_trace", "op_trace")
    if not profiling_options or any(option not in known for option in profiling_options):
        raise ValueError("profiling options must be some of {}".format(", ".join(known)))
    return ":".join(profiling_options)


def check_path(path):
    """Return the real path of a folder, after checking that it is readable and writable."""
    if not Path(path).is_dir():
        raise ValueError("path {} is not a folder".format(path))
    if not os.access(path, os.R_OK | os.W_OK):
        raise ValueError("path {} cannot be read and written".format(path))
    return os.path.realpath(path)


def check_aoe_mode(aoe_mode):
    """Raise if the tuning mode is unknown."""
    allowed = OPTIONS["aoe_mode"]["allowed"]
    if aoe_mode not in allowed:
        raise ValueError("aoe_mode is {!r}; allowed values are {}".format(aoe_mode, allowed))


def register_func(var_name):
    """Register a loop variable to be stored in the collections of a graph."""
    ops.register_proto_function(
        _COLLECTION.format(var_name),
        proto_type=variable_pb2.VariableDef,
        to_proto=resource_variable_ops._to_proto_fn,
        from_proto=resource_variable_ops._from_proto_fn,
    )


def create_or_get_var(var_name):
    """Return the loop variable of a name in the default graph, created if missing."""
    collection = _COLLECTION.format(var_name)
    found = tf1.get_collection(collection)
    if len(found) > 1:
        raise RuntimeError("there are {} variables for {}".format(len(found), var_name))
    if found:
        return found[0]
    with tf1.variable_scope("npu_runconfig", reuse=tf1.AUTO_REUSE):
        return tf1.get_variable(
            var_name,
            shape=[],
            dtype=tf1.int64,
            initializer=tf1.zeros_initializer(),
            trainable=False,
            collections=[collection, tf1.GraphKeys.LOCAL_VARIABLES],
            use_resource=True,
        )


def _iteration_op(train_op):
    if not isinstance(train_op, ops.Operation):
        raise ValueError(
            "train_op must be an Operation, got {}; use minimize(...) or tf1.group(...), not a "
            "tensor".format(type(train_op).__name__)
        )
    operation = tf1.group(train_op, name="IterationOp")
    warn_unless_iteration_op(operation)
    return operation


def _load(variables, sess, iterations_per_loop):
    check_positive_integer(iterations_per_loop, "iterations_per_loop")
    values = (iterations_per_loop - 1, 0, 0, 1)
    for variable, value in zip(variables, values):
        variable.load(value, session=sess)
    run_several_steps(sess, iterations_per_loop)


def set_iteration_per_loop(sess, train_op, iterations_per_loop=1):
    """Return an operation that runs several steps in one `sess.run`."""
    if not isinstance(train_op, ops.Operation):
        return _iteration_op(train_op)
    check_positive_integer(iterations_per_loop, "iterations_per_loop")
    if iterations_per_loop == 1:
        return train_op
    variables = [create_or_get_var(name) for name in _LOOP_VARIABLES]
    _load(variables, sess, iterations_per_loop)
    return _iteration_op(train_op)


class IterationPerLoop:
    """Like `set_iteration_per_loop`, in two parts for graphs that are frozen in between."""

    def __init__(self):
        self._variables = None

    def create_iteration_per_loop_var(self, train_op):
        """Return the operation; to be called before the graph is frozen."""
        operation = _iteration_op(train_op)
        self._variables = [create_or_get_var(name) for name in _LOOP_VARIABLES]
        return operation

    def load_iteration_per_loop_var(self, sess, iterations_per_loop=1):
        """Set the number of steps that it runs in this session."""
        check_not_none(self._variables, "create_iteration_per_loop_var's result")
        _load(self._variables, sess, iterations_per_loop)


def get_ranksize():
    """Return the number of ranks as a string."""
    return rank_size_text()


def variable_initializer_in_host(var_list):
    """Return the initializer of variables, on the host."""
    return tf1.initializers.variables(var_list, name="var_in_host")


class GradDivisionItem:
    """A gradient with its variable, its bytes, and the rank that applies it."""

    def __init__(self, grad, var):
        self.grad = grad
        self.var = var
        elements = grad.shape.num_elements() if len(grad.shape) else 0
        self.size = elements * grad.dtype.size
        self.root_rank_id = -1


def fair_division(inputs, number):
    """Assign consecutive gradients of about the same total size to each of `number` ranks."""
    if not 0 <= number <= len(inputs):
        raise ValueError(
            "{} gradients cannot be distributed over {} ranks".format(len(inputs), number)
        )
    total = sum(item.size for item in inputs) or 1
    rank, done = 0, 0
    for index, item in enumerate(inputs):
        item.root_rank_id = rank
        done += item.size
        ranks_left = number - rank - 1
        is_full = done * number >= total * (rank + 1)
        if ranks_left and (is_full or len(inputs) - index - 1 == ranks_left):
            rank += 1
    return inputs


def add_grads_and_vars(grads_and_vars, rank_size):
    """Distribute gradients over the ranks."""
    items = [GradDivisionItem(grad, var) for grad, var in grads_and_vars if grad is not None]
    _GRADIENT_ITEMS[:] = fair_division(items, rank_size)


def get_gid_by_grad(grad):
    """Return the rank of a gradient, or -1."""
    return _rank_of(grad.name, lambda item: item.grad)


def get_gid_by_weight(weight):
    """Return the rank of a variable, or -1."""
    return _rank_of(weight.name, lambda item: item.var)


def _rank_of(name, part):
    return next((item.root_rank_id for item in _GRADIENT_ITEMS if part(item).name == name), -1)


def get_all_grad_item():
    """Return all distributed gradients."""
    return _GRADIENT_ITEMS


def set_graph_exec_config(
    fetch,
    dynamic_input=False,
    dynamic_graph_execute_mode="dynamic_execute",
    dynamic_inputs_shape_range=None,
    is_train_graph=False,
    experimental_config=None,
):
    """Attach graph options to a fetch, and return the fetch."""
    allowed = OPTIONS["dynamic_graph_execute_mode"]["allowed"]
    if dynamic_graph_execute_mode not in allowed:
        raise ValueError("dynamic_graph_execute_mode must be one of {}".format(", ".join(allowed)))
    marks = {
        "_graph_dynamic_input": attr_value_pb2.AttrValue(b=dynamic_input),
        "_graph_dynamic_graph_execute_mode": _text(dynamic_graph_execute_mode),
        "_graph_dynamic_inputs_shape_range": _text(dynamic_inputs_shape_range or ""),
        "_is_train_graph": attr_value_pb2.AttrValue(b=is_train_graph),
    }
    recompute = _recompute(experimental_config)
    if recompute is not None:
        marks["_recompute_mode"] = _text(recompute)
    record("graph options", names=sorted(marks), dynamic_input=dynamic_input)
    return _mark_fetch(fetch, marks)


def _recompute(experimental_config):
    if experimental_config is None:
        return None
    if not isinstance(experimental_config, ExperimentalConfig):
        raise ValueError("experimental_config must be an ExperimentalConfig")
    memory = experimental_config._graph_memory_optimize_config
    return None if memory is None else memory._recompute


def _mark_fetch(fetch, marks):
    if isinstance(fetch, str):
        fetch = ops.get_default_graph().get_tensor_by_name(fetch)
    if isinstance(fetch, (tuple, list)):
        for part in fetch:
            _mark_fetch(part, marks)
    elif isinstance(fetch, (ops.Operation, ops.Tensor)):
        for name, value in marks.items():
            _operation(fetch)._set_attr(name, value)
    else:
        raise ValueError("fetch must be operations, tensors or names of tensors")
    return fetch


def _operation(fetch):
    return fetch if isinstance(fetch, ops.Operation) else fetch.op


def _text(value):
    return attr_value_pb2.AttrValue(s=compat.as_bytes(value))


def npu_compile(sess, *fetches):
    """Run the fetches once, so that the graph is compiled."""
    sess.run(fetches)


def global_dict_init():
    """Create the dictionary for `set_value` and `get_value`."""
    _GLOBAL_DICT[:] = [{}]


def _global_dict():
    if not _GLOBAL_DICT:
        raise NameError(
            "npu_bridge stand-in: name '_global_dict' is not defined, as in the real npu_bridge "
            "before init_resource(); call that first"
        )
    return _GLOBAL_DICT[0]


def set_value(key, value):
    """Store a value for `get_value`."""
    _global_dict()[key] = value


def get_value(key, def_value=None):
    """Return a value stored by `set_value`."""
    return _global_dict().get(key, def_value)


def keep_tensors_dtypes(graph, input_tensors):
    """Keep the types of these tensors, given by name, in mixed precision."""
    if not isinstance(graph, ops.Graph):
        raise ValueError("graph must be a Graph")
    if not isinstance(input_tensors, (tuple, list)):
        raise ValueError("input_tensors must be a list or tuple of names")
    for name in input_tensors:
        keep = attr_value_pb2.AttrValue(i=1)
        graph.get_tensor_by_name(name).op._set_attr("_keep_dtype", keep)


def set_op_tensor_max_range(tensor, max_shape):
    """Declare the largest shape of a tensor."""
    _operation(tensor)._set_attr("_op_max_shape", _text(max_shape))


def set_op_input_tensor_multi_dims(tensor, input_shape, input_dims):
    """Declare the possible shapes of an operation's inputs."""
    _operation(tensor)._set_attr("_subgraph_multi_dims_input_shape", _text(input_shape))
    _operation(tensor)._set_attr("_subgraph_multi_dims_input_dims", _text(input_dims))


def set_op_tensor_max_size(tensor, max_size):
    """Declare the maximum size of a tensor in bytes."""
    _operation(tensor)._set_attr("_op_max_size", attr_value_pb2.AttrValue(i=max_size))
