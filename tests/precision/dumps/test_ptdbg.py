"""ptdbg's lists of statistics, line by line."""

import json
from pathlib import Path
from typing import Any

import pytest

from jumar.ground.errors import UserError
from jumar.precision.dumps.dump import Call, Dump, Statistics, Value
from jumar.precision.dumps.ptdbg import read_ptdbg


def line(name: str, *numbers: float | None, shape: list[int] | None = None) -> list[Any]:
    return [name, 0, [], "torch.float16", shape or [2, 3], [*numbers, 9.0]]


def written(path: Path, *lines: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    return path


def test_lines_of_a_call_become_its_values(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.pkl",
        line("Functional_conv2d_1_forward_input.0", 5.0, -2.0, 0.5),
        line("Functional_conv2d_1_forward_input.1.0", None, None, None, shape=[4]),
        line("Functional_conv2d_1_forward_output", 5, -2, 0),
        line("Tensor___add___12_backward_output.0", 1.0, 1.0, 1.0),
        ["nonsense", 0, [], "torch.float16", [1], [0, 0, 0]],
        ["Functional_conv2d_2_forward_input.0", 0, [], "torch.float16", [1]],
    )

    def value(role: Any, name: str, *ends: float | None, count: int = 6) -> Value:
        low, high, mean = ends
        return Value(
            role=role,
            name=name,
            dtype="float16",
            shape=(4,) if count == 4 else (2, 3),
            statistics=Statistics(count=count, min=low, max=high, mean=mean),
        )

    plain: dict[str, Any] = {"kind": "op", "layer": ""}
    assert read_ptdbg(path) == Dump(
        where=path,
        tool="ptdbg",
        framework="pytorch",
        calls=[
            Call(
                op="Functional.conv2d",
                number=1,
                phase="forward",
                values=(
                    value("input", "0", -2.0, 5.0, 0.5),
                    value("input", "1.0", None, None, None, count=4),
                    value("output", "0", -2.0, 5.0, 0.0),
                ),
                **plain,
            ),
            Call(
                op="Tensor.__add__",
                number=12,
                phase="backward",
                values=(value("output", "0", 1.0, 1.0, 1.0),),
                **plain,
            ),
        ],
        notices=["2 lines without statistics ignored."],
    )


@pytest.mark.parametrize("bad", ["[1", "[]", "{}", '["a_b_1_forward_input", 0, [], "x", 3, [1]]'])
def test_malformed_line_is_named(tmp_path: Path, bad: str) -> None:
    path = written(tmp_path / "a.pkl", line("Torch_mm_0_forward_input.0", 1.0, 0.0, 0.5))
    assert read_ptdbg(path).notices == []
    path.write_text(f"{path.read_text()}{bad}\n")
    with pytest.raises(UserError, match="is truncated, or not ptdbg's: ") as error:
        read_ptdbg(path)
    assert error.value.where == f"{path}:2"
    assert error.value.todo == (
        "Expected: one JSON list per line, with name, dtype, shape and statistics."
    )
