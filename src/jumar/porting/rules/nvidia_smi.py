"""Calls of nvidia-smi in scripts for any framework."""

import ast

from jumar.porting.rewriting import View


def runs_nvidia_smi(node: ast.Constant, view: View) -> bool:
    """Whether a string is an nvidia-smi command in a call that may run it."""
    if not isinstance(node.value, str) or not node.value.lstrip().startswith("nvidia-smi"):
        return False
    return any(isinstance(enclosing, ast.Call) for enclosing in view.module.scopes.ancestors(node))
