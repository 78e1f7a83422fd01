"""Gathers and scatters: the part of a tensor that they read or write."""

from typing import Final, NamedTuple

from jumar.profiling.views.shapes import Shape, volume

_GATHERS: Final = (
    *("gather", "gatherv2", "gatherv2d", "gathernd", "gatherelements", "gatherelementsv2"),
    *("index", "indexselect", "index_select", "embedding", "take", "take_along_dim"),
)
_BY_ROW: Final = (
    *("scatterupdate", "scatteradd", "scattersub", "scatterndupdate", "scatterndadd"),
    *("scatterndsub", "inplaceindexadd", "index_add", "index_add_", "index_copy", "index_copy_"),
)
"""Scatters whose third input has the rows to write."""
_BY_ELEMENT: Final = (
    *("scatter", "scatter_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_"),
    *("scatterelements", "scatterelementsv2"),
)
"""Scatters that write one element per index."""
_UNKNOWN: Final = ("indexput", "indexputv2", "index_put", "index_put_", "_index_put_impl_")
_ADDING: Final = ("add", "sub", "reduce")


class Touched(NamedTuple):
    """The tensors of a lookup, with the sizes of the parts that it touches."""

    inputs: list[Shape]
    output: Shape


def touched(kind: str, inputs: list[Shape], outputs: list[Shape]) -> Touched | None:
    """The tensors that a lookup touches; None if the shapes are insufficient.

    Args:
        kind: The op type in lower case, without `aten::`.
        inputs: Shapes of its inputs.
        outputs: Shapes of its outputs, which Kineto does not record.
    """
    tensors = [shape for shape in inputs if shape]
    is_gather = kind in _GATHERS
    accessed = _gathered(kind, tensors, outputs) if is_gather else _scattered(kind, tensors)
    if not tensors or not accessed:
        return None
    # Repeated rows come from a cache, so at most the whole tensor is touched.
    part = min(accessed, tensors[0], key=volume)
    is_read = is_gather or any(word in kind for word in _ADDING)
    table_index = inputs.index(tensors[0])
    read = [*inputs[:table_index], part if is_read else (0,), *inputs[table_index + 1 :]]
    return Touched(read, accessed if is_gather else part)


def is_lookup(kind: str) -> bool:
    """Whether an op type (lower case, without `aten::`) is a gather or scatter."""
    return kind in (*_GATHERS, *_BY_ROW, *_BY_ELEMENT, *_UNKNOWN)


def _gathered(kind: str, tensors: list[Shape], outputs: list[Shape]) -> Shape:
    """The shape of the gathered tensor; empty if unknown."""
    if outputs and outputs[0]:
        return outputs[0]
    if len(tensors) < 2:
        return ()
    if kind == "embedding":
        return (*tensors[1], *tensors[0][1:])
    # For the others the result depends on the axis, which is not recorded.
    return tensors[1] if kind in ("gather", "take", "take_along_dim") else ()


def _scattered(kind: str, tensors: list[Shape]) -> Shape:
    """The shape of the written tensor; empty if unknown."""
    if kind in _BY_ELEMENT and len(tensors) > 1:
        return tensors[1]
    return tensors[2] if kind in _BY_ROW and len(tensors) > 2 else ()
