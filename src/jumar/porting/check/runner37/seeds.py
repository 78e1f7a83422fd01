"""Makes seeds independent of the number of operations in a graph.

TensorFlow 1.15 derives the seed of a random op from the number of ops created before it. A port
adds ops, so every later initialiser and mask would differ, and no losses could be compared. Here,
the seed of an initialiser is derived from its variable's name, the seed of a dropout mask from the
number of masks before it, and every other seed from the kind and number of the op.
"""

import hashlib
import os
import sys
import weakref

_MAX_FRAMES = 12


def install(seed):
    """Seed every TensorFlow op that the script does not seed."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops, random_seed

    original = random_seed.get_seed
    counts_by_graph = weakref.WeakKeyDictionary()

    def get_seed(op_seed):
        if op_seed is not None or context.executing_eagerly():
            return original(op_seed)
        graph = ops.get_default_graph()
        counts = counts_by_graph.setdefault(_outermost(graph), {})
        key = _key(graph.get_name_scope(), sys._getframe(1))
        counts[key] = counts.get(key, 0) + 1
        base = seed if graph.seed is None else graph.seed
        return _number(str(base)), _number("{} {} {}".format(base, key, counts[key]))

    random_seed.get_seed = get_seed
    _seed_boxes(get_seed)


def _seed_boxes(get_seed):
    """Seed `sample_distorted_bounding_box`, the only op that does not call `get_seed`."""
    from tensorflow.python.ops import gen_image_ops

    original = gen_image_ops.sample_distorted_bounding_box_v2

    def sample_distorted_bounding_box(*args, **kwargs):
        if not kwargs.get("seed") and not kwargs.get("seed2"):
            kwargs["seed"], kwargs["seed2"] = get_seed(None)
        return original(*args, **kwargs)

    gen_image_ops.sample_distorted_bounding_box_v2 = sample_distorted_bounding_box


def seed_numpy(seed):
    """Seed numpy's global generator."""
    import numpy

    numpy.random.seed(seed)


def _number(text):
    """Hash a text to a positive 31-bit number; TensorFlow takes 0 for "no seed"."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:7], 16) + 1


def _outermost(graph):
    """Return the outermost graph, so that numbering continues inside tf.data's functions."""
    while True:
        outer = getattr(graph, "outer_graph", None) or getattr(graph, "_outer_graph", None)
        if outer is None or outer is graph:
            return graph
        graph = outer


def _key(scope, frame):
    before, separator, _ = scope.rpartition("/Initializer")
    if separator:
        return "variable " + before
    return _kind(frame)


def _kind(frame):
    """Return the kind of draw: `dropout`, a data set's class, or the TensorFlow function."""
    first = None
    for _ in range(_MAX_FRAMES):
        if frame is None:
            break
        name, path = frame.f_code.co_name, frame.f_code.co_filename
        if name.startswith("dropout") and _draws_masks(path):
            return "dropout"
        if first is None and os.path.basename(path) != "random_seed.py":
            instance = frame.f_locals.get("self")
            first = type(instance).__name__ if instance is not None else name
        frame = frame.f_back
    return first or "random"


def _draws_masks(path):
    return os.path.basename(path) == "nn_ops.py" or "npu_bridge" in path.split(os.sep)
