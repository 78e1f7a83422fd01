"""Ranks in ported code, which reads them from the environment: without them, there is one rank."""

import ast

from jumar.porting.rewriting import View

RANK_IMPORTS = ("os:",)
_OWN_RANK = ("RANK_ID", "get_rank_id", "hvd.rank", "hvd.local_rank", "get_npu_rank_id")


def _os_name(view: View) -> str:
    """The script's name for the module `os`."""
    names = (
        name
        for name, bindings in view.module.scopes.module.bindings.items()
        for binding in bindings
        if binding.kind == "import" and binding.module == "os" and not binding.member
    )
    return next(names, "os")


def rank_size(view: View) -> str:
    """An expression for the number of ranks."""
    return f'int({_os_name(view)}.getenv("RANK_SIZE", "1"))'


def rank_id(view: View) -> str:
    """An expression for the index of this rank, from 0."""
    return f'int({_os_name(view)}.getenv("RANK_ID", "0"))'


def local_rank_id(view: View) -> str:
    """An expression for the index of this rank on its server, from 0.

    Ranks may have devices 4 to 7 of a server: DEVICE_INDEX counts the ranks, as Horovod does.
    """
    return f'int({_os_name(view)}.getenv("DEVICE_INDEX", "0"))'


def several_ranks(view: View) -> str:
    """An expression for whether there is more than one rank."""
    return f"{rank_size(view)} > 1"


def tensorflow_name(view: View) -> str | None:
    """The script's name for TensorFlow; None if it only imports parts of it."""
    for name in view.module.scopes.module.bindings:
        if view.module.exported(name, frozenset()) == "tensorflow":
            return name
    for node in view.module.scopes.nodes:
        # `from ops import *` may import it from another file of the tree.
        if isinstance(node, ast.Name) and view.module.name_of(node) == "tensorflow":
            return node.id
    return None


def queries_rank(view: View) -> bool:
    """Whether a script queries its own rank, and so may shard its data itself."""
    return any(word in view.module.text for word in _OWN_RANK)
