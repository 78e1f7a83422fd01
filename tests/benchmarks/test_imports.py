"""Benchmarks are run rarely, so a name of jumar that is gone would go unnoticed."""

import ast
from importlib import import_module
from importlib.util import find_spec

from tests.checkout import CHECKOUT


def test_names_that_benchmarks_import_from_jumar_exist() -> None:
    missing: list[str] = []
    count = 0
    for script in sorted((CHECKOUT / "benchmarks").rglob("*.py")):
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] != "jumar":
                continue
            assert node.module is not None
            module = import_module(node.module)
            for name in (alias.name for alias in node.names):
                count += 1
                is_module = hasattr(module, "__path__") and find_spec(f"{node.module}.{name}")
                if not (hasattr(module, name) or is_module):
                    missing.append(f"{script.name}:{node.lineno}: {node.module}.{name}")
    assert not missing, missing
    assert count > 100
