"""Rules that report code about devices: sessions, estimators, ranks."""

import ast

from jumar.porting.rewriting import Case, Text, report
from jumar.porting.rules.nvidia_smi import runs_nvidia_smi
from jumar.porting.rules.tensorflow.conditions import (
    creates_estimator,
    has_devices,
    is_for_one_rank,
    is_in_tensorflow_script,
    is_not_for_cpus,
    is_not_tool,
    is_only_for_tpus,
    is_passed_on,
    stays_open,
)
from jumar.porting.rules.tensorflow.estimator_plan import CANNED, ESTIMATOR, TPU_ESTIMATOR
from jumar.porting.rules.tensorflow.training_scripts import saves

_TPU_CALLS = (
    "tensorflow.contrib.cluster_resolver.TPUClusterResolver",
    "tensorflow.distribute.cluster_resolver.TPUClusterResolver",
    "tensorflow.distribute.experimental.TPUStrategy",
    "tensorflow.contrib.distribute.TPUStrategy",
    *(
        f"tensorflow.{module}.{name}"
        for module in ("contrib.tpu", "tpu")
        for name in (
            "batch_parallel",
            "cross_replica_sum",
            "initialize_system",
            "keras_to_tpu_model",
            "replicate",
            "rewrite",
            "shard",
            "shutdown_system",
        )
    ),
)


report(
    "contrib-learn",
    title=Text(en="Estimators of tf.contrib.learn are reported", zh="指出 tf.contrib.learn"),
    source="tf.contrib.learn of TensorFlow 1.15, which is deprecated; npu_init.py",
    cases=(
        Case(
            calls=("tensorflow.contrib.learn.*",),
            when=(creates_estimator,),
            en="tf.contrib.learn creates its own sessions: they get NpuOptimizer only with "
            "releases of the adapter whose npu_bridge modifies every session, and none of "
            "the port's options",
            zh="tf.contrib.learn 自行创建会话：仅在 npu_bridge 会修改所有会话的版本中才带有 "
            "NpuOptimizer，且不含移植选项",
            todo_en="move it to tf.estimator and port again; import npu_bridge.npu_init before it "
            "runs",
            todo_zh="改用 tf.estimator 后重新移植；运行前需导入 npu_bridge.npu_init",
            severity="blocking",
        ),
    ),
)


report(
    "estimator-references",
    title=Text(
        en="Estimator classes that are passed on are reported",
        zh="指出被传递的 Estimator 类",
    ),
    source="npu_init.py of Ascend/tensorflow",
    cases=(
        Case(
            references=(ESTIMATOR, TPU_ESTIMATOR, *CANNED),
            when=(is_passed_on,),
            en="an Estimator class is passed on here: it is unclear where it gets its "
            "configuration",
            zh="此处传递的是 Estimator 类，无法判断其运行配置在何处传入",
            todo_en="make sure that its caller passes config=npu_run_config_init(run_config=...)",
            todo_zh="请确认调用处传入 config=npu_run_config_init(run_config=...)",
            confidence="likely",
        ),
    ),
)


report(
    "estimator-spec",
    title=Text(en="EstimatorSpec is unchanged", zh="EstimatorSpec 保持不变"),
    source="npu_estimator.py of Ascend/tensorflow",
    cases=(
        Case(
            calls=("tensorflow.estimator.EstimatorSpec",),
            en="NPUEstimator accepts it; NPUEstimatorSpec is only for host_call, summaries "
            "computed on the device",
            zh="NPUEstimator 可直接接受；仅在需要 host_call（在设备上计算 summary）时才用 "
            "NPUEstimatorSpec",
        ),
        Case(
            calls=("tensorflow.contrib.tpu.TPUEstimatorSpec",),
            en="with use_tpu=False, TPUEstimator itself converts it to an EstimatorSpec",
            zh="use_tpu=False 时 TPUEstimator 会自行将其转换为 EstimatorSpec",
        ),
    ),
)


report(
    "evaluation-hooks",
    title=Text(en="Hooks for evaluation are unchanged", zh="评估 hook 保持不变"),
    source="npu_hook.py of Ascend/tensorflow",
    cases=(
        Case(
            calls=("tensorflow.estimator.EvalSpec",),
            when=(has_devices,),
            en="evaluation restores a checkpoint: a broadcast there would wait for devices "
            "that do not evaluate",
            zh="评估从 checkpoint 恢复变量：此处广播会等待未参与评估的设备",
        ),
    ),
)


report(
    "gpu-queries",
    title=Text(en="GPU queries are reported", zh="指出对 GPU 的查询"),
    source="TensorFlow 1.15 migration guide of CANN",
    cases=(
        Case(
            calls=(
                "tensorflow.test.is_gpu_available",
                "tensorflow.test.gpu_device_name",
                "tensorflow.test.is_built_with_cuda",
                "tensorflow.python.client.device_lib.list_local_devices",
                "tensorflow.config.experimental.list_physical_devices",
                "tensorflow.config.experimental.list_logical_devices",
                "tensorflow.config.list_physical_devices",
                "tensorflow.contrib.eager.num_gpus",
                "tensorflow.contrib.memory_stats.MaxBytesInUse",
                "tensorflow.contrib.memory_stats.BytesInUse",
                "keras.backend.tensorflow_backend._get_available_gpus",
                "keras.backend._get_available_gpus",
                "tensorflow.keras.backend._get_available_gpus",
            ),
            when=(is_not_for_cpus,),
            en="it reports that there is no GPU, even if there is an NPU",
            zh="即使有 NPU，该查询也只会得到没有 GPU 的结果",
            todo_en="check what the script does without GPUs; the environment variable RANK_SIZE "
            "is the number of NPUs",
            todo_zh="请确认脚本在没有 GPU 时的行为；NPU 数量由环境变量 RANK_SIZE 给出",
        ),
        Case(
            imports=(
                "pynvml",
                "py3nvml",
                "nvidia_smi",
                "GPUtil",
                "gpustat",
                "cupy",
                "pycuda",
                "numba.cuda",
            ),
            when=(is_in_tensorflow_script,),
            en="{name} is a library for NVIDIA's GPUs",
            zh="{name} 是 NVIDIA GPU 专用的库",
            todo_en="remove the code that uses it; npu-smi shows the load and memory of NPUs; use "
            "numpy to compute on the host",
            todo_zh="删除相关用法；NPU 的负载与内存用 npu-smi 查看，主机侧计算用 numpy",
            severity="blocking",
        ),
        Case(
            nodes=(ast.Constant,),
            when=(runs_nvidia_smi, is_in_tensorflow_script),
            en="nvidia-smi does not exist on a machine with NPUs",
            zh="NPU 服务器上没有 nvidia-smi",
            todo_en="use npu-smi info for NPUs; check how the script uses the output",
            todo_zh="用 npu-smi info 查看 NPU；请确认脚本如何使用其输出",
            confidence="likely",
        ),
    ),
)


report(
    "keras-multi-gpu",
    title=Text(en="Models on several GPUs are reported", zh="指出多 GPU 模型"),
    source="multi_gpu_utils.py of TensorFlow 1.15",
    cases=(
        Case(
            calls=(
                "tensorflow.keras.utils.multi_gpu_model",
                "keras.utils.multi_gpu_model",
                "keras.utils.training_utils.multi_gpu_model",
            ),
            en="multi_gpu_model copies the model to GPUs of one process; a process uses one "
            "NPU, and the call fails without GPUs",
            zh="multi_gpu_model 在单进程内把模型复制到多个 GPU；一个进程只使用一个 NPU，且没有"
            " GPU 时会报错",
            todo_en="use the model itself, and start one process for each NPU (--devices N)",
            todo_zh="直接使用原模型，并为每个 NPU 启动一个进程（--devices N）",
            severity="blocking",
        ),
    ),
)


report(
    "parameter-servers",
    title=Text(en="Parameter servers and reductions over towers", zh="参数服务器与多 tower 规约"),
    source="npu_config.py and npu_optimizer.py of Ascend/tensorflow",
    cases=(
        Case(
            calls=("tensorflow.train.SyncReplicasOptimizer",),
            en="SyncReplicasOptimizer collects gradients on parameter servers, which NPUs do "
            "not have",
            zh="SyncReplicasOptimizer 在参数服务器上汇总梯度，NPU 没有参数服务器",
            todo_en="use only the inner optimizer and port again with --devices N: "
            "NPUDistributedOptimizer averages every step; remove the hooks of "
            "SyncReplicasOptimizer (make_session_run_hook, get_init_tokens_op)",
            todo_zh="只保留内层优化器并用 --devices N 移植：NPUDistributedOptimizer 每步求平均；删"
            "除其 hook（make_session_run_hook、get_init_tokens_op）",
            severity="blocking",
        ),
        Case(
            calls=(
                "tensorflow.train.Server",
                "tensorflow.distribute.Server",
                "tensorflow.train.ClusterSpec",
            ),
            en="NPUs do not share gradients through parameter servers: every process drives "
            "one device, and HCCL averages the gradients",
            zh="NPU 之间不通过参数服务器共享梯度：每个进程驱动一个设备，由 HCCL 求平均",
            todo_en="remove the cluster, start one process for each device (RANK_ID, RANK_SIZE, "
            "DEVICE_ID) and port again with --devices N; if the cluster has to stay, see "
            "NPURunConfig(distribute=...) with mix_compile_mode",
            todo_zh="删除集群代码，每个设备启动一个进程（RANK_ID、RANK_SIZE、DEVICE_ID），并用 "
            "--devices N 移植；必须保留集群时参见 NPURunConfig(distribute=...) 与 mix_compile_mode",
            severity="blocking",
        ),
        Case(
            calls=(
                "tensorflow.contrib.nccl.*",
                "tensorflow.contrib.all_reduce.*",
                "tensorflow.python.ops.nccl_ops.*",
                "tensorflow.contrib.estimator.replicate_model_fn",
                "tensorflow.contrib.estimator.TowerOptimizer",
                "tensorflow.contrib.training.GreedyLoadBalancingStrategy",
            ),
            en="this reduces over the GPUs of one process; on NPUs, a process has one device",
            zh="该接口在单进程的多个 GPU 间规约；NPU 每个进程只有一个设备",
            todo_en="remove the towers and port again with --devices N",
            todo_zh="删除多 tower 代码，并用 --devices N 移植",
            severity="blocking",
        ),
    ),
)


report(
    "rank-checkpoints",
    title=Text(en="Checkpoints that every rank writes", zh="每个 rank 都写 checkpoint"),
    source="TensorFlow 1.15 migration guide of CANN",
    cases=(
        Case(
            nodes=(ast.Call,),
            when=(has_devices, saves, is_not_tool, is_for_one_rank),
            en="only one rank reaches this call",
            zh="只有一个 rank 会执行到此处",
        ),
        Case(
            nodes=(ast.Call,),
            when=(has_devices, saves, is_not_tool),
            en="every rank reaches this call: several processes write the same files",
            zh="每个 rank 都会执行到此处：多个进程写同一批文件",
            todo_en='save only on rank 0 (if int(os.getenv("RANK_ID", "0")) == 0), or use a '
            "separate folder for each rank",
            todo_zh='只由 rank 0 保存（if int(os.getenv("RANK_ID", "0")) == 0），或为每个 rank 使用'
            "单独目录",
        ),
    ),
)


report(
    "session-close",
    title=Text(en="Sessions that stay open are reported", zh="指出未关闭的会话"),
    source="migrated scripts of ModelZoo-TensorFlow",
    cases=(
        Case(
            calls=("tensorflow.Session", "tensorflow.InteractiveSession"),
            when=(stays_open,),
            en="this session is never closed: the device's memory is only freed when it is, "
            "or at the end of the process",
            zh="该会话未被关闭：设备资源在会话关闭时释放，最迟到进程结束",
            todo_en="call {target}.close() at the end, or open it in a `with` statement",
            todo_zh="使用完毕后调用 {target}.close()，或用 with 打开",
            confidence="likely",
        ),
    ),
)


report(
    "tpu-calls",
    title=Text(en="Calls that need a TPU are reported", zh="指出依赖 TPU 的调用"),
    source="API support list of convert_tf2npu, Ascend/tensorflow",
    cases=(
        Case(
            calls=_TPU_CALLS,
            when=(is_only_for_tpus,),
            en="the script only runs this if it is to use a TPU",
            zh="脚本仅在指定使用 TPU 时才执行此处",
        ),
        Case(
            calls=_TPU_CALLS,
            en="this requires a TPU, and there is none",
            zh="该调用依赖 TPU，而 NPU 服务器上没有 TPU",
            todo_en="remove it, or run it only if the script is to use a TPU",
            todo_zh="删除该调用，或仅在指定使用 TPU 时执行",
            severity="blocking",
        ),
    ),
)
