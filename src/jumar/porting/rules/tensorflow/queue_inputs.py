"""Queues of inputs, which do not run on the device, are said."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View

_REASON = Text(
    en="queues of the graph run on the host; sunk to the device with the step they fail",
    zh="图中的队列在主机上运行；随训练步下沉到设备会失败",
)
_TODO = Text(
    en="rewrite the input with tf.data (TFRecordDataset, map, shuffle, batch with "
    "drop_remainder=True); or build it under npu_scope.without_npu_compile_scope() and set "
    "mix_compile_mode to True, with iterations_per_loop 1",
    zh="用 tf.data 改写输入（TFRecordDataset、map、shuffle、batch 加 drop_remainder=True）；或在 "
    "npu_scope.without_npu_compile_scope() 下构建，并设置 mix_compile_mode 为 True，"
    "iterations_per_loop 为 1",
)
_RUNNERS = Text(
    en="this starts the threads that fill queues of the graph; with tf.data there are none",
    zh="此处启动填充队列的线程；使用 tf.data 时不需要",
)
_RUNNERS_TODO = Text(
    en="keep it as long as the input has queues; remove it with them",
    zh="输入仍有队列时保留；改写输入后一并删除",
)
_TRAIN = (
    "batch",
    "batch_join",
    "shuffle_batch",
    "shuffle_batch_join",
    "maybe_batch",
    "maybe_batch_join",
    "maybe_shuffle_batch",
    "maybe_shuffle_batch_join",
    "string_input_producer",
    "range_input_producer",
    "slice_input_producer",
    "input_producer",
    "limit_epochs",
    "QueueRunner",
    "add_queue_runner",
)
_CLASSES = ("FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue")
_QUEUES = (
    *(f"tensorflow.train.{name}" for name in _TRAIN),
    *(f"tensorflow.{prefix}{name}" for prefix in ("", "queue.") for name in _CLASSES),
    "tensorflow.contrib.slim.dataset_data_provider.DatasetDataProvider",
    "tensorflow.contrib.slim.prefetch_queue.prefetch_queue",
    "tensorflow.contrib.training.stratified_sample",
)
_STARTERS = ("tensorflow.train.start_queue_runners",)


@rule(
    "queue-inputs",
    title=Text(en="Queues of inputs", zh="队列输入"),
    source="Facenet_ID0122 of ModelZoo-TensorFlow; npu_scope.py of Ascend/tensorflow",
    calls=(*_QUEUES, *_STARTERS),
)
def queue_inputs(call: ast.Call, view: View) -> Iterator[Change]:
    """A finding for each."""
    if view.kinds.called(call) in _STARTERS:
        yield view.notice(call, reason=_RUNNERS, todo=_RUNNERS_TODO, severity="look")
    else:
        yield view.notice(call, reason=_REASON, todo=_TODO, severity="blocking")
