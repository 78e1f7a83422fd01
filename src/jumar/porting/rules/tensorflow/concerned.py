"""Whether a module uses TensorFlow at all."""

from jumar.porting.rewriting.view import View
from jumar.porting.script.module import Module

_LIBRARIES = ("tensorflow", "keras", "horovod", "tf_slim", "npu_bridge")


def is_concerned(view: View) -> bool:
    """Whether a module imports TensorFlow, or a module of the tree that does.

    What is known by its name alone (an environment variable, a field of a configuration) is only
    TensorFlow's there: a launcher for other programs and a script for JAX keep theirs.
    """
    module = view.module
    if _imports_one(module):
        return True
    names = [
        binding.module
        for bindings in module.scopes.module.bindings.values()
        for binding in bindings
        if binding.kind == "import"
    ]
    for name in {*names, *module.scopes.module.stars}:
        path = module.project.find(name, module.path)
        other = module.project.module(path) if path and path != module.path else None
        if other is not None and _imports_one(other):
            return True
    return False


def _imports_one(module: Module) -> bool:
    return any(module.imports(library) for library in _LIBRARIES)
