"""The shapes and dtypes of op arguments in PyTorch's traces, in msprof's notation."""

from functools import lru_cache
from typing import Any, Final

DTYPES: Final = {
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
"""msprof's names of tensor types; other types, such as `Scalar`, are not tensors."""


def shapes_and_types(dims: Any, types: Any) -> tuple[str, str]:
    """Shapes (`2,3;4`) and dtypes (`FLOAT;INT64`) of the tensors among an op's arguments.

    Args:
        dims: Shapes, as `[[2, 3], [4], []]` or torch_npu's text `2,3;4;`.
        types: Types, as `["float", "long int", "Scalar"]` or torch_npu's text.
    """
    if isinstance(dims, str) and isinstance(types, str):
        return _from_text(dims, types)
    if not isinstance(dims, list) or not isinstance(types, list):
        return "", ""
    shapes: list[str] = []
    dtypes: list[str] = []
    for shape, type_name in zip(dims, types, strict=False):
        dtype = DTYPES.get(type_name) if isinstance(type_name, str) else None
        if dtype is not None and isinstance(shape, list):
            shapes.append(",".join(str(size) for size in shape[:16]))
            dtypes.append(dtype)
        elif type_name == "TensorList" and isinstance(shape, list):
            tensors = [entry for entry in shape[:64] if isinstance(entry, list)]
            shapes.extend(",".join(str(size) for size in entry[:16]) for entry in tensors)
            dtypes.extend("" for _ in tensors)
    return ";".join(shapes), ";".join(dtypes)


@lru_cache(maxsize=4096)
def _from_text(dims: str, types: str) -> tuple[str, str]:
    """`shapes_and_types` of torch_npu's text."""
    pairs = zip(dims.split(";"), types.split(";"), strict=False)
    tensors = [
        (shape.strip().strip("[]"), DTYPES[name.strip()])
        for shape, name in pairs
        if name.strip() in DTYPES
    ]
    return ";".join(shape for shape, _ in tensors), ";".join(name for _, name in tensors)
