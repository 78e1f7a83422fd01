"""Arguments of an op of PyTorch in msprof's words."""

import pytest

from jumar.profiling.reading.traces.kineto_types import shapes_and_types


@pytest.mark.parametrize(
    ("dims", "types", "expected"),
    [
        ([[2, 3], [], [4]], ["float", "long int", "c10::Half"], ("2,3;;4", "FLOAT;INT64;FLOAT16")),
        # A scalar is not a tensor, in any position.
        ([[], [5, 6]], ["Scalar", "double"], ("5,6", "DOUBLE")),
        ([[2], 7], ["float", "float"], ("2", "FLOAT")),
        ([[2], [3]], ["float", None], ("2", "FLOAT")),
        ([[2], [3]], ["float"], ("2", "FLOAT")),
        ([[[1, 2], "x", [3]]], ["TensorList"], ("1,2;3", ";")),
        ([5], ["TensorList"], ("", "")),
        (None, ["float"], ("", "")),
        ([[2]], None, ("", "")),
        ("2,3;4;", ["float"], ("", "")),
        ([list(range(17))], ["float"], (",".join(map(str, range(16))), "FLOAT")),
        ([[[1]] * 65], ["TensorList"], (";".join(["1"] * 64), ";" * 63)),
        ([[list(range(17))]], ["TensorList"], (",".join(map(str, range(16))), "")),
        ("2,3;[4, 5]; ;6", "float;double; bool;Scalar", ("2,3;4, 5;", "FLOAT;DOUBLE;BOOL")),
    ],
)
def test_shapes_and_types_are_parsed_for_tensors(
    dims: object, types: object, expected: tuple[str, str]
) -> None:
    assert shapes_and_types(dims, types) == expected
