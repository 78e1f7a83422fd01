"""The part of the looked-up tensor that gathers and scatters touch: some of its rows."""

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
"""Scatters whose third tensor holds the rows."""
_BY_ELEMENT: Final = (
    *("scatter", "scatter_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_"),
    *("scatterelements", "scatterelementsv2"),
)
"""Scatters that write an element for each index."""
_UNTOLD: Final = ("indexput", "indexputv2", "index_put", "index_put_", "_index_put_impl_")
_ADDING: Final = ("add", "sub", "reduce")


class Touched(NamedTuple):
    """The tensors of a lookup, each as large as the part that the op touches."""

    inputs: list[Shape]
    output: Shape


def touched(kind: str, inputs: list[Shape], outputs: list[Shape]) -> Touched | None:
    """What a lookup touches; None if the shapes are insufficient.

    Args:
        kind: The type of the op, in small letters, without `aten::`.
        inputs: Shapes of its inputs.
        outputs: Shapes of its outputs, of which Kineto gives none.
    """
    known = [shape for shape in inputs if shape]
    gathers = kind in _GATHERS
    some = _gathered(kind, known, outputs) if gathers else _scattered(kind, known)
    if not known or not some:
        return None
    # Rows that are asked for again come from a cache: no more than the tensor is touched.
    part = min(some, known[0], key=volume)
    reads = gathers or any(word in kind for word in _ADDING)
    table = inputs.index(known[0])
    read = [*inputs[:table], part if reads else (0,), *inputs[table + 1 :]]
    return Touched(read, some if gathers else part)


def is_lookup(kind: str) -> bool:
    """Whether an op of a type (lower case, without `aten::`) reads or writes some rows."""
    return kind in (*_GATHERS, *_BY_ROW, *_BY_ELEMENT, *_UNTOLD)


def _gathered(kind: str, known: list[Shape], outputs: list[Shape]) -> Shape:
    """The shape of the gathered tensor; empty if unknown."""
    if outputs and outputs[0]:
        return outputs[0]
    if len(known) < 2:
        return ()
    if kind == "embedding":
        return (*known[1], *known[0][1:])
    # For the others the axis counts, which is a number that no shape tells.
    return known[1] if kind in ("gather", "take", "take_along_dim") else ()


def _scattered(kind: str, known: list[Shape]) -> Shape:
    """The shape of the written tensor; empty if unknown."""
    if kind in _BY_ELEMENT and len(known) > 1:
        return known[1]
    return known[2] if kind in _BY_ROW and len(known) > 2 else ()
