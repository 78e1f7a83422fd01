"""What the stand-in does to sessions: the adapter's defaults, the checks, several steps a run."""

import functools
import inspect
import weakref

from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import ops

from npu_bridge_standin.option_checks import check_blocks
from npu_bridge_standin.record import ignored_option, record, refused_option, say

OPTIMIZER_NAME = "NpuOptimizer"
ITERATION_OP_NAME = "IterationOp"
OFF = rewriter_config_pb2.RewriterConfig.OFF

_MARK = "_npu_bridge_standin_checked"
_STEPS_PER_RUN = weakref.WeakKeyDictionary()


def npu_blocks(config):
    """The `NpuOptimizer` blocks of a session's configuration."""
    optimizers = config.graph_options.rewrite_options.custom_optimizers
    return [one for one in optimizers if one.name == OPTIMIZER_NAME]


def with_npu_defaults(config):
    """Make a configuration, in place, one for the NPU: the block and what has to be off."""
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
    """A session's `__init__` that makes its configuration one for the NPU first."""
    parameters = [name for name in inspect.signature(init).parameters if name != "self"]
    place = parameters.index("config")

    @functools.wraps(init)
    def wrapped(self, *args, **kwargs):
        config = kwargs.get("config")
        if config is None:
            # Like the real one: None in third place is not taken for a missing argument.
            config = args[place] if len(args) > place else config_pb2.ConfigProto()
            args = args[:place] + args[place + 1 :]
        if not isinstance(config, config_pb2.ConfigProto):
            raise AttributeError(
                "npu_bridge stand-in: the session's config is {!r}; the real npu_bridge fails "
                "here too. Omit it or give a ConfigProto".format(config)
            )
        kwargs["config"] = with_npu_defaults(config)
        return init(self, *args, **kwargs)

    return wrapped


def check_every_session():
    """From now on, check each session's blocks when it is created."""
    init = session_lib.BaseSession.__init__
    if getattr(init, _MARK, False):
        return

    @functools.wraps(init)
    def checked(self, target="", graph=None, config=None):
        # The destructor asks for it; without, its own error is the last line of a refusal.
        self._session = None
        if isinstance(config, config_pb2.ConfigProto):
            check_config(config)
        else:
            record("session", npu=False)
        init(self, target, graph, config)

    setattr(checked, _MARK, True)
    session_lib.BaseSession.__init__ = checked


def check_config(config):
    """Record a session's options, say which are ignored, and stop at the first refused one."""
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
            text = "{} is {}: set rewrite_options.{} = RewriterConfig.OFF beside the block".format(
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
    # OFF is a number of another enumeration; scripts assign it all the same, and as this one's
    # MANUAL it switches the optimizer off too.
    kinds = rewriter_config_pb2.RewriterConfig
    listed = not rewrites.optimizers or "memory" in rewrites.optimizers
    if not listed or rewrites.memory_optimization in (kinds.NO_MEM_OPT, kinds.MANUAL):
        return "OFF"
    return kinds.MemOptType.Name(rewrites.memory_optimization)


def run_several_steps(session, steps):
    """From now on, run `steps` steps where the session runs the operation `IterationOp`.

    The device loops over the whole graph of such a run, so everything that is fetched is computed
    in each step and the values of the last one come back; so it is here.
    """
    session = getattr(session, "_tf_sess", lambda: session)()
    _loop_in_run()
    _STEPS_PER_RUN[session] = steps
    record("session", iterations_per_loop=steps)
    blocks = npu_blocks(getattr(session, "_config", None) or config_pb2.ConfigProto())
    written = [block.parameter_map["iterations_per_loop"].i for block in blocks]
    if steps > 1 and steps not in written:
        text = "{} steps a run, but no NpuOptimizer block has iterations_per_loop = {}".format(
            steps, steps
        )
        ignored_option("iterations_per_loop", steps, text)


def say_if_not_iteration_op(operation):
    """The adapter looks for one operation of this exact name, so a second one does not loop."""
    if operation.name != ITERATION_OP_NAME:
        say(
            "the operation is called {}, and only {} is run several times: create it once and "
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
    """Whether what is fetched is the operation `IterationOp` or waits for it."""
    try:
        pending = [graph.get_operation_by_name(ITERATION_OP_NAME)]
    except KeyError:
        return False
    wanted = set(_names(graph, fetches))
    # Forwards, because next to nothing waits for a training step.
    seen = set()
    while pending:
        operation = pending.pop()
        if operation.name in wanted:
            return True
        if operation.name not in seen:
            seen.add(operation.name)
            pending += operation._control_outputs
            pending += [one for tensor in operation.outputs for one in tensor.consumers()]
    return False


def _names(graph, fetches):
    if isinstance(fetches, dict):
        fetches = list(fetches.values())
    if isinstance(fetches, (list, tuple)):
        for one in fetches:
            yield from _names(graph, one)
        return
    try:
        element = graph.as_graph_element(fetches)
    except (KeyError, TypeError, ValueError):
        # What is no operation of this graph; `run` itself says what is wrong with it.
        return
    yield element.name if isinstance(element, ops.Operation) else element.op.name
