"""`from torch.cuda.amp import autocast` becomes an import from torch_npu."""

import ast

from jumar.porting.rewriting import Changes, Remark, Replacement, Text, View, rule
from jumar.porting.torch.names import RENAMED, SUBMODULES, npu_counterpart
from jumar.porting.torch.scripts import replace_import

_FROM = Remark(
    en="torch_npu.npu has the same names, and importing it registers the device",
    zh="torch_npu.npu 提供同名接口，导入即完成设备注册",
    todo_en="import these names from torch_npu.npu; unchanged because of the comments between them",
    todo_zh="从 torch_npu.npu 导入这些名称；此处名称之间有注释，未自动改动",
    severity="blocking",
)
_MISSING = Remark(
    en="torch_npu.npu has no '{name}'",
    zh="torch_npu.npu 中没有 '{name}'",
    todo_en="remove the import and the code that uses it, or skip both if torch.npu.is_available()",
    todo_zh="删除该导入及其用法，或用 torch.npu.is_available() 加以保护",
    severity="blocking",
)
_AMP_MODULES = ("autocast_mode", "grad_scaler", "common")


@rule(
    "cuda-imports",
    title=Text(
        en="Imports from torch.cuda become imports from torch_npu.npu",
        zh="从 torch.cuda 的导入改为 torch_npu.npu",
    ),
    source="torch_npu 2.6.0 and 2.13.0 (names of torch_npu.npu and torch_npu.npu.amp)",
    language="torch",
    nodes=(ast.ImportFrom, ast.Import),
)
def cuda_imports(node: ast.ImportFrom | ast.Import, view: View) -> Changes:
    """Import the names of torch.cuda from torch_npu."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname and _npu_module(alias.name):
                # A module's path is literal here, so there are no aliases to resolve.
                start, _ = view.module.span(alias)
                old = Replacement(
                    start=start, end=start + len(alias.name), text=_npu_module(alias.name) or ""
                )
                yield view.rewrite(node, old, reason=_FROM.reason)
            elif alias.asname and alias.name.startswith("torch.cuda."):
                yield view.notice(node, _MISSING.filled(name=alias.name[len("torch.cuda.") :]))
        return
    if node.level or not (node.module or "").startswith("torch"):
        return
    moved_names, kept_names = _split(node)
    for alias in kept_names:
        if (node.module or "").startswith("torch.cuda"):
            yield view.notice(
                node, _MISSING.filled(name=f"{node.module}.{alias.name}"[len("torch.cuda.") :])
            )
    if not moved_names:
        return
    change = _rewritten(node, moved_names, kept_names, view)
    if change is not None:
        yield view.rewrite(node, change, reason=_FROM.reason)
    else:
        yield view.notice(node, _FROM)


def _npu_module(name: str) -> str | None:
    """The counterpart in torch_npu of a module of torch.cuda, or None."""
    if name == "torch.cuda":
        return "torch_npu.npu"
    if not name.startswith("torch.cuda."):
        return None
    rest = name[len("torch.cuda.") :]
    first, _, inner = rest.partition(".")
    if first == "amp" and (not inner or inner in _AMP_MODULES):
        return f"torch_npu.npu.{rest}"
    return f"torch_npu.npu.{rest}" if first in SUBMODULES and not inner else None


def _split(node: ast.ImportFrom) -> tuple[list[ast.alias], list[ast.alias]]:
    """Split the imported names into those that torch_npu has and those that it lacks."""
    if node.module == "torch":
        moved_names = [alias for alias in node.names if alias.name == "cuda"]
        return moved_names, [alias for alias in node.names if alias.name != "cuda"]
    module = _npu_module(node.module or "")
    if module is None:
        return [], list(node.names)
    below = module[len("torch_npu.npu") :].lstrip(".")
    moved_names, kept_names = [], []
    for alias in node.names:
        direct = below in ("", "amp") and alias.name != "*"
        dotted_name = f"{below}.{alias.name}" if below else alias.name
        is_in_torch_npu = (
            not direct or npu_counterpart(dotted_name) is not None or alias.name in SUBMODULES
        )
        (moved_names if is_in_torch_npu else kept_names).append(alias)
    return moved_names, kept_names


def _rewritten(
    node: ast.ImportFrom, moved_names: list[ast.alias], kept_names: list[ast.alias], view: View
) -> Replacement | None:
    if node.module == "torch":
        lines = [_statement("torch", kept_names)] if kept_names else []
        lines += [f"from torch_npu import npu as {alias.asname or 'cuda'}" for alias in moved_names]
    else:
        target = _npu_module(node.module or "") or ""
        if not kept_names and not any(alias.name in RENAMED for alias in moved_names):
            source = view.module.source(node)
            start = view.module.span(node)[0] + source.find(node.module or "", len("from"))
            return Replacement(start=start, end=start + len(node.module or ""), text=target)
        lines = [_statement(target, moved_names)]
        lines += [_statement(node.module or "", kept_names)] if kept_names else []
    return replace_import(view.module, node, lines)


def _statement(module: str, aliases: list[ast.alias]) -> str:
    parts: list[str] = []
    for alias in aliases:
        name = alias.name
        if module.startswith("torch_npu") and name in RENAMED:
            parts.append(f"{RENAMED[name]} as {alias.asname or name}")
        else:
            parts.append(f"{name} as {alias.asname}" if alias.asname else name)
    return f"from {module} import {', '.join(parts)}"
