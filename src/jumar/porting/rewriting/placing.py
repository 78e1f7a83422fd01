"""Where a port adds imports and functions to a script."""

import ast

from jumar.porting.rewriting.changes import Replacement
from jumar.porting.rewriting.view import NPU_INIT, View
from jumar.porting.script.module import Module
from jumar.porting.script.nodes import walk

_DEVICE_CALLS = (
    "tensorflow.Session",
    "npu_bridge.",
    "torch.device",
    "torch.npu.",
    "torch.cuda.",
    "torch.set_default_device",
    "torch_npu.",
)
_STARTERS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.With, ast.For, ast.While)

_MAX_LINE_LENGTH = 100
"""Maximum length of an import on one line, which is then readable without scrolling."""


def import_lines(view: View, names: set[str]) -> list[str]:
    """The import statements that a module still lacks.

    Args:
        view: The module.
        names: Names of `npu_bridge.npu_init`; `module:name` for others; `module:` for `import
            module`.
    """
    missing: dict[str, list[str]] = {}
    import_statements: list[str] = []
    for name in sorted(names):
        module, colon, member = name.rpartition(":")
        if not colon:
            if not view.has(name):
                local = view.npu(name)
                missing.setdefault(NPU_INIT, []).append(
                    name if local == name else f"{name} as {local}"
                )
        elif not member:
            if not _imported(view.module, module, ""):
                import_statements.append(f"import {module}")
        elif not _imported(view.module, module, member):
            missing.setdefault(module, []).append(member)
    return import_statements + [
        _from_import(module, members) for module, members in missing.items()
    ]


def _from_import(module: str, members: list[str]) -> str:
    line = f"from {module} import {', '.join(members)}"
    if len(line) <= _MAX_LINE_LENGTH:
        return line
    return "\n".join([f"from {module} import (", *(f"    {member}," for member in members), ")"])


def addition(module: Module, imports: list[str], functions: list[str]) -> Replacement:
    """Insert imports, followed by functions, below the imports of a script."""
    newline = module.lines.newline
    beside_torch = imports == ["import torch_npu"] and not functions
    anchor = (_torch_import(module) if beside_torch else None) or _last_import(module)
    text = "".join(line.replace("\n", newline) + newline for line in imports)
    for function in functions:
        text += newline + newline + function.replace("\n", newline) + newline
    if anchor is None:
        position = _after_header(module)
        if functions and module.text[position:].strip():
            text += newline
    else:
        position = module.lines.line_end(_end_of_line_of(module, anchor))
    if position and not module.text[:position].endswith(("\n", "\r")):
        text = newline + text[: -len(newline)]
    return Replacement(start=position, end=position, text=text, side="close")


def _torch_import(module: Module) -> ast.stmt | None:
    """The last PyTorch import at the start of a script.

    torch_npu is imported there, before other imported modules can create devices.
    """
    last: ast.stmt | None = None
    for statement in module.tree.body:
        names: list[str] = []
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            names = [statement.module or ""]
        if any(name.partition(".")[0] in ("torch", "torch_npu") for name in names):
            last = statement
        elif last is not None:
            break
    return last


def _last_import(module: Module) -> ast.stmt | None:
    """The last import at the start of a script.

    Other statements may be between the imports (`os.environ[...] = ...`, `sys.path.insert`), but no
    function, class, loop or `with`: their code may already need the NPU's imports.
    """
    last: ast.stmt | None = None
    for statement in module.tree.body:
        if _is_import(statement):
            last = statement
        elif (
            isinstance(statement, _STARTERS)
            or _is_main_guard(statement)
            or (last is not None and _uses_the_device(module, statement))
        ):
            break
    return last


def _is_import(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Try):
        return all(isinstance(inner, ast.Import | ast.ImportFrom) for inner in statement.body)
    return isinstance(statement, ast.Import | ast.ImportFrom)


def _is_main_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and any(
        isinstance(node, ast.Name) and node.id == "__name__" for node in walk(statement.test)
    )


def _uses_the_device(module: Module, statement: ast.stmt) -> bool:
    return any(
        isinstance(node, ast.Call) and (module.name_of(node.func) or "").startswith(_DEVICE_CALLS)
        for node in walk(statement)
    )


def _after_header(module: Module) -> int:
    """The offset after shebang, coding cookie, comments and docstring."""
    body = module.tree.body
    if body and ast.get_docstring(module.tree, clean=False) is not None:
        return module.lines.line_end(_end_of_line_of(module, body[0]))
    position = 0
    while position < len(module.text):
        end = module.lines.line_end(position)
        if not module.text[position:end].lstrip(" \t\f").startswith("#"):
            break
        position = end
    return position


def _end_of_line_of(module: Module, statement: ast.stmt) -> int:
    """The end of the last statement that starts on the line on which a statement ends."""
    _, end = module.span(statement)
    while True:
        line_end = module.lines.line_end(end)
        later = [
            module.span(sibling)[1]
            for sibling in module.tree.body
            if end <= module.span(sibling)[0] < line_end
        ]
        if not later:
            return end
        end = max(later)


def _imported(module: Module, name: str, member: str) -> bool:
    """Whether the module's top level imports a module or member under the name that new code uses.

    `import os as system` does not bind `os`.
    """
    return any(
        binding.kind == "import" and binding.module == name and binding.member == member
        for binding in module.scopes.module.bindings.get(member or name.partition(".")[0], [])
    )
