"""PyTorch's dtype names and op arguments, in msprof's terms."""

from functools import lru_cache
from typing import Any, Final

TYPES: Final = {
    "float": "FLOAT",
    "double": "DOUBLE",
    "c10::Half": "FLOAT16",
    "c10::BFloat16": "BF16",
    "long": "INT64",
    "long int": "INT64",
    "int": "INT32",
    "short": "INT16",
    "short int": "INT16",
    "signed char": "INT8",
    "unsigned char": "UINT8",
    "bool": "BOOL",
    "c10::complex<float>": "COMPLEX64",
    "c10::complex<double>": "COMPLEX128",
    "c10::Float8_e4m3fn": "FLOAT8_E4M3FN",
    "c10::Float8_e5m2": "FLOAT8_E5M2",
}
"""Types of tensors; arguments of other types (`Scalar`, `ScalarList`) are not tensors."""


def shapes_and_types(dims: Any, types: Any) -> tuple[str, str]:
    """Shapes `2,3;4` and types `FLOAT;INT64` of the tensors among an op's arguments.

    Args:
        dims: `[[2, 3], [4], []]`, or torch_npu's text `2,3;4;`.
        types: `["float", "long int", "Scalar"]`, or torch_npu's text.
    """
    if isinstance(dims, str) and isinstance(types, str):
        return _of_text(dims, types)
    if not isinstance(dims, list) or not isinstance(types, list):
        return "", ""
    shapes: list[str] = []
    names: list[str] = []
    for shape, name in zip(dims, types, strict=False):
        known = TYPES.get(name) if isinstance(name, str) else None
        if known is not None and isinstance(shape, list):
            shapes.append(",".join(str(size) for size in shape[:16]))
            names.append(known)
        elif name == "TensorList" and isinstance(shape, list):
            tensors = [entry for entry in shape[:64] if isinstance(entry, list)]
            shapes.extend(",".join(str(size) for size in entry[:16]) for entry in tensors)
            names.extend("" for _ in tensors)
    return ";".join(shapes), ";".join(names)


@lru_cache(maxsize=4096)
def _of_text(dims: str, types: str) -> tuple[str, str]:
    """The same from text, in which tensors of other widths have torch_npu's own names."""
    pairs = zip(dims.split(";"), types.split(";"), strict=False)
    kept = [
        (shape.strip().strip("[]"), TYPES[name.strip()])
        for shape, name in pairs
        if name.strip() in TYPES
    ]
    return ";".join(shape for shape, _ in kept), ";".join(name for _, name in kept)
