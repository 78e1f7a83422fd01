"""A gather or scatter costs the rows that it touches, not the tensor that they lie in."""

import pytest

from jumar.profiling.views.lookups import is_lookup
from jumar.profiling.views.op_costs import cost

TABLE = "100000,64"


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs", "flops", "moved"),
    [
        # Rows read and written, an index of eight bytes for each, and the number of the axis.
        ("GatherV2", f"{TABLE};8,16;1", "8,16,64", 8192, 4 * 8192 * 2 + 128 * 8 + 8),
        # Of rows that are asked for often, each is read from memory once.
        ("GatherV2", "2,64;1000;1", "1000,64", 64000, 4 * (128 + 64000) + 8 * 1001),
        ("GatherElementsV2", f"{TABLE};10,64", "10,64", 640, 4 * 640 * 2 + 8 * 640),
        # Of several outputs the first has the rows.
        ("GatherElementsV2", f"{TABLE};10,64", "10,64;3", 640, None),
        ("Index", f"{TABLE};2;2;30", "30,64", 1920, 4 * 1920 * 2 + 8 * 34),
        # Kineto records no outputs.
        ("aten::embedding", f"{TABLE};8,16", None, 8192, 4 * 8192 * 2 + 8 * 128),
        ("aten::gather", f"{TABLE};;10,64;", None, 640, None),
        ("aten::take", f"{TABLE};50", None, 50, 4 * 50 * 2 + 8 * 50),
        # What is added to is read and written, what is replaced is written.
        ("ScatterAdd", f"{TABLE};10;10,64", TABLE, 640, 4 * 640 * 3 + 80 - 4 * 640 + 8 * 640),
        ("ScatterUpdate", f"{TABLE};10;10,64", TABLE, 640, 4 * 640 + 80 + 8 * 640),
        ("ScatterElementsV2", f"{TABLE};10,64;10,64", TABLE, 640, 4 * 640 + 2 * 8 * 640),
        ("aten::scatter_add_", f"{TABLE};10,64;10,64", None, 640, 4 * 640 * 2 + 2 * 8 * 640),
    ],
)
def test_only_touched_rows_count(
    kind: str, inputs: str, outputs: str | None, flops: int, moved: int | None
) -> None:
    told = cost(kind, inputs, "FLOAT;INT64", None, outputs, "FLOAT" if outputs else None)
    assert told.flops == flops
    assert not told.cube
    if moved is not None:
        assert told.bytes == moved


def test_repeatedly_written_rows_count_once() -> None:
    told = cost("ScatterAdd", "2,64;1000;1000,64", "FLOAT;INT32;FLOAT", None, "2,64", "FLOAT")
    assert told.bytes == 4 * (2 * 128 + 64000 + 1000)
    assert told.flops == 128


def test_unknown_output_dtype_is_that_of_the_table() -> None:
    told = cost("aten::embedding", f"{TABLE};10", "BF16;INT64", None, None, None)
    assert told.bytes == 2 * 640 * 2 + 80


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        # The axis is a number, and decides how much is read.
        ("aten::index_select", f"{TABLE};;10"),
        ("aten::index", f"{TABLE};"),
        # Which of its tensors contains the written values differs.
        ("IndexPutV2", f"{TABLE};10,64;2;2;10"),
        ("aten::index_put_", f"{TABLE};;10,64"),
        ("ScatterAdd", f"{TABLE};10"),
        ("aten::embedding", TABLE),
        ("GatherV2", ""),
    ],
)
def test_there_is_no_estimate_without_sufficient_shapes(kind: str, inputs: str) -> None:
    told = cost(kind, inputs, "FLOAT;INT64", None, None, None)
    assert (told.flops, told.bytes) == (None, None)


def test_op_that_writes_its_whole_output_is_not_a_lookup() -> None:
    for kind in ("embeddingdensegradv2", "scatternd", "onehot", "gathermatmul", "concatd", "slice"):
        assert not is_lookup(kind)
    told = cost("EmbeddingDenseGradV2", "10,64;10", "FLOAT;INT32", None, TABLE, "FLOAT")
    assert told.bytes == 4 * (640 + 10 + 6_400_000)
