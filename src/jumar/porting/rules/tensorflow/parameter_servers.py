"""Clusters of parameter servers and workers are said."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View

_REASON = Text(
    en="parameter servers are not how NPUs share gradients: every process drives one device, and "
    "HCCL averages",
    zh="NPU 之间不通过参数服务器共享梯度：每个进程驱动一个设备，由 HCCL 求平均",
)
_TODO = Text(
    en="remove the cluster, start one process for each device (RANK_ID, RANK_SIZE, DEVICE_ID) and "
    "port with --devices N; for a cluster that has to stay see NPURunConfig(distribute=...) with "
    "mix_compile_mode",
    zh="删除集群代码，每个设备启动一个进程（RANK_ID、RANK_SIZE、DEVICE_ID），并用 --devices N "
    "移植；"
    "必须保留集群时参见 NPURunConfig(distribute=...) 与 mix_compile_mode",
)
_SYNC = Text(
    en="SyncReplicasOptimizer collects gradients on parameter servers, which NPUs do not have",
    zh="SyncReplicasOptimizer 在参数服务器上汇总梯度，NPU 没有参数服务器",
)
_SYNC_TODO = Text(
    en="use the inner optimizer alone and port with --devices N: NPUDistributedOptimizer averages "
    "each step; remove its hooks (make_session_run_hook, get_init_tokens_op)",
    zh="只保留内层优化器并用 --devices N 移植：NPUDistributedOptimizer 每步求平均；删除其 hook"
    "（make_session_run_hook、get_init_tokens_op）",
)
_GPUS = Text(
    en="this reduces over the GPUs of one process; a process of the NPU has one device",
    zh="该接口在单进程的多个 GPU 间规约；NPU 每个进程只有一个设备",
)
_GPUS_TODO = Text(
    en="remove the towers and port with --devices N",
    zh="删除多 tower 代码，并用 --devices N 移植",
)
_SYNCED = "tensorflow.train.SyncReplicasOptimizer"
_CLUSTERS = (
    "tensorflow.train.Server",
    "tensorflow.distribute.Server",
    "tensorflow.train.ClusterSpec",
)
_REDUCED = (
    "tensorflow.contrib.nccl.*",
    "tensorflow.contrib.all_reduce.*",
    "tensorflow.python.ops.nccl_ops.*",
    "tensorflow.contrib.estimator.replicate_model_fn",
    "tensorflow.contrib.estimator.TowerOptimizer",
    "tensorflow.contrib.training.GreedyLoadBalancingStrategy",
)


@rule(
    "parameter-servers",
    title=Text(en="Parameter servers and reductions of towers", zh="参数服务器与多 tower 规约"),
    source="npu_config.py and npu_optimizer.py of Ascend/tensorflow",
    calls=(*_CLUSTERS, _SYNCED, *_REDUCED),
)
def parameter_servers(call: ast.Call, view: View) -> Iterator[Change]:
    """A finding for each."""
    name = view.kinds.called(call)
    if name == _SYNCED:
        reason, todo = _SYNC, _SYNC_TODO
    elif name in _CLUSTERS:
        reason, todo = _REASON, _TODO
    else:
        reason, todo = _GPUS, _GPUS_TODO
    yield view.notice(call, reason=reason, todo=todo, severity="blocking")
