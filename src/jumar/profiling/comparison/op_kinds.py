"""The class of an op in a comparison: compute, cast, format change, communication, copy."""

import re
from functools import lru_cache
from typing import Final, Literal

from jumar.profiling.profile import COMMUNICATION
from jumar.profiling.views.casts import CASTS, FORMATS

OpKind = Literal["compute", "cast", "format", "communication", "copy"]

_COPIES: Final = ("CUDA_MEMCPY", "CUDA_MEMSET")
_MOVES: Final = ("copy_", "clone", "contiguous", "copy")
TALKS: Final = ("hcom_", "nccl", "gloo:", "c10d::")
"""How the names of collectives begin, in small letters."""

NARROW: Final = frozenset({"FLOAT16", "BF16", "BFLOAT16", "HALF"})
_OTHERS: Final = ("BF16", "HALF", "DOUBLE", "HIF8")
WIDE: Final = frozenset({"FLOAT", "FLOAT32"})


def words(text: str | None) -> list[str]:
    """`FLOAT;BF16` as a list."""
    return text.split(";") if text else []


def conversion(kind: str, inputs: str | None, outputs: str | None) -> tuple[str, str]:
    """The dtypes between which an op converts; empty if the file lacks them.

    torch's `copy_` has its destination as the first of its inputs, and traces name no outputs.
    """
    taken, given = words(inputs), words(outputs)
    if _plain(kind) == "copy_" and len(taken) >= 2:
        return taken[1], taken[0]
    return (taken[0] if taken else ""), (given[0] if given else "")


@lru_cache(maxsize=65536)
def op_kind(
    kind: str | None, core: str | None, name: str, inputs: str | None, outputs: str | None
) -> OpKind:
    """The class of an op.

    A copy on the device that changes the dtype is a cast whatever unit did it; one that does not
    is a change of layout, which is what torch copies for.
    """
    plain = _plain(kind or "")
    if core == COMMUNICATION or (core is None and name.lower().startswith(TALKS)):
        return "communication"
    if plain in CASTS:
        return "cast"
    if core in _COPIES:
        return "copy"
    if plain in FORMATS:
        return "format"
    if plain in _MOVES:
        source, target = conversion(plain, inputs, outputs)
        return "cast" if source and target and source != target else "format"
    return "compute"


def _plain(kind: str) -> str:
    return kind.lower().removeprefix("aten::")


@lru_cache(maxsize=65536)
def base_type(kind: str) -> str:
    """The type without number, version or variant: `MatMulV2` is `matmul`.

    `ReduceSumD` is a variant of `ReduceSum`, and torch's `add_` one of `add`; `Conv2D` is none.
    """
    plain = re.sub(r"(_\d*)+$", "", kind.removeprefix("aten::")) or kind
    return (re.sub(r"(V\d+D?|(?<=[a-zV])D)$", "", plain) or plain).lower()


@lru_cache(maxsize=65536)
def type_or_name(kind: str | None, name: str) -> str:
    """The type; if a Level 0 file has none, the name without its number."""
    return kind or re.sub(r"[_\d]+$", "", name) or name


def floats(types: str) -> frozenset[str]:
    """The float dtypes among those of an op."""
    names = types.replace("|", ";").split(";")
    return frozenset(name for name in names if "FLOAT" in name or name in _OTHERS)


def is_narrow(types: str) -> bool:
    """Whether any of the dtypes is a 16-bit float."""
    return not NARROW.isdisjoint(floats(types))


def is_wide(types: str) -> bool:
    """Whether all floats have 32 bits."""
    return floats(types) <= WIDE and bool(floats(types))
