"""Functions that a port inserts into a script, below its imports."""

import ast

from jumar.porting.npu.session_options import run_config_functions, session_config_function
from jumar.porting.rewriting.view import View

SESSION_CONFIG = "npu_session_config"
RUN_CONFIG = "npu_run_config"


def prelude(view: View, wanted: set[str]) -> tuple[list[str], set[str]]:
    """The functions that a module lacks, and the names of npu_bridge that they need.

    Args:
        view: The module.
        wanted: `SESSION_CONFIG` for the function of that name; `RUN_CONFIG` for the functions that
            the arguments of NPURunConfig call.
    """
    texts: list[str] = []
    needs: set[str] = set()
    if SESSION_CONFIG in wanted:
        needs.add("npu_config_proto")
        texts.append(
            session_config_function(
                view.options,
                name=SESSION_CONFIG,
                config_proto_name=view.npu("npu_config_proto"),
                indent=view.module.lines.indentation,
            )
        )
    if RUN_CONFIG in wanted:
        texts.append(run_config_functions(view.options, indent=view.module.lines.indentation))
    bindings = view.module.scopes.module.bindings
    functions: dict[str, str] = {}
    for text in texts:
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and node.name not in bindings:
                segment = ast.get_source_segment(text, node)
                assert segment is not None
                functions[node.name] = segment
    return list(functions.values()), needs if functions else set()
