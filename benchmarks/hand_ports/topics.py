"""Which changes of people belong to the port, and which rules of ours answer them.

A person who ports a script also moves data, prints more and trains for fewer steps. A change
belongs to the port if its words do, in what was added or in what was removed.
"""

import re
from dataclasses import dataclass

from hand_ports.changes import HandChange


@dataclass(frozen=True, kw_only=True)
class Topic:
    """One thing that people do when they port.

    Args:
        name: In the table.
        added: Matches a word that the person added; with `removed` too, both have to match.
        removed: Matches a word that the person removed.
        statement: Matches one of the statements of the original that were changed.
        both: Whether `added` and `removed` both have to match.
        once: Whether one answer is for all places of a file: an import that is reported.
        rules: Ids of rules that answer it; a `*` at the end stands for any end.
    """

    name: str
    rules: tuple[str, ...]
    added: str = ""
    removed: str = ""
    statement: str = ""
    both: bool = False
    once: bool = False

    def concerns(self, change: HandChange) -> bool:
        """Whether a change is about it."""
        if self.statement and not re.search(self.statement, "\n".join(change.before)):
            return False
        hits = [
            bool(re.search(pattern, words, re.MULTILINE))
            for pattern, words in ((self.added, change.added), (self.removed, change.removed))
            if pattern
        ]
        return all(hits) if self.both else any(hits)

    def answered_by(self, rule: str) -> bool:
        """Whether a rule's edits, findings and decisions are about it."""
        return any(
            rule.startswith(name[:-1]) if name.endswith("*") else rule == name
            for name in self.rules
        )


_SESSION_RULES = (
    "session-config*",
    "npu-optimizer-block",
    "host-sessions",
    "keras-session",
    "keras-clear-session",
    "run-config*",
    "npu-run-config-options",
    "estimator*",
    "tpu-*",
    "canned-estimators",
    "npu-options",
    "graph-rewrites",
)
_QUEUES = (
    r"shuffle_batch|string_input_producer|slice_input_producer|train\.batch\b|\w+Reader\b"
    r"|QueueRunner|start_queue_runners|Coordinator|input_producer|\w*FIFOQueue|RandomShuffleQueue"
)

TOPICS = (
    Topic(
        name="session",
        added=r"NpuOptimizer|npu_config_proto|use_off_line|init_resource|npu_graph_options"
        r"|npu_optimizer_options|custom_optimizers",
        rules=_SESSION_RULES,
    ),
    Topic(
        name="Keras session",
        added=r"set_keras_session|npu_clear_session|set_session|close_session|npu_keras_optimizer"
        r"|model_to_npu_estimator",
        rules=(
            "keras-session",
            "keras-clear-session",
            "keras-estimator",
            "keras-distributed",
            "session-config",
            "npu-options",
        ),
        once=True,
    ),
    Topic(
        name="estimator",
        added=r"NPUEstimator|NPURunConfig|npu_run_config_init",
        rules=("estimator*", "run-config*", "npu-*", "tpu-*", "canned-estimators"),
    ),
    Topic(
        name="precision mode",
        added=r"precision_mode|mixlist",
        rules=(*_SESSION_RULES, "keras-distributed"),
    ),
    Topic(
        name="loss scale",
        added=r"LossScale",
        removed=r"LossScale|loss_scale_manager",
        rules=("loss-scale*", "gradients-through-optimizer", "control-flow", "clipped-norms"),
    ),
    Topic(
        name="GPU settings",
        removed=r"CUDA_|gpu_options|allow_growth|per_process_gpu|visible_device_list|GPUOptions"
        r"|tf\.device\b|\bgpu:|device_count|is_gpu_available|list_local_devices|multi_gpu_model"
        r"|nvidia",
        rules=(
            "gpu-*",
            "cuda-visible-devices",
            "device-placement",
            "keras-multi-gpu",
            "parameter-servers",
            "distribution-strategy",
            "xla",
            "compiler-variables",
        ),
    ),
    Topic(
        name="dropout",
        added=r"npu_ops\.dropout|npu_convert_dropout",
        rules=("dropout",),
    ),
    Topic(
        name="batch size fixed",
        added=r"drop_remainder|batch_and_drop_remainder",
        statement=r"(?<!train)\.(?:padded_)?batch\(|map_and_batch\(",
        rules=("drop-remainder", "padded-shapes", "dataset-shard"),
    ),
    Topic(
        name="distribution",
        added=r"hccl|NPUDistributed|RANK_SIZE|RANK_ID|get_rank_|npu_hooks_append"
        r"|npu_callbacks_append|NPUBroadcast|npu_distributed|get_npu_rank|\.shard\b|NPUStrategy",
        removed=r"\bhvd\b|horovod|DistributedOptimizer|MirroredStrategy|SyncReplicas",
        rules=(
            "distrib*",
            "broadcast-hooks",
            "initial-broadcast",
            "dataset-shard",
            "horovod-*",
            "keras-distributed",
            "parameter-servers",
            "rank-checkpoints",
            "fed-data",
        ),
    ),
    Topic(
        name="input queues",
        removed=_QUEUES,
        once=True,
        rules=("queue-inputs", "unsupported-*", "dynamic-shapes"),
    ),
    Topic(
        name="Python operators",
        added=r"npu_dynamic|DynamicRNN|DynamicGRU|npu_aicore|npu_unary|npu_rnn",
        removed=r"py_func|numpy_function|py_function|load_op_library|dynamic_rnn|\bgelu\b"
        r"|while_loop|is_nan|is_finite|is_inf|CudnnLSTM|CudnnGRU|cudnn",
        rules=(
            "py-func",
            "custom-operators",
            "dynamic-rnn",
            "gelu",
            "finite-check",
            "unsupported-*",
            "cudnn*",
            "control-flow",
        ),
    ),
    Topic(
        name="XLA",
        removed=r"jit_scope|global_jit_level|xla|XLA",
        rules=("xla", "graph-rewrites", "compiler-variables"),
    ),
    Topic(
        name="tf.keras for keras",
        added=r"tensorflow\.(?:python\.)?keras|^tf\.keras",
        removed=r"^keras\b",
        both=True,
        rules=("keras-alone",),
        once=True,
    ),
    Topic(
        name="TensorFlow's releases",
        removed=r"^tf\.(?:mul|sub|neg|pack|unpack|concat_v2|initialize_all_variables"
        r"|initialize_local_variables|all_variables|batch_matmul"
        r"|(?:scalar|image|histogram|merge_all|merge)_summar\w+|train\.SummaryWriter"
        r"|nn\.seq2seq|select)(?:\b|_)",
        rules=("old-tensorflow", "sampled-losses", "unsupported-*", "contrib-*"),
    ),
    Topic(
        name="Python 2",
        removed=r"^(?:xrange|unicode|basestring|cPickle|urllib2|izip|StringIO|reload|cmp"
        r"|Queue|ConfigParser|long|unichr|execfile)\b|iteritems|itervalues|iterkeys|has_key"
        r"|\.next$",
        rules=("python2-*",),
    ),
    Topic(
        name="newer libraries",
        removed=r"scipy\.?misc|imresize|^imsave|^imread|toimage|bytescale|^np\.(?:int|float|"
        r"bool|object|str)$|cross_validation|grid_search|sklearn\.externals|^skimage\.measure|^cv\b",
        once=True,
        added=r"allow_pickle|'latin1'|^imageio|SafeLoader|FullLoader",
        rules=("old-libraries", "python2-*"),
    ),
)

_SHAPED = re.compile(r"\b(?:placeholder\w*|Input|set_shape|InputLayer|reshape)\(")


def topics_of(change: HandChange) -> list[Topic]:
    """The topics of a change; none if it does not belong to the port."""
    found = [topic for topic in TOPICS if topic.concerns(change)]
    if SHAPES.concerns(change) or _fixes_a_shape(change):
        found.append(SHAPES)
    if any("tf.summary" in text or "summary_op" in text for text in change.before) and not any(
        "summar" in text for text in change.after
    ):
        found.append(SUMMARIES)
    if _rounds_down(change) and PYTHON_2 not in found:
        found.append(PYTHON_2)
    if _moves(change) and GPU not in found:
        found.append(GPU)
    return found


SHAPES = Topic(
    name="fixed shapes",
    added=r"dynamic_input|dynamic_graph_execute_mode",
    once=True,
    rules=("dynamic-shapes", "padded-shapes", "drop-remainder"),
)
# What is reported where a script fetches its summaries is about all that it has.
SUMMARIES = Topic(name="summaries", once=True, rules=("summaries",))


PYTHON_2 = next(topic for topic in TOPICS if topic.name == "Python 2")
GPU = next(topic for topic in TOPICS if topic.name == "GPU settings")


def _rounds_down(change: HandChange) -> bool:
    """Whether a division of Python 2 became one that rounds down."""
    after = {text.replace(" // ", " / ") for text in change.after if " // " in text}
    return any(" / " in text and text.replace(" // ", " / ") in after for text in change.before)


def _moves(change: HandChange) -> bool:
    """Whether a part of the graph got another device, or none."""
    before = [text for text in change.before if "tf.device(" in text]
    return any(text not in change.after for text in before)


def _fixes_a_shape(change: HandChange) -> bool:
    """Whether a dimension that was None got a number."""
    before = [text for text in change.before if _SHAPED.search(text)]
    after = [text for text in change.after if _SHAPED.search(text)]
    return bool(before and after) and sum(text.count("None") for text in before) > sum(
        text.count("None") for text in after
    )
