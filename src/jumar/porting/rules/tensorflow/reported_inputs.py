"""Rules that report code of inputs: Python functions, queues, readers, padded batches."""

import ast
from dataclasses import replace

from jumar.porting.rewriting import Case, Text, report
from jumar.porting.rules.tensorflow.conditions import (
    fills_a_queue,
    has_queues,
    is_mapped,
    is_padded_batch,
    pads_to_contents,
    pads_to_named_shapes,
)

_PY_FUNCTIONS = (
    "tensorflow.py_func",
    "tensorflow.py_function",
    "tensorflow.numpy_function",
    "tensorflow.contrib.eager.py_func",
    "tensorflow.contrib.framework.py_func",
)
_QUEUES = (
    *(
        f"tensorflow.train.{name}"
        for name in (
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
    ),
    *(
        f"tensorflow.{prefix}{name}"
        for prefix in ("", "queue.")
        for name in ("FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue")
    ),
    "tensorflow.contrib.slim.dataset_data_provider.DatasetDataProvider",
    "tensorflow.contrib.slim.prefetch_queue.prefetch_queue",
    "tensorflow.contrib.training.stratified_sample",
)
_PADDED = Case(
    nodes=(ast.Call,),
    when=(is_padded_batch, pads_to_contents),
    en="these batches are padded to their longest element, so their shape changes from step to "
    "step; the NPU compiles the graph again for each new shape",
    zh="各批按自身最长元素补齐，形状逐步变化；NPU 遇到新形状会重新编译图",
    todo_en="use fixed sizes in padded_shapes, and filter or truncate longer elements; or declare "
    'ranges: dynamic_input, dynamic_graph_execute_mode="dynamic_execute" and '
    "dynamic_inputs_shape_range",
    todo_zh="padded_shapes 改为固定值，并过滤或截断更长的样本；或声明形状范围：dynamic_input、"
    'dynamic_graph_execute_mode="dynamic_execute"、dynamic_inputs_shape_range',
    severity="speed",
)
_READERS = Case(
    calls=("tensorflow.IdentityReader", "tensorflow.LMDBReader", "tensorflow.WholeFileReader"),
    en="{name} is not supported on the NPU",
    zh="NPU 场景下不支持 {name}",
    todo_en="read with tf.data: TFRecordDataset, TextLineDataset, FixedLengthRecordDataset, or "
    "list_files with map(tf.read_file)",
    todo_zh="改用 tf.data 读取：TFRecordDataset、TextLineDataset、FixedLengthRecordDataset，或 "
    "list_files 配合 map(tf.read_file)",
    severity="blocking",
)
_THREADS = Case(
    calls=("tensorflow.train.start_queue_runners",),
    en="this starts the threads that fill queues of the graph; tf.data needs none",
    zh="此处启动填充队列的线程；使用 tf.data 时不需要",
    todo_en="keep it as long as the input has queues; remove it with them",
    todo_zh="输入仍有队列时保留；改写输入后一并删除",
)


report(
    "py-func",
    title=Text(en="Python functions in the graph", zh="图中的 Python 函数"),
    source="TensorFlow 1.15 migration guide of CANN; npu_scope.py of Ascend/tensorflow",
    cases=(
        Case(
            calls=_PY_FUNCTIONS,
            when=(is_mapped,),
            en="it is part of a data set, whose functions run on the host",
            zh="属于 tf.data，函数在主机上执行",
        ),
        Case(
            calls=_PY_FUNCTIONS,
            en="a Python function runs on the host, but the training step on the device",
            zh="Python 函数在主机上执行，而训练步的图在设备上执行",
            todo_en="move it into a map of the tf.data input, implement it with operators, or put "
            "it under npu_scope.without_npu_compile_scope() with mix_compile_mode",
            todo_zh="移到 tf.data 的 map 中，或改用算子实现，或放在 "
            "npu_scope.without_npu_compile_scope() 下并开启 mix_compile_mode",
            severity="blocking",
            confidence="likely",
        ),
    ),
)


report(
    "queue-inputs",
    title=Text(en="Input queues", zh="队列输入"),
    source="Facenet_ID0122 of ModelZoo-TensorFlow; npu_scope.py of Ascend/tensorflow",
    cases=(
        _THREADS,
        replace(_THREADS, calls=("threading.Thread", "threading.Timer"), when=(fills_a_queue,)),
        replace(
            _THREADS,
            calls=("tensorflow.train.Coordinator",),
            when=(has_queues,),
            en="this stops the threads that fill queues of the graph; tf.data needs none",
            zh="此处用于结束填充队列的线程；使用 tf.data 时不需要",
        ),
        Case(
            calls=_QUEUES,
            en="queues of the graph run on the host; they fail if they are moved to the device "
            "with the training step",
            zh="图中的队列在主机上运行；随训练步下沉到设备会失败",
            todo_en="rewrite the input with tf.data (TFRecordDataset, map, shuffle, batch with "
            "drop_remainder=True); or build it under npu_scope.without_npu_compile_scope() "
            "and set mix_compile_mode to True, with iterations_per_loop 1",
            todo_zh="用 tf.data 改写输入（TFRecordDataset、map、shuffle、batch 加 "
            "drop_remainder=True）；或在 npu_scope.without_npu_compile_scope() 下构建，并设"
            "置 mix_compile_mode 为 True，iterations_per_loop 为 1",
            severity="blocking",
        ),
    ),
)


report(
    "padded-shapes",
    title=Text(en="Padded batches of changing shape", zh="形状变化的补齐批"),
    source="ViDeNN_ID1146 and NMT_ID0512 of ModelZoo-TensorFlow; npu_config.py of "
    "Ascend/tensorflow",
    cases=(
        Case(
            calls=(
                "tensorflow.data.experimental.bucket_by_sequence_length",
                "tensorflow.contrib.data.bucket_by_sequence_length",
                "tensorflow.contrib.training.bucket_by_sequence_length",
                "tensorflow.contrib.training.bucket",
            ),
            en="each bucket has its own batch size and length, so the NPU compiles one graph "
            "for each; batches within a bucket must not be smaller",
            zh="每个 bucket 的批大小与长度不同，NPU 会为每个 bucket 编译一张图；bucket 内的批"
            "不能变小",
            todo_en="keep few buckets, with pad_to_bucket_boundary=True and drop_remainder=True in "
            "training",
            todo_zh="减少 bucket 数量，训练时设置 pad_to_bucket_boundary=True 与 "
            "drop_remainder=True",
            severity="speed",
        ),
        _PADDED,
        replace(_PADDED, when=(is_padded_batch, pads_to_named_shapes), confidence="unsure"),
    ),
)


report(
    "unsupported-calls",
    title=Text(en="Eager mode and readers are reported", zh="指出 eager 模式与 Reader"),
    source="API support list of convert_tf2npu, Ascend/tensorflow",
    cases=(
        Case(
            calls=(
                "tensorflow.enable_eager_execution",
                "tensorflow.enable_v2_behavior",
                "tensorflow.contrib.eager.enable_eager_execution",
            ),
            en="the NPU runs graphs: TensorFlow 1.15 has no eager mode on it",
            zh="NPU 以图模式执行：TensorFlow 1.15 在 NPU 上不支持 eager 模式",
            todo_en="build a graph and run it in a session, or use tf.keras or an Estimator",
            todo_zh="改为构建计算图并用会话执行，或使用 tf.keras、Estimator",
            severity="blocking",
        ),
        _READERS,
        replace(
            _READERS,
            calls=(
                "tensorflow.FixedLengthRecordReader",
                "tensorflow.TFRecordReader",
                "tensorflow.TextLineReader",
            ),
            en="{name} reads from a queue: queue operations stay on the host and need "
            "mix_compile_mode",
            zh="{name} 从队列读取：队列算子只能在主机侧执行，需要 mix_compile_mode",
            severity="speed",
        ),
    ),
)
