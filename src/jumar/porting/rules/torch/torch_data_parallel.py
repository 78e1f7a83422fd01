"""nn.DataParallel is a finding: an NPU needs one process a device."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View

_WHY = Text(
    en="torch_npu does not support DataParallel: one process drives one NPU",
    zh="torch_npu 不支持 DataParallel：一个进程对应一张 NPU",
)
_TODO = Text(
    en="start one process a device with torchrun and wrap the model in "
    "torch.nn.parallel.DistributedDataParallel; on a single NPU, leave the wrapper away",
    zh="用 torchrun 每卡启动一个进程，并使用 torch.nn.parallel.DistributedDataParallel；"
    "单卡时去掉该封装",
)


@rule(
    "torch-data-parallel",
    title=Text(en="DataParallel needs DistributedDataParallel", zh="DataParallel 需改为 DDP"),
    source="API support list of Ascend/pytorch for PyTorch 2.13 (torch.nn)",
    language="torch",
    calls=("torch.nn.DataParallel", "torch.nn.parallel.data_parallel"),
)
def torch_data_parallel(call: ast.Call, view: View) -> Iterator[Change]:
    """Say what to use instead."""
    yield view.notice(call, reason=_WHY, todo=_TODO, severity="blocking")
