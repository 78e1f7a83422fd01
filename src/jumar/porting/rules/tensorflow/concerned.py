"""Whether a module uses TensorFlow."""

import ast
import re

from jumar.porting.rewriting import View
from jumar.porting.script.module import Module

_LIBRARIES = ("tensorflow", "keras", "horovod", "tf_slim", "npu_bridge")


def uses_tensorflow(view: View) -> bool:
    """Whether a module imports TensorFlow, or a module of the tree that does.

    Names that alone prove nothing (an environment variable, a configuration field) are attributed
    to TensorFlow only in such modules, not in launchers of other programs or scripts for JAX.
    """
    module = view.module
    if _imports_tensorflow(module):
        return True
    # Launchers import the modules that they start within functions.
    names: set[str] = set()
    for node in module.scopes.nodes:
        if isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            dot = "" if base.endswith(".") else "."
            names |= {base, *(f"{base}{dot}{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    if any(name.partition(".")[0] in _LIBRARIES for name in names):
        return True
    paths = (module.project.find(name, module.path) for name in sorted(names - {""}))
    imported = (module.project.module(path) for path in paths if path and path != module.path)
    return any(
        other is not None and _imports_tensorflow(other) for other in imported
    ) or _is_used_with_tensorflow(module)


def _is_used_with_tensorflow(module: Module) -> bool:
    """Whether a script in the same folder imports TensorFlow and the module: a configuration."""
    folder, _, file = module.path.rpartition("/")
    project, name = module.project, file.removesuffix(".py")
    importing = re.compile(rf"^\s*(?:from|import)\s+[.\w, ]*\b{re.escape(name)}\b", re.MULTILINE)
    others = (project.module(path) for path in project.scripts_in(folder) if path != module.path)
    return any(
        other is not None and importing.search(other.text) and _imports_tensorflow(other)
        for other in others
    )


def _imports_tensorflow(module: Module) -> bool:
    return any(module.imports(library) for library in _LIBRARIES)
