"""Determines which session calls train, and which tensors are their losses."""

import threading
import weakref

from tensorflow.python.framework import ops
from tensorflow.python.ops import gradients_util
from tensorflow.python.training import optimizer as optimizer_v1

_WRITES = ("Assign", "Apply", "SparseApply", "ResourceApply", "ResourceSparseApply", "Scatter")
_WRITES += ("ResourceScatter",)
_APPLIES = ("Apply", "SparseApply", "ResourceApply", "ResourceSparseApply")


class Gradients:
    """A call that computed gradients: the losses, and the ops that produce the gradients."""

    def __init__(self, losses, gradient_ops, by_optimizer):
        self.losses = losses
        self.ops = gradient_ops
        self.by_optimizer = by_optimizer


class Step:
    """A session call that trains, with its losses."""

    def __init__(self, losses):
        self.losses = losses


class Watch:
    """Follows gradients and updates while graphs are built."""

    def __init__(self, events):
        self._events = events
        self._gradients = weakref.WeakKeyDictionary()
        self._updates = weakref.WeakKeyDictionary()
        self._steps = weakref.WeakKeyDictionary()
        self._local = threading.local()

    def install(self):
        self._wrap_gradients()
        from tensorflow.python.keras.optimizer_v2 import optimizer_v2

        for base in (optimizer_v1.Optimizer, optimizer_v2.OptimizerV2):
            self._wrap_with_subclasses(base)
            self._wrap_future_subclasses(base)

    def _wrap_gradients(self):
        original = gradients_util._GradientsHelper

        def gradients(ys, xs, *args, **kwargs):
            result = original(ys, xs, *args, **kwargs)
            self._note_gradients(ys, xs, result)
            return result

        gradients_util._GradientsHelper = gradients

    def _note_gradients(self, ys, xs, gradients):
        losses = [loss for loss in self._stack("losses") if isinstance(loss, ops.Tensor)]
        flat_xs = xs if isinstance(xs, (list, tuple)) else [xs]
        of_variables = any(hasattr(x, "initializer") for x in flat_xs)
        if not losses and not of_variables:
            return  # a gradient penalty: the gradient of an input, as a part of the loss
        flat_ys = ys if isinstance(ys, (list, tuple)) else [ys]
        tensors = losses[:1] or [y for y in flat_ys if isinstance(y, ops.Tensor)]
        gradient_ops = {_op(gradient) for gradient in gradients if gradient is not None}
        note = Gradients(tensors, gradient_ops, bool(losses))
        graph = ops.get_default_graph()
        self._gradients.setdefault(graph, []).append(note)

    def _stack(self, name):
        if not hasattr(self._local, name):
            setattr(self._local, name, [])
        return getattr(self._local, name)

    def _wrap_with_subclasses(self, cls):
        self._wrap(cls)
        for subclass in cls.__subclasses__():
            self._wrap_with_subclasses(subclass)

    def _wrap_future_subclasses(self, base):
        """Wrap optimizers that the script defines when their class is created."""
        watch = self

        def init_subclass(cls, **kwargs):
            super(base, cls).__init_subclass__(**kwargs)
            watch._wrap(cls)

        base.__init_subclass__ = classmethod(init_subclass)

    def _wrap(self, cls):
        for name in ("compute_gradients", "get_gradients"):
            original = cls.__dict__.get(name)
            if original is not None and not hasattr(original, "jumar_original"):
                setattr(cls, name, self._computing(original))
        original = cls.__dict__.get("apply_gradients")
        if original is not None and not hasattr(original, "jumar_original"):
            cls.apply_gradients = self._applying(original)

    def _computing(self, original):
        def compute_gradients(optimizer, *args, **kwargs):
            stack = self._stack("losses")
            stack.append(args[0] if args else kwargs.get("loss"))
            try:
                return original(optimizer, *args, **kwargs)
            finally:
                stack.pop()

        return _named(compute_gradients, original)

    def _applying(self, original):
        def apply_gradients(optimizer, *args, **kwargs):
            stack = self._stack("applying")
            if stack:
                return original(optimizer, *args, **kwargs)
            pairs = list(args[0] if args else kwargs.pop("grads_and_vars"))
            graph = ops.get_default_graph()
            first = {_op(gradient) for gradient, _ in pairs if gradient is not None}
            losses = self._losses_among(graph, _with_ancestors(first))
            stack.append(optimizer)
            try:
                # Without this, a loss that reads a variable (weight decay) may see it before or
                # after the update, depending on ops that a port adds elsewhere.
                with ops.control_dependencies([loss.op for loss in losses]):
                    update = original(optimizer, pairs, *args[1:], **kwargs)
            finally:
                stack.pop()
            self._note_update(graph, update)
            return update

        return _named(apply_gradients, original)

    def _note_update(self, graph, update):
        if isinstance(update, (ops.Operation, ops.Tensor)):
            self._updates.setdefault(graph, set()).add(_op(update))
        self._events.write(
            "graph",
            ops=len(graph.get_operations()),
            variables=len(graph.get_collection(ops.GraphKeys.GLOBAL_VARIABLES)),
        )

    def step(self, graph, elements):
        """Return the step of a call that fetches these elements; None if it does not train."""
        notes = self._gradients.get(graph, ())
        updates = self._updates.get(graph, set())
        if not notes and not updates:
            return None
        key = (frozenset(elements), len(notes), len(updates))
        steps = self._steps.setdefault(graph, {})
        if key not in steps:
            steps[key] = self._find_step(graph, _with_ancestors(elements))
        return steps[key]

    def _find_step(self, graph, ancestors):
        updates = self._updates.get(graph, set())
        reached = _reached(self._gradient_ops(graph) & ancestors, ancestors)
        trains = bool(updates & ancestors) or any(_is_update(op) for op in ancestors & reached)
        trains = trains or any(op.type.startswith(_APPLIES) for op in ancestors)
        return Step(self._losses_among(graph, ancestors)) if trains else None

    def _gradient_ops(self, graph):
        return {op for note in self._gradients.get(graph, ()) for op in note.ops}

    def _losses_among(self, graph, ancestors):
        notes = [note for note in self._gradients.get(graph, ()) if note.ops & ancestors]
        notes = [note for note in notes if note.by_optimizer] or notes
        losses = []
        for loss in (loss for note in notes for loss in note.losses):
            if loss.graph is graph and graph.is_fetchable(loss) and loss not in losses:
                losses.append(loss)
        return losses


def _named(wrapper, original):
    wrapper.__name__ = getattr(original, "__name__", wrapper.__name__)
    wrapper.__doc__ = original.__doc__
    wrapper.jumar_original = original
    return wrapper


def _op(element):
    if isinstance(element, ops.Operation):
        return element
    if isinstance(element, ops.IndexedSlices):
        return element.values.op
    return element.op


def _with_ancestors(elements):
    """Return the ops of these elements and every op that has to run before them."""
    waiting = [_op(element) for element in elements]
    visited = set(waiting)
    while waiting:
        op = waiting.pop()
        for source in [tensor.op for tensor in op.inputs] + op.control_inputs:
            if source not in visited:
                visited.add(source)
                waiting.append(source)
    return visited


def _reached(sources, within):
    """Return the sources and every op of `within` that their values flow into."""
    waiting = list(sources)
    visited = set(waiting)
    while waiting:
        for tensor in waiting.pop().outputs:
            for consumer in tensor.consumers():
                if consumer in within and consumer not in visited:
                    visited.add(consumer)
                    waiting.append(consumer)
    return visited


def _is_update(op):
    return op.type.startswith(_WRITES)
