"""Classifies the ops of a comparison: compute, cast, format change, communication, copy."""

import re
from functools import lru_cache
from typing import Final, Literal

from jumar.profiling.profile import COMMUNICATION
from jumar.profiling.views.casts import CASTS, FORMATS
from jumar.profiling.views.windows import COLLECTIVE_PREFIXES, MEMORY_COPIES

OpKind = Literal["compute", "cast", "format", "communication", "copy"]

_COPY_TYPES: Final = ("copy_", "clone", "contiguous", "copy")

DTYPES_16_BIT: Final = frozenset({"FLOAT16", "BF16", "BFLOAT16", "HALF"})
_OTHER_FLOATS: Final = ("BF16", "HALF", "DOUBLE", "HIF8")
DTYPES_32_BIT: Final = frozenset({"FLOAT", "FLOAT32"})


def split_list(text: str | None) -> list[str]:
    """Split a list such as `FLOAT;BF16`."""
    return text.split(";") if text else []


def conversion(kind: str, inputs: str | None, outputs: str | None) -> tuple[str, str]:
    """The dtypes from and to which an op converts; empty if unknown.

    The first input of torch's `copy_` is its destination; traces do not record outputs.
    """
    input_dtypes, output_dtypes = split_list(inputs), split_list(outputs)
    if _bare_type(kind) == "copy_" and len(input_dtypes) >= 2:
        return input_dtypes[1], input_dtypes[0]
    return (input_dtypes[0] if input_dtypes else ""), (output_dtypes[0] if output_dtypes else "")


@lru_cache(maxsize=65536)
def op_kind(
    kind: str | None, core: str | None, name: str, inputs: str | None, outputs: str | None
) -> OpKind:
    """The class of an op.

    A copy on the device is a cast if it changes the dtype, and otherwise a format change, since
    that is why torch copies.
    """
    bare_type = _bare_type(kind or "")
    if core == COMMUNICATION or (core is None and name.lower().startswith(COLLECTIVE_PREFIXES)):
        return "communication"
    if bare_type in CASTS:
        return "cast"
    if core in MEMORY_COPIES:
        return "copy"
    if bare_type in FORMATS:
        return "format"
    if bare_type in _COPY_TYPES:
        source, target = conversion(bare_type, inputs, outputs)
        return "cast" if source and target and source != target else "format"
    return "compute"


def _bare_type(kind: str) -> str:
    return kind.lower().removeprefix("aten::")


@lru_cache(maxsize=65536)
def base_type(kind: str) -> str:
    """The type without number, version and variant: `matmul` for `MatMulV2`.

    `ReduceSumD` is a variant of `ReduceSum`, and `add_` of `add`, but `Conv2D` is not a variant.
    """
    without_number = re.sub(r"(_\d*)+$", "", kind.removeprefix("aten::")) or kind
    return (re.sub(r"(V\d+D?|(?<=[a-zV])D)$", "", without_number) or without_number).lower()


@lru_cache(maxsize=65536)
def type_or_name(kind: str | None, name: str) -> str:
    """The type; if missing (Level 0), the name without its number."""
    return kind or re.sub(r"[_\d]+$", "", name) or name


def float_dtypes(types: str) -> frozenset[str]:
    """The floating-point dtypes among those of an op."""
    names = types.replace("|", ";").split(";")
    return frozenset(name for name in names if "FLOAT" in name or name in _OTHER_FLOATS)


def has_16_bit(types: str) -> bool:
    """Whether any dtype is a 16-bit float."""
    return not DTYPES_16_BIT.isdisjoint(float_dtypes(types))


def is_32_bit(types: str) -> bool:
    """Whether there are float dtypes, and all have 32 bits."""
    return float_dtypes(types) <= DTYPES_32_BIT and bool(float_dtypes(types))
