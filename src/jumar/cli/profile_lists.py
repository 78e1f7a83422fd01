"""The names of profiles' op types in `modify_mixlist` files."""

from functools import cache

from jumar.precision.optypes import groups_by_type, op_groups

_LIBRARY_PREFIXES = ("mkldnn_", "cudnn_", "miopen_", "native_", "npu_", "_")
"""Prefixes of ops that torch delegates to a library."""


@cache
def list_name(kind: str) -> str:
    """Return the name that lists an op type, or an empty string if there is none.

    A backward op has the name of its forward op. An aten op has the name of the CANN type that
    covers all its forms: listing only `addmm`, into which `linear` decomposes, has no effect.
    """
    group = groups_by_type().get(kind)
    if group is not None:
        if not group.ops:
            return ""
        return kind if kind in group.types else group.types[0]
    types = _types_by_packet()
    plain = kind.removeprefix("aten::").removesuffix("_").partition(".")[0]
    for name in (plain, *_shortened_names(plain)):
        if name in types:
            return types[name]
    return ""


def _shortened_names(name: str) -> list[str]:
    """Return the names from shortening a name step by step: `_softmax_backward` to `softmax`."""
    names: list[str] = []
    for suffix in ("_data", "_backward", "_overrideable"):
        if name.endswith(suffix):
            name = name.removesuffix(suffix)
            names.append(name)
    while prefix := next((p for p in _LIBRARY_PREFIXES if name.startswith(p) and name != p), ""):
        name = name.removeprefix(prefix)
        names.append(name)
    return names


@cache
def _types_by_packet() -> dict[str, str]:
    """Return the first CANN type of each aten op, by the op's name without overload.

    If an op has several types, such as `BiasAdd` and `Add`, it is the one that torch uses.
    """
    types: dict[str, str] = {}
    for group in sorted(op_groups(), key=lambda group: bool(group.shares)):
        for op in group.ops:
            types.setdefault(op.partition(".")[0], group.types[0])
    return types
