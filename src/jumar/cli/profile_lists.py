"""The names under which `modify_mixlist` lists the op types of profiles."""

from functools import cache

_LIBRARY_PREFIXES = ("mkldnn_", "cudnn_", "miopen_", "native_", "npu_", "_")
"""Prefixes of ops that torch delegates to a library."""


@cache
def list_name(kind: str) -> str:
    """The name under which an op type can be listed, or an empty string.

    A backward op is listed by its forward op. An aten op is listed by the CANN type that covers all
    its forms: listing only `addmm`, into which `linear` decomposes, has no effect.
    """
    from jumar.precision.optypes import groups_by_type

    group = groups_by_type().get(kind)
    if group is not None:
        if not group.ops:
            return ""
        return kind if kind in group.types else group.types[0]
    types = _types_by_packet()
    plain = kind.removeprefix("aten::").removesuffix("_").partition(".")[0]
    for name in (plain, *_shorter(plain)):
        if name in types:
            return types[name]
    return ""


def _shorter(name: str) -> list[str]:
    """The name shortened step by step: `_softmax_backward_data` to `softmax`."""
    names: list[str] = []
    for suffix in ("_data", "_backward", "_overrideable"):
        if name.endswith(suffix):
            name = name.removesuffix(suffix)
            names.append(name)
    is_shortened = True
    while is_shortened:
        is_shortened = False
        for prefix in _LIBRARY_PREFIXES:
            if name.startswith(prefix) and len(name) > len(prefix):
                name = name.removeprefix(prefix)
                names.append(name)
                is_shortened = True
    return names


@cache
def _types_by_packet() -> dict[str, str]:
    """The first CANN type of each aten op, by its name without overload.

    If several types stand for one op, as `BiasAdd` and `Add` do, it is the one that torch uses.
    """
    from jumar.precision.optypes import op_groups

    types: dict[str, str] = {}
    for group in sorted(op_groups(), key=lambda group: bool(group.shares)):
        for op in group.ops:
            types.setdefault(op.partition(".")[0], group.types[0])
    return types
