"""Outputs and operations of recorded ops, against what the ops really gave and torch's counter."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from jumar.training.profiling.layers import Event
from jumar.training.profiling.work import work_of


def recorded(do: Callable[[], object], folder: Path) -> list[Event]:
    """The events of torch.profiler, as a capture has them."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, record_shapes=True) as profiler:
        do()
    file = folder / "trace.json"
    profiler.export_chrome_trace(str(file))
    events: list[Event] = json.loads(file.read_text())["traceEvents"]
    return events


def of_op(events: list[Event], name: str) -> dict[str, Any]:
    """The one row of an op."""
    (event,) = [one for one in events if one.get("name") == name]
    number = event["args"]["External id"]
    return work_of(events).row(by_predicate=pl.col("correlation") == number, named=True)


def test_operation_counts_match_torchs(tmp_path: Path) -> None:
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.ConvTranspose2d(8, 6, 4, stride=2),
        nn.Flatten(),
        nn.Linear(6 * 18 * 18, 10),
    )
    picture = torch.ones(2, 3, 16, 16)

    def step() -> None:
        net(picture).sum().backward()

    with FlopCounterMode(display=False) as counter:
        step()
    result = work_of(recorded(step, tmp_path))
    assert result["flops"].sum() == counter.get_total_flops() > 0


def test_work_is_counted_at_the_executing_op(tmp_path: Path) -> None:
    picture, weight = torch.ones(1, 3, 9, 9), torch.ones(4, 3, 3, 3)
    events = recorded(lambda: torch.conv2d(picture, weight, stride=2), tmp_path)
    outer = of_op(events, "aten::conv2d")
    assert (outer["flops"], outer["output_shapes"]) == (0, None)
    inner = [row for row in work_of(events).iter_rows(named=True) if row["flops"]]
    assert [(row["output_shapes"], row["flops"]) for row in inner] == [
        ("1,4,4,4", 2 * 4 * 4 * 4 * 3 * 3 * 3)
    ]


@pytest.mark.parametrize(
    ("name", "do"),
    [
        ("aten::mul", lambda x: x * x.double()),
        ("aten::sum", lambda x: x.sum(dim=(1, 2), keepdim=True)),
        ("aten::mean", lambda x: x.mean(-1, dtype=torch.float64)),
        ("aten::_to_copy", lambda x: x.to(torch.bfloat16)),
        ("aten::topk", lambda x: x.topk(2, dim=1)),
        ("aten::max_pool2d_with_indices", lambda x: nn.functional.max_pool2d(x, 2)),
        ("aten::bmm", lambda x: torch.bmm(x, x.transpose(1, 2))),
    ],
)
def test_outputs_match_the_op(name: str, do: Callable[[Tensor], Any], tmp_path: Path) -> None:
    argument = torch.ones(2, 5, 6)
    gave = do(argument)
    outputs = gave if isinstance(gave, tuple) else (gave,)
    row = of_op(recorded(lambda: do(argument), tmp_path), name)
    shapes = [",".join(map(str, one.shape)) for one in outputs]
    # Pooling gives its indices besides, which the caller does not see.
    assert row["output_shapes"].split(";")[: len(shapes)] == shapes
    words = {torch.float32: "FLOAT", torch.float64: "DOUBLE", torch.bfloat16: "BF16"}
    assert row["output_types"].split(";")[0] == words[outputs[0].dtype]


def test_inferring_outputs_draws_no_random_numbers(tmp_path: Path) -> None:
    events = recorded(lambda: nn.functional.dropout(torch.ones(64), 0.5), tmp_path)
    before = torch.get_rng_state()
    assert work_of(events).height
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "args",
    [
        {"Input Dims": [[2]], "Input type": ["float"], "Concrete Inputs": [""]},
        {"Input Dims": "2", "Input type": None},
        {"Input Dims": [[-1]], "Input type": ["float"], "Concrete Inputs": ["["]},
        {"Input Dims": [[2], []], "Input type": ["float"], "Concrete Inputs": [""]},
        {"Input Dims": [[2], [2], []], "Input type": ["float", "float", "Scalar"]},
    ],
)
@pytest.mark.parametrize("name", ["aten::add", "aten::no_such_op", "my::op", "aten::_"])
def test_op_with_too_little_information_has_no_row_and_no_error(
    name: str, args: dict[str, Any]
) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": name, "ts": 1, "dur": 1}
    assert work_of([{**event, "args": {**args, "External id": 1}}]).height == 0


def op(
    name: str, dims: list[Any], types: list[str], values: list[str], number: int = 7, **more: int
) -> Event:
    arguments = {"Input Dims": dims, "Input type": types, "Concrete Inputs": values}
    event: Event = {"ph": "X", "cat": "cpu_op", "name": name, "ts": 1, "dur": 1, "pid": 1, "tid": 1}
    return {**event, **more, "args": {**arguments, "External id": number}}


NONE, ONES = "", ["", ""]
FLOATS = ["float"] * 3
STRIDED = ["[2, 2]", "[0, 0]", "[1, 1]"]
LISTS = ["ScalarList"] * 3
CONVOLVED = ["float", "float", NONE, *LISTS, "Scalar", "ScalarList", "Scalar"]
BACKWARD = [*FLOATS, "ScalarList", *LISTS, "Scalar", "ScalarList", "Scalar", "ScalarList"]
SIDE, RESULT, WEIGHT = [1, 3, 9, 9], [1, 4, 4, 4], [4, 3, 3, 3]
ONCE = 2 * 4 * 4 * 4 * 3 * 3 * 3


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (op("aten::mm", [[2, 3], [3, 4]], FLOATS[:2], ONES), ("2,4", "FLOAT", 2 * 2 * 3 * 4)),
        (
            op(
                "aten::addmm",
                [[4], [2, 3], [3, 4], [], []],
                [*FLOATS, "Scalar", "Scalar"],
                ["", "", "", "1", "1"],
            ),
            ("2,4", "FLOAT", 2 * 2 * 3 * 4),
        ),
        (
            op(
                "aten::baddbmm",
                [[5, 2, 4], [5, 2, 3], [5, 3, 4], [], []],
                ["double"] * 3 + ["Scalar"] * 2,
                ["", "", "", "1", "1"],
            ),
            ("5,2,4", "DOUBLE", 2 * 5 * 2 * 3 * 4),
        ),
        (
            op("aten::bmm", [[5, 2, 3], [5, 3, 4]], ["c10::Half"] * 2, ONES),
            ("5,2,4", "FLOAT16", 2 * 5 * 2 * 3 * 4),
        ),
        (op("aten::relu", [[2, 3]], ["c10::BFloat16"], [""]), ("2,3", "BF16", None)),
        (
            op(
                "aten::convolution",
                [SIDE, WEIGHT, *[[]] * 7],
                CONVOLVED,
                ["", "", "", *STRIDED, "False", "[0, 0]", "1"],
            ),
            ("1,4,4,4", "FLOAT", ONCE),
        ),
        (
            # Transposed: every element of what it takes is applied to all weights.
            op(
                "aten::convolution",
                [RESULT, WEIGHT, *[[]] * 7],
                CONVOLVED,
                ["", "", "", *STRIDED, "True", "[0, 0]", "1"],
            ),
            ("1,3,9,9", "FLOAT", ONCE),
        ),
        (
            op(
                "aten::mkldnn_convolution",
                [SIDE, WEIGHT, *[[]] * 5],
                ["float", "float", NONE, *LISTS, "Scalar"],
                ["", "", "", "[0, 0]", "[2, 2]", "[1, 1]", "1"],
            ),
            ("1,4,4,4", "FLOAT", ONCE),
        ),
        (
            op(
                "aten::convolution_backward",
                [RESULT, SIDE, WEIGHT, *[[]] * 8],
                BACKWARD,
                ["", "", "", "[4]", *STRIDED, "False", "[0, 0]", "1", "[True, True, False]"],
            ),
            ("1,3,9,9;4,3,3,3", "FLOAT;FLOAT", 2 * ONCE),
        ),
        (
            op(
                "aten::convolution_backward",
                [RESULT, SIDE, WEIGHT, *[[]] * 8],
                BACKWARD,
                ["", "", "", "[4]", *STRIDED, "False", "[0, 0]", "1", "[False, True, True]"],
            ),
            ("4,3,3,3;4", "FLOAT;FLOAT", ONCE),
        ),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else "",
)
def test_outputs_and_operations_follow_from_the_arguments(
    event: Event, expected: tuple[str, str, int | None]
) -> None:
    (row,) = work_of([event]).rows()
    assert row == (7, *expected)


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (0, "UINT8"),
        (1, "INT8"),
        (2, "INT16"),
        (3, "INT32"),
        (4, "INT64"),
        (5, "FLOAT16"),
        (6, "FLOAT"),
        (7, "DOUBLE"),
        (11, "BOOL"),
        (15, "BF16"),
    ],
)
def test_types_are_numbered_as_in_c10(number: int, word: str) -> None:
    """As `ScalarType.h` of c10 counts them."""
    event = op(
        "aten::_to_copy",
        [[2, 3], *[[]] * 6],
        ["float", "Scalar", NONE, NONE, NONE, "Scalar", NONE],
        ["", str(number), "", "", "", "False", ""],
    )
    assert work_of([event]).rows() == [(7, "2,3", word, None)]


def test_inner_op_of_nested_ones_has_the_work_on_its_thread() -> None:
    product: list[Any] = ["aten::mm", [[2, 3], [3, 4]], FLOATS[:2], ONES]
    events = [
        op(*product, number=1, ts=0, dur=100),
        op(*product, number=2, ts=10, dur=20),
        op(*product, number=3, ts=30, dur=70),
        op(*product, number=4, ts=50, dur=10, tid=2),
        op(*product, number=5, ts=100, dur=10),
        op(*product, number=6, ts=200, dur=10),
        op(*product, number=6, ts=220, dur=10),
        {**op(*product, number=8, ts=300), "cat": "user_annotation"},
    ]
    rows = {row[0]: row[1:] for row in work_of(events).rows()}
    own = ("2,4", "FLOAT", 48)
    assert rows == {1: (None, None, 0), 2: own, 3: own, 4: own, 5: own}
