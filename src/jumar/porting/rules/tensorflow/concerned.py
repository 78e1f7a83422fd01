"""Whether a module uses TensorFlow at all."""

import ast
import re

from jumar.porting.rewriting.view import View
from jumar.porting.script.module import Module

_LIBRARIES = ("tensorflow", "keras", "horovod", "tf_slim", "npu_bridge")


def is_concerned(view: View) -> bool:
    """Whether a module imports TensorFlow, or a module of the tree that does.

    Anything recognised by name alone (an environment variable, a configuration field) counts as
    TensorFlow's only there: launchers of other programs and scripts for JAX keep theirs.
    """
    module = view.module
    if _imports_one(module):
        return True
    # Launchers import what they start within the function that starts it.
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
    for name in sorted(names - {""}):
        path = module.project.find(name, module.path)
        other_module = module.project.module(path) if path and path != module.path else None
        if other_module is not None and _imports_one(other_module):
            return True
    return _serves_one(module)


def _serves_one(module: Module) -> bool:
    """Whether a script next to a module imports both TensorFlow and it, as with a configuration."""
    folder, _, file = module.path.rpartition("/")
    project, name = module.project, file.removesuffix(".py")
    importing = re.compile(rf"^\s*(?:from|import)\s+[.\w, ]*\b{re.escape(name)}\b", re.MULTILINE)
    for path in project.scripts_in(folder):
        other_module = project.module(path) if path != module.path else None
        if (
            other_module is not None
            and importing.search(other_module.text)
            and _imports_one(other_module)
        ):
            return True
    return False


def _imports_one(module: Module) -> bool:
    return any(module.imports(library) for library in _LIBRARIES)
