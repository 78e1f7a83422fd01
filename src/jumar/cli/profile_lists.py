"""Op types of profiles by the names that `modify_mixlist` takes."""

from functools import cache

_KERNELS_OF = ("mkldnn_", "cudnn_", "miopen_", "native_", "npu_", "_")
"""Prefix of the name of an op that torch passes on to a library."""


@cache
def list_name(kind: str) -> str:
    """The name by which an op type can be listed, or an empty string.

    A backward op follows its forward op, so it gets the forward op's name. An aten op gets the name
    of the CANN type that covers all forms of it: `addmm`, to which `linear` decomposes, has no
    effect if it is listed alone.
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
    """`_softmax_backward_data` as `softmax`, step by step."""
    names: list[str] = []
    for suffix in ("_data", "_backward", "_overrideable"):
        if name.endswith(suffix):
            name = name.removesuffix(suffix)
            names.append(name)
    is_shortened = True
    while is_shortened:
        is_shortened = False
        for prefix in _KERNELS_OF:
            if name.startswith(prefix) and len(name) > len(prefix):
                name = name.removeprefix(prefix)
                names.append(name)
                is_shortened = True
    return names


@cache
def _types_by_packet() -> dict[str, str]:
    """The first CANN type of each aten op, whatever its overload.

    Where several types stand for one op, as `BiasAdd` and `Add` do, it is torch's counterpart.
    """
    from jumar.precision.optypes import op_groups

    types: dict[str, str] = {}
    for group in sorted(op_groups(), key=lambda group: bool(group.shares)):
        for op in group.ops:
            types.setdefault(op.partition(".")[0], group.types[0])
    return types
