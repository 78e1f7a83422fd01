"""Runs data sets one element, and loops one iteration, at a time.

A random op inside a mapped function or a loop has one generator. Parallel calls and iterations draw
from it in any order, so two runs of the same script would see different images or dropout masks: of
seven runs of a translation network, two differed.
"""

import functools
import inspect

from tensorflow.python.framework import constant_op, dtypes, ops
from tensorflow.python.ops import control_flow_ops, gen_dataset_ops, gen_experimental_dataset_ops

_NAME = "num_parallel_calls"


def install():
    """Make data sets process one element, and loops one iteration, at a time."""
    loop = control_flow_ops.WhileContext
    for name in ("_init_from_args", "_init_from_proto"):
        setattr(loop, name, _one_iteration_at_a_time(getattr(loop, name)))
    for module in (gen_dataset_ops, gen_experimental_dataset_ops):
        for name, function in list(vars(module).items()):
            if inspect.isfunction(function) and _NAME in inspect.signature(function).parameters:
                setattr(module, name, _sequential(function))


def _sequential(original):
    signature = inspect.signature(original)

    @functools.wraps(original)
    def make(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        parallelism = bound.arguments[_NAME]
        dtype = parallelism.dtype if isinstance(parallelism, ops.Tensor) else dtypes.int64
        bound.arguments[_NAME] = constant_op.constant(1, dtype=dtype)
        return original(*bound.args, **bound.kwargs)

    return make


def _one_iteration_at_a_time(original):
    @functools.wraps(original)
    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self._parallel_iterations = 1

    return init
