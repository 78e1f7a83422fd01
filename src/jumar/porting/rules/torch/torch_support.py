"""Names of PyTorch that torch_npu's list of APIs calls unsupported are findings."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
from jumar.porting.torch.scripts import is_written
from jumar.porting.torch.support import RELEASE, UNSUPPORTED

_WHY = Text(
    en="the API list of {release} calls {name} unsupported",
    zh="{release} 的 API 支持列表中 {name} 标注为不支持",
)
_TODO = Text(
    en="try it, with TORCH_NPU_FALLBACK_CPU_DISABLE unset, and look for warnings of a fallback to "
    "the CPU; write it with other operators if it is slow or fails",
    zh="先运行并观察是否有回退到 CPU 的告警（不要设置 TORCH_NPU_FALLBACK_CPU_DISABLE）；"
    "若很慢或报错，用其他算子实现",
)


@rule(
    "torch-support",
    title=Text(en="APIs that torch_npu does not support", zh="torch_npu 不支持的 API"),
    source="API support list of Ascend/pytorch for PyTorch 2.13",
    language="torch",
    references=tuple(sorted(UNSUPPORTED)),
)
def torch_support(node: ast.expr, view: View) -> Iterator[Change]:
    """Name the API and the release of the list."""
    if is_written(view.module, node):
        name = view.module.name_of(node) or ""
        yield view.notice(
            node,
            reason=_WHY.filled(release=RELEASE, name=name),
            todo=_TODO,
            severity="look",
            confidence="likely",
        )
