"""With several devices, each rank reads its own part of the training data."""

import ast

from jumar.porting.rewriting import (
    Changes,
    Confidence,
    Leave,
    Remark,
    Replacement,
    Text,
    View,
    rule,
)
from jumar.porting.rewriting.editing import argument, literal
from jumar.porting.rules.tensorflow.conditions import is_mapped
from jumar.porting.rules.tensorflow.input_purpose import purpose_of
from jumar.porting.rules.tensorflow.ranks import RANK_IMPORTS, queries_rank, rank_id, rank_size

_REASON = Text(
    en="each rank reads every RANK_SIZE-th element, starting at its own index, before anything "
    "is shuffled; a single rank reads everything",
    zh="每个 rank 从自身编号起每隔 RANK_SIZE 取一个元素，在 shuffle 之前切分；单 rank 时读取全部",
)
_UNEVEN = Remark(
    en="shards can differ by one element, and the data is not repeated: a rank with one batch less "
    "finishes its epoch while the others wait for its gradients",
    zh="各切片可能相差一个元素，且此处没有 repeat：批数较少的 rank 先结束本轮，其他 rank "
    "会一直等待其梯度",
    todo_en="repeat the data set and count steps, or make the number of elements a multiple of "
    "ranks times batch size",
    todo_zh="对数据集 repeat 并按步数训练，或使样本数为 rank 数乘 batch size 的整数倍",
    severity="blocking",
)
_SAME_DATA = Remark(
    en="every rank reads the same elements here, so all devices train on the same data",
    zh="各 rank 在此读取相同的数据，多卡等于重复训练同样的数据",
    todo_en='if it feeds training, add .shard(int(os.getenv("RANK_SIZE", "1")), '
    'int(os.getenv("RANK_ID", "0"))) before shuffle and batch; files that are listed in random '
    "order have to be sorted first (list_files with shuffle=False)",
    todo_zh='若用于训练，在 shuffle 和 batch 之前加 .shard(int(os.getenv("RANK_SIZE", "1")), '
    'int(os.getenv("RANK_ID", "0")))；随机列出的文件需先排序（list_files 设 shuffle=False）',
    severity="accuracy",
)
_QUEUED = Remark(
    en="every rank fills its queue from all of the data, so each epoch processes the data once per "
    "rank",
    zh="各 rank 在此用全部数据填充队列：一个 epoch 会被重复 rank 数次",
    todo_en='pass it every RANK_SIZE-th file or sample, starting at int(os.getenv("RANK_ID", '
    '"0")), the same number on each rank, or rewrite the input with tf.data and .shard(...)',
    todo_zh='从 int(os.getenv("RANK_ID", "0")) 起每隔 RANK_SIZE 取一个文件或样本，各 rank '
    "数量相同；或用 tf.data 改写输入并加 .shard(...)",
    severity="accuracy",
)
_SHARDED = Text(en="the script shards its data itself", zh="脚本已自行切分数据")
_SURE = (
    "tensorflow.data.TFRecordDataset",
    "tensorflow.data.TextLineDataset",
    "tensorflow.data.FixedLengthRecordDataset",
    "tensorflow.data.Dataset.from_tensor_slices",
)
_RECORDS = _SURE[:3]
_PIPELINE = frozenset({"batch", "padded_batch", "shuffle", "repeat", "apply"})
_FURTHER_DOWN = Text(
    en="the records read from here are sharded further down",
    zh="由此得到的记录在后面已按 rank 划分",
)
_QUEUES = (
    "tensorflow.train.string_input_producer",
    "tensorflow.train.input_producer",
    "tensorflow.train.slice_input_producer",
    "tensorflow.train.range_input_producer",
    "tensorflow.contrib.slim.dataset_data_provider.DatasetDataProvider",
)
_RANDOM = ("tensorflow.data.Dataset.list_files", "tensorflow.data.Dataset.from_generator")


@rule(
    "dataset-shard",
    title=Text(en="Each rank reads its part of the data", zh="每个 rank 读取各自的数据"),
    source="TensorFlow 1.15 migration guide of CANN; defect of convert_tf2npu that rewrites any "
    "method named shard",
    calls=(*_SURE, *_RANDOM, *_QUEUES),
)
def dataset_shard(call: ast.Call, view: View) -> Changes:
    """Shard training input; report input whose purpose is unclear."""
    if not view.options.distributed or is_mapped(call, view):
        return
    if _shards(view):
        yield Leave(node=call, reason=_SHARDED)
        return
    use = purpose_of(call, view)
    if use.purpose == "other":
        return
    confidence: Confidence = "unsure" if use.purpose == "unknown" else "likely"
    if view.module.name_of(call.func) in _QUEUES:
        if queries_rank(view):
            yield Leave(node=call, reason=_SHARDED)
            return
        yield view.notice(call, _QUEUED, confidence=confidence)
        return
    if not _is_sharded_here(call, view):
        function = view.module.function(call)
        if _in_one_order(call, view) and any(
            node is not call
            and view.module.function(node) is function
            and not is_mapped(node, view)
            and _is_sharded_here(node, view)
            for node in view.module.calls
        ):
            yield Leave(node=call, reason=_FURTHER_DOWN)
            return
        yield view.notice(call, _SAME_DATA, confidence=confidence)
        return
    size, index = rank_size(view), rank_id(view)
    if use.purpose == "both":
        size, index = f"{size} if {use.test} else 1", f"{index} if {use.test} else 0"
    _, end = view.module.span(call)
    if "repeat" not in view.module.text:
        yield view.notice(call, _UNEVEN)
    yield view.rewrite(
        call,
        Replacement(start=end, end=end, text=f".shard({size}, {index})", side="close"),
        reason=_REASON,
        confidence="likely",
        imports=RANK_IMPORTS,
    )


def _in_one_order(call: ast.Call, view: View) -> bool:
    """Whether every rank reads the same elements in the same order here."""
    if view.module.name_of(call.func) not in _RANDOM:
        return True
    shuffle = argument(call, "shuffle", 1)
    return shuffle is not None and literal(shuffle) is False


def _is_sharded_here(call: ast.Call, view: View) -> bool:
    """Whether this rule shards the data that a call reads."""
    return (
        view.module.name_of(call.func) in _SURE
        and purpose_of(call, view).purpose in ("train", "both")
        and _is_pipeline(call, view)
        and not _of_record_files(call, view)
    )


def _is_pipeline(call: ast.Call, view: View) -> bool:
    """Whether the data read here is shuffled, repeated or batched in the same function.

    Slices of one example, or of a few values that are appended, are not an input to shard.
    """
    chain = _chain(call, view)
    if any(method in _PIPELINE for method in chain):
        return True
    statement = view.module.statement(call)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    uses = view.module.uses(statement.targets[0])
    return any(method in _PIPELINE for use in uses for method in _chain(use, view))


def _chain(node: ast.expr, view: View) -> list[str]:
    """The methods that are called on an expression, in a chain."""
    methods: list[str] = []
    current: ast.AST = node
    while True:
        attribute = view.module.parent(current)
        if not isinstance(attribute, ast.Attribute):
            return methods
        outer = view.module.parent(attribute)
        if not isinstance(outer, ast.Call) or outer.func is not attribute:
            return methods
        methods.append(attribute.attr)
        current = outer


def _of_record_files(call: ast.Call, view: View) -> bool:
    """Whether the elements are names of files with many records each.

    There may be fewer files than ranks: a rank without a file would wait forever.
    """
    if view.module.name_of(call.func) != "tensorflow.data.Dataset.from_tensor_slices":
        return False
    source = view.module.source(call).lower()
    reads_records = any(
        isinstance(node, ast.Attribute | ast.Name) and view.module.name_of(node) in _RECORDS
        for node in view.module.scopes.nodes
    )
    return reads_records and any(word in source for word in ("file", "path", "shard"))


def _shards(view: View) -> bool:
    """Whether the script already shards a data set."""
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "shard"
        and view.kinds.of(call.func.value) == "Dataset"
        for call in view.module.calls
    )
