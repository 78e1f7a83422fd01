"""Rules that report code of the training graph: operators, constants, branches, profilers."""

import ast
from dataclasses import replace

from jumar.porting.rewriting import Case, Text, report
from jumar.porting.rules.tensorflow.conditions import (
    has_loss_scale,
    has_profiling,
    is_called_directly,
    is_class,
    is_cudnn_only,
    is_full_trace,
    is_in_graph,
    is_mapped,
    is_time_major,
    trains_in_branch,
)
from jumar.porting.rules.tensorflow.mask_constants import is_mask_beyond_float16, keeps_float32

_BRANCHES = ("tensorflow.cond", "tensorflow.case", "tensorflow.switch_case")
_FLOAT64 = ("tensorflow.float64", "tensorflow.double", "tensorflow.complex128")
_RNN = (
    "tensorflow.nn.dynamic_rnn",
    "tensorflow.nn.bidirectional_dynamic_rnn",
    "tensorflow.nn.raw_rnn",
)
_RNN_STEPS = Case(
    calls=_RNN,
    en="the steps of this network run in a while_loop, which is slow on the NPU and prevents their "
    "fusion",
    zh="该网络的时间步在 while_loop 中执行，在 NPU 上较慢且无法融合",
    todo_en="pad to a fixed number of steps, transpose to time-major, and use "
    "npu_rnn.npu_dynamic_rnn(cell, inputs=..., dtype=...), DynamicRNN or DynamicGRUV2",
    todo_zh="补齐到固定步数并转为 time_major，再用 npu_rnn.npu_dynamic_rnn(cell, "
    "inputs=..., dtype=...)、DynamicRNN 或 DynamicGRUV2",
    severity="speed",
)
_FINITE = tuple(
    f"tensorflow.{prefix}{name}"
    for prefix in ("", "math.", "debugging.")
    for name in ("is_finite", "is_nan", "is_inf")
)
_PROFILERS = (
    "tensorflow.train.ProfilerHook",
    "tensorflow.estimator.ProfilerHook",
    "tensorflow.python.client.timeline.Timeline",
    "tensorflow.profiler.Profiler",
    "tensorflow.profiler.profile",
    "tensorflow.contrib.tfprof.ProfileContext",
    "tensorflow.profiler.ProfileContext",
)
_PROFILER = Case(
    calls=_PROFILERS,
    when=(is_called_directly,),
    en="TensorFlow's profiler shows the whole graph on the NPU as one operation",
    zh="TensorFlow 的 profiler 只能看到 NPU 整图执行的一个算子",
    todo_en="port again with --profiling, or set profiling_mode and profiling_options",
    todo_zh="使用 --profiling 重新移植，或设置 profiling_mode 与 profiling_options",
)


report(
    "clipped-norms",
    title=Text(
        en="Clipping by the global norm with a loss scale is reported",
        zh="提示损失缩放下的全局范数裁剪",
    ),
    source="npu_loss_scale_optimizer.py of Ascend/tensorflow; tensorflow/nmt, whose losses diverge "
    "at step 3 with a scale of 1",
    cases=(
        Case(
            calls=("tensorflow.clip_by_global_norm", "tensorflow.global_norm"),
            when=(has_loss_scale,),
            en="NPULossScaleOptimizer divides each gradient by the scale, which converts those "
            "of gathered rows (embeddings) from IndexedSlices to dense tensors; rows that "
            "occur several times are then summed before the norm is computed, so the norm "
            "and the clipped gradients differ from the original",
            zh="NPULossScaleOptimizer 用缩放系数除每个梯度，使按行收集（embedding）的梯度由 "
            "IndexedSlices 变为稠密张量；重复出现的行在求范数之前先被相加，因此全局范数与裁"
            "剪结果和原脚本不同",
            todo_en="nothing to do if no variable is read with tf.nn.embedding_lookup or "
            "tf.gather; otherwise compare with an original whose gradients are made dense with "
            "tf.convert_to_tensor, or clip less",
            todo_zh="若没有变量经 tf.nn.embedding_lookup 或 tf.gather 读取则无需处理；否则请与先用 "
            "tf.convert_to_tensor 变为稠密的原脚本对比，或放宽裁剪",
            severity="accuracy",
            confidence="unsure",
        ),
    ),
)


report(
    "control-flow",
    title=Text(en="Optimizers within branches are reported", zh="提示条件分支中的优化器"),
    source="CANN TensorFlow 1.15 migration guide",
    cases=(
        Case(
            calls=_BRANCHES,
            when=(trains_in_branch,),
            en="the optimizer is in a branch of the graph: the NPU cannot fuse the step "
            "across it, and a step skipped by a loss scale is a branch within a branch",
            zh="优化器位于图的条件分支中：NPU 无法跨分支融合训练步，loss scale 跳过一步时会形"
            "成嵌套分支",
            todo_en="train unconditionally, and multiply the learning rate or the gradients by "
            "tf.cast(condition, tf.float32), or create two training operations and choose "
            "one in Python",
            todo_zh="改为无条件训练，用系数选择：将学习率或梯度乘以 tf.cast(condition, "
            "tf.float32)；或建立两个训练操作，在 Python 中选择其一",
            severity="speed",
        ),
        Case(
            calls=_BRANCHES,
            en="a branch of the graph without an optimizer works on the NPU",
            zh="不含优化器的条件分支可在 NPU 上运行",
        ),
    ),
)


report(
    "double-precision",
    title=Text(en="float64 tensors", zh="float64 张量"),
    source="API support list of convert_tf2npu, December 2023",
    cases=(
        Case(
            references=_FLOAT64,
            when=(is_mapped,),
            en="it is part of the input, which runs on the host",
            zh="属于输入处理，在主机上执行",
        ),
        Case(
            references=_FLOAT64,
            en="the matrix and vector units of the NPU do not support float64: float64 "
            "operators are slow or missing",
            zh="NPU 的矩阵与向量单元不支持 float64 计算：相应算子很慢或不存在",
            todo_en="use tf.float32 in the training step, and convert inputs on the host",
            todo_zh="训练步的图中使用 tf.float32，并在主机侧转换输入",
            severity="speed",
            confidence="likely",
        ),
    ),
)


report(
    "dynamic-rnn",
    title=Text(en="Recurrent networks and loops on the device", zh="设备上的循环网络与循环"),
    source="npu_rnn.py and npu_dynamic_rnn.py of Ascend/tensorflow; NMT_ID0512 of "
    "ModelZoo-TensorFlow",
    cases=(
        replace(
            _RNN_STEPS,
            when=(is_time_major,),
            todo_en="its inputs are time-major: with a fixed number of steps, "
            "npu_rnn.npu_dynamic_rnn(cell, inputs=..., dtype=...) unrolls the same "
            "computation; see also DynamicRNN and DynamicGRUV2",
            todo_zh="输入已是 time_major：步数固定时可用 npu_rnn.npu_dynamic_rnn(cell, inputs=..., "
            "dtype=...) 展开同样的计算；另见 DynamicRNN、DynamicGRUV2",
        ),
        _RNN_STEPS,
        Case(
            calls=("tensorflow.contrib.seq2seq.dynamic_decode",),
            en="the decoder runs until it is finished, in a while_loop of unknown length with "
            "growing arrays",
            zh="解码在长度未知的 while_loop 中进行，数组不断增长",
            todo_en="train with a fixed number of steps (a static helper); pass "
            "maximum_iterations for decoding",
            todo_zh="训练时使用固定步数（静态 helper）；推理时给出 maximum_iterations",
            severity="speed",
        ),
        Case(
            calls=(
                "tensorflow.while_loop",
                "tensorflow.map_fn",
                "tensorflow.scan",
                "tensorflow.foldl",
            ),
            when=(is_in_graph,),
            en="loops of the graph run step by step on the NPU; they work if their inputs "
            "have fixed shapes",
            zh="图中的循环在 NPU 上逐步执行；输入形状固定时可以运行",
            todo_en="use static shapes, and unroll short loops or compute the whole batch at once",
            todo_zh="使用静态形状；短循环可展开，或一次计算整批",
            severity="speed",
            confidence="likely",
        ),
    ),
)


report(
    "finite-check",
    title=Text(en="Checks for finite values", zh="有限值检查"),
    source="API support list of convert_tf2npu, December 2023",
    cases=(
        Case(
            references=_FINITE,
            en="the NPU's API list marks tf.is_finite, tf.is_nan and tf.is_inf as unsupported; "
            "NPULossScaleOptimizer checks gradients by the status register instead",
            zh="NPU 支持清单中 tf.is_finite、tf.is_nan、tf.is_inf 为不支持；"
            "NPULossScaleOptimizer 通过状态寄存器完成梯度检查",
            todo_en="remove the check and port again with --loss-scale, or move it out of the "
            "training step",
            todo_zh="删除该检查并使用 --loss-scale 移植，或将其移出训练步",
            severity="blocking",
        ),
    ),
)


report(
    "mask-constants",
    title=Text(en="Mask constants beyond float16", zh="超出 float16 范围的 mask 常量"),
    source="NMT_ID0512 of ModelZoo-TensorFlow",
    cases=(
        Case(
            nodes=(ast.UnaryOp, ast.Call, ast.Attribute),
            when=(is_mask_beyond_float16,),
            look_if=keeps_float32,
            en="{code} is minus infinity in float16: in mixed precision, a softmax over a "
            "fully masked row, or a product with 0, is NaN",
            zh="{code} 在 float16 中为负无穷：混合精度下整行被 mask 的 softmax，或与 0 相乘，"
            "会得到 NaN",
            todo_en="use -65504.0 or a smaller magnitude (BERT: -10000.0, NMT in ModelZoo: "
            "-65500.0), or keep this layer in float32 with a mixlist or keep_dtype_scope",
            todo_zh="改用 -65504.0 或绝对值更小的数（BERT 用 -10000.0，ModelZoo 的 NMT 用 "
            "-65500.0），或用混合精度名单、keep_dtype_scope 使该层保持 float32",
            severity="accuracy",
            confidence="likely",
        ),
    ),
)


report(
    "custom-operators",
    title=Text(en="Operators without a kernel for the NPU", zh="没有 NPU 实现的算子"),
    source="API support list of convert_tf2npu, December 2023; npu_dynamic_rnn.py of "
    "Ascend/tensorflow",
    cases=(
        Case(
            calls=(
                "tensorflow.load_op_library",
                "tensorflow.load_library",
                "tensorflow.load_file_system_library",
                "tensorflow.contrib.util.loader.load_op_library",
                "tensorflow.contrib.tensorrt.*",
            ),
            en="operators from a compiled library have kernels for CPU or GPU, but none for "
            "the NPU",
            zh="编译库中的算子只有 CPU 或 GPU 实现，没有 NPU 实现",
            todo_en="implement it with TensorFlow's operators or as an Ascend custom operator "
            "(TBE, AI CPU), or keep it on the host: without_npu_compile_scope with "
            "mix_compile_mode",
            todo_zh="用 TensorFlow 算子实现，或开发昇腾自定义算子（TBE、AI CPU），或留在主机："
            "without_npu_compile_scope 加 mix_compile_mode",
            severity="blocking",
        ),
        Case(
            calls=("tensorflow.raw_ops.*",),
            en="this operator is called by its raw name; the adapter supports those that the "
            "public functions of TensorFlow 1.15 create",
            zh="直接按底层名称调用的算子；适配层支持的是 TensorFlow 1.15 公开接口所产生的算子",
            todo_en="use the public function, or check the operator in the list of the CANN "
            "release",
            todo_zh="改用公开接口，或在所用 CANN 版本的算子清单中确认",
            severity="look",
            confidence="unsure",
        ),
        Case(
            calls=(
                "tensorflow.contrib.cudnn_rnn.*",
                "tensorflow.keras.layers.CuDNNLSTM",
                "tensorflow.keras.layers.CuDNNGRU",
                "keras.layers.CuDNNLSTM",
                "keras.layers.CuDNNGRU",
                "keras.layers.cudnn_recurrent.*",
            ),
            when=(is_cudnn_only,),
            en="this layer is implemented by cuDNN and only runs on GPUs",
            zh="该层由 cuDNN 实现，只能在 GPU 上运行",
            todo_en="use tf.nn.rnn_cell with tf.nn.static_rnn, or DynamicRNN and DynamicGRUV2 of "
            "npu_bridge.estimator.npu.npu_dynamic_rnn; the weights have another layout "
            "(see CudnnCompatibleLSTMCell)",
            todo_zh="改用 tf.nn.rnn_cell 与 tf.nn.static_rnn，或 "
            "npu_bridge.estimator.npu.npu_dynamic_rnn 的 DynamicRNN、DynamicGRUV2；权重排布"
            "不同（参见 CudnnCompatibleLSTMCell）",
            severity="blocking",
        ),
    ),
)


report(
    "profilers",
    title=Text(
        en="Profilers and debuggers of TensorFlow are reported",
        zh="指出 TensorFlow 的 profiler 与调试器",
    ),
    source="TensorFlow 1.15 migration guide of CANN",
    cases=(
        Case(
            calls=_PROFILERS,
            when=(is_called_directly, has_profiling),
            en="--profiling enables the NPU's profiler; this one still profiles the host",
            zh="--profiling 已开启 NPU 自身的 profiling；此处仅能反映主机侧",
            todo_en="remove it if host times are not needed",
            todo_zh="若不关心主机侧耗时可删除",
        ),
        _PROFILER,
        replace(
            _PROFILER,
            calls=("tensorflow.RunOptions",),
            when=(is_called_directly, is_full_trace),
            en="a full trace slows down every step and only covers the host",
            zh="FULL_TRACE 会拖慢每一步，且只反映主机侧",
            severity="speed",
        ),
        Case(
            calls=("tensorflow.python.debug.*",),
            when=(is_called_directly, is_class),
            en="TensorFlow's debugger cannot inspect a graph that runs as a whole on the device",
            zh="TensorFlow 调试器无法查看在设备上整图执行的计算图",
            todo_en="remove the wrapper; to dump the values of operators, use enable_dump, "
            "dump_path and dump_step, or DumpConfig with NPUEstimator",
            todo_zh="去掉该封装；算子数值通过 enable_dump、dump_path、dump_step 获取，使用 "
            "NPUEstimator 时用 DumpConfig",
            severity="blocking",
        ),
    ),
)
