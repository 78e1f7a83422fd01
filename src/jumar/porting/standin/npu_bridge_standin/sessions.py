"""Adds the adapter's defaults, option checks, and several steps per run to sessions."""

import functools
import inspect
import weakref

from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import ops

from npu_bridge_standin.option_checks import check_blocks
from npu_bridge_standin.record import ignored_option, record, refused_option, warn_once

OPTIMIZER_NAME = "NpuOptimizer"
ITERATION_OP_NAME = "IterationOp"
OFF = rewriter_config_pb2.RewriterConfig.OFF

_MARK = "_npu_bridge_standin_checked"
_STEPS_PER_RUN = weakref.WeakKeyDictionary()


def npu_blocks(config):
    """Return the `NpuOptimizer` blocks of a session's configuration."""
    optimizers = config.graph_options.rewrite_options.custom_optimizers
    return [block for block in optimizers if block.name == OPTIMIZER_NAME]


def with_npu_defaults(config):
    """Configure for the NPU, in place: add the block, and turn off incompatible options."""
    rewrites = config.graph_options.rewrite_options
    if not npu_blocks(config):
        rewrites.custom_optimizers.add().name = OPTIMIZER_NAME
        rewrites.memory_optimization = OFF
    rewrites.remapping = OFF
    config.allow_soft_placement = True
    config.log_device_placement = False
    config.graph_options.optimizer_options.global_jit_level = config_pb2.OptimizerOptions.OFF
    return config


def npu_session_init(init):
    """Wrap a session's `__init__` so that it first configures the session for the NPU."""
    parameters = [name for name in inspect.signature(init).parameters if name != "self"]
    position = parameters.index("config")

    @functools.wraps(init)
    def wrapped(self, *args, **kwargs):
        config = kwargs.get("config")
        if config is None:
            # As in the real adapter, a positional None does not count as a missing argument.
            config = args[position] if len(args) > position else config_pb2.ConfigProto()
            args = args[:position] + args[position + 1 :]
        if not isinstance(config, config_pb2.ConfigProto):
            raise AttributeError(
                "npu_bridge stand-in: the session's config is {!r}; the real npu_bridge fails "
                "here too. Omit it or pass a ConfigProto".format(config)
            )
        kwargs["config"] = with_npu_defaults(config)
        return init(self, *args, **kwargs)

    return wrapped


def check_every_session():
    """Make every new session check its blocks."""
    init = session_lib.BaseSession.__init__
    if getattr(init, _MARK, False):
        return

    @functools.wraps(init)
    def checked(self, target="", graph=None, config=None):
        # The destructor reads it; without it, the error of the destructor would hide ours.
        self._session = None
        if isinstance(config, config_pb2.ConfigProto):
            check_config(config)
        else:
            record("session", npu=False)
        init(self, target, graph, config)

    setattr(checked, _MARK, True)
    session_lib.BaseSession.__init__ = checked


def check_config(config):
    """Record a session's options, report ignored ones, and stop at the first refused one."""
    blocks = [_plain_block(block) for block in npu_blocks(config)]
    rewrites = config.graph_options.rewrite_options
    settings = {
        "remapping": _remapping(rewrites),
        "memory_optimization": _memory_optimization(rewrites),
    }
    record(
        "session",
        npu=bool(blocks),
        options=[{key: value for key, (_, value) in block.items()} for block in blocks],
        allow_soft_placement=config.allow_soft_placement,
        **settings,
    )
    if not blocks:
        return
    problems = check_blocks(blocks)
    for problem in problems:
        if not problem.refused:
            ignored_option(problem.key, problem.value, problem.text)
    for key, value in settings.items():
        if value != "OFF":
            text = "{} is {}: set rewrite_options.{} = RewriterConfig.OFF next to the block".format(
                key, value, key
            )
            ignored_option(key, value, text)
    for problem in problems:
        if problem.refused:
            refused_option(problem.key, problem.value, problem.text)


def _plain_block(block):
    plain = {}
    for key, value in block.parameter_map.items():
        field = value.WhichOneof("value")
        content = None if field is None else getattr(value, field)
        if isinstance(content, bytes):
            content = content.decode("utf-8", "backslashreplace")
        elif field not in (None, "b", "i", "s", "f"):
            content = str(content)
        plain[key] = (field, content)
    return plain


def _remapping(rewrites):
    if rewrites.optimizers and "remap" not in rewrites.optimizers:
        return "OFF"
    return rewriter_config_pb2.RewriterConfig.Toggle.Name(rewrites.remapping)


def _memory_optimization(rewrites):
    # OFF belongs to another enumeration; scripts assign it nevertheless, and since its number means
    # MANUAL here, it switches the optimizer off as well.
    kinds = rewriter_config_pb2.RewriterConfig
    listed = not rewrites.optimizers or "memory" in rewrites.optimizers
    if not listed or rewrites.memory_optimization in (kinds.NO_MEM_OPT, kinds.MANUAL):
        return "OFF"
    return kinds.MemOptType.Name(rewrites.memory_optimization)


def run_several_steps(session, steps):
    """Run `steps` steps whenever the session runs the operation `IterationOp`.

    Like the device, this loops over the whole graph of such a run: everything that is fetched is
    computed in each step, and the values of the last step are returned.
    """
    session = getattr(session, "_tf_sess", lambda: session)()
    _loop_in_run()
    _STEPS_PER_RUN[session] = steps
    record("session", iterations_per_loop=steps)
    blocks = npu_blocks(getattr(session, "_config", None) or config_pb2.ConfigProto())
    values = [block.parameter_map["iterations_per_loop"].i for block in blocks]
    if steps > 1 and steps not in values:
        text = "{} steps per run, but no NpuOptimizer block has iterations_per_loop = {}".format(
            steps, steps
        )
        ignored_option("iterations_per_loop", steps, text)


def warn_unless_iteration_op(operation):
    """Warn if the operation will not loop, since the adapter looks for this exact name."""
    if operation.name != ITERATION_OP_NAME:
        warn_once(
            "the operation is called {}, but only {} is run several times: create it once and "
            "outside of name scopes".format(operation.name, ITERATION_OP_NAME)
        )


def _loop_in_run():
    run = session_lib.BaseSession.run
    if getattr(run, _MARK, False):
        return

    @functools.wraps(run)
    def looping(self, fetches, feed_dict=None, options=None, run_metadata=None):
        steps = _STEPS_PER_RUN.get(self, 1)
        if steps > 1 and _needs_iteration_op(self.graph, fetches):
            for _ in range(steps - 1):
                run(self, fetches, feed_dict, options, run_metadata)
        return run(self, fetches, feed_dict, options, run_metadata)

    setattr(looping, _MARK, True)
    session_lib.BaseSession.run = looping


def _needs_iteration_op(graph, fetches):
    """Return whether a fetch is the operation `IterationOp` or depends on it."""
    try:
        pending = [graph.get_operation_by_name(ITERATION_OP_NAME)]
    except KeyError:
        return False
    fetched_names = set(_names(graph, fetches))
    # Forwards, because very few operations depend on a training step.
    seen = set()
    while pending:
        operation = pending.pop()
        if operation.name in fetched_names:
            return True
        if operation.name not in seen:
            seen.add(operation.name)
            pending += operation._control_outputs
            for tensor in operation.outputs:
                pending += tensor.consumers()
    return False


def _names(graph, fetches):
    if isinstance(fetches, dict):
        fetches = list(fetches.values())
    if isinstance(fetches, (list, tuple)):
        for fetch in fetches:
            yield from _names(graph, fetch)
        return
    try:
        element = graph.as_graph_element(fetches)
    except (KeyError, TypeError, ValueError):
        # Not an element of this graph; `run` itself reports the error.
        return
    yield element.name if isinstance(element, ops.Operation) else element.op.name
