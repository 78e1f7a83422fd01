"""Sensitivities as tables and as a page: every cell of a small one."""

import csv
import io
import json
import math
import re
from dataclasses import replace
from typing import Any

import pytest

from jumar.ground.pages import policy_hash
from jumar.precision.sensitivity.measuring import Moved, NoiseSettings, Sensitivity
from jumar.precision.sensitivity.page import page
from jumar.precision.sensitivity.tables import as_csv, as_dict, shown, summary

ROWS = [
    Moved(
        layer="net.0",
        op="aten.addmm.default",
        phase="forward",
        number=2,
        calls=3,
        elements=40,
        loss=0.03,
        gradient=0.004,
    ),
    Moved(layer="net.0", op="", phase="backward", calls=1, elements=5, loss=0.04, gradient=0.3),
    Moved(
        layer="<b>",
        op="aten.mul.Tensor",
        phase="forward",
        number=0,
        calls=1,
        elements=5,
        loss=0.1,
        gradient=math.inf,
    ),
    Moved(layer="", op="aten.x.y", phase="backward", calls=1, elements=5, loss=0.2, gradient=0.0),
]
RESULT = Sensitivity(
    settings=NoiseSettings(dtype="float16", by="call", backward=False, seed=3),
    loss=1.23456789,
    gradient=2.5,
    rows=ROWS,
    together=(math.nan, 0.5),
    floor=(0.0, 1e-9),
    passes=7,
    seconds=1.5,
)


def cells(row: Moved, cann: str) -> dict[str, Any]:
    gradient = row.gradient if math.isfinite(row.gradient) else "inf"
    return {
        **{"layer": row.layer, "op": row.op, "cann": cann, "phase": row.phase},
        **{"number": row.number, "calls": row.calls, "elements": row.elements},
        **{"loss_change": row.loss, "gradient_change": gradient},
    }


CANN = ["MatMul", "", "Mul", ""]


def test_json_is_complete_and_spells_out_non_finite_numbers() -> None:
    whole = as_dict(RESULT)

    def both(loss: float, gradient: float | str) -> dict[str, Any]:
        return {"loss_change": loss, "gradient_change": gradient}

    assert whole == {
        **{"dtype": "float16", "by": "call", "backward": False, "seed": 3},
        **{"loss": 1.23456789, "gradient_norm": 2.5, "passes": 7, "seconds": 1.5},
        "together": {"loss_change": "nan", "gradient_change": 0.5},
        "floor": both(0.0, 1e-9),
        "rows": [cells(*pair) for pair in zip(ROWS, CANN, strict=True)],
        "layers": {
            "<b>": both(0.1, "inf"),
            "net.0": both(pytest.approx(0.05), pytest.approx(math.hypot(0.3, 0.004))),
            "": both(0.2, 0.0),
        },
        "ops": {
            "aten.mul.Tensor": both(0.1, "inf"),
            "": both(0.04, 0.3),
            "aten.addmm.default": both(0.03, 0.004),
            "aten.x.y": both(0.2, 0.0),
        },
    }
    json.dumps(whole, allow_nan=False)
    assert list(whole["layers"]) == ["<b>", "net.0", ""]
    assert list(whole["ops"]) == ["aten.mul.Tensor", "", "aten.addmm.default", "aten.x.y"]


def test_csv_has_a_line_per_row_in_order_of_execution() -> None:
    lines = list(csv.DictReader(io.StringIO(as_csv(RESULT))))
    expected = [
        {"place": place, **cells(*pair)} for place, pair in enumerate(zip(ROWS, CANN, strict=True))
    ]
    assert lines == [
        {name: "" if each is None else str(each) for name, each in line.items()}
        for line in expected
    ]
    assert as_csv(replace(RESULT, rows=[])).split() == ["place"]


def test_summary_has_a_line_per_row_with_three_digits() -> None:
    first, *_, last = summary(ROWS)
    assert first == {
        **{"gradient": "4.00e-03", "loss": "3.00e-02", "layer": "net.0"},
        **{"op": "aten.addmm.default #2", "CANN type": "MatMul", "phase": "forward", "calls": "3"},
    }
    assert last["op"] == "aten.x.y"
    assert summary(ROWS[2:3])[0]["op"] == "aten.mul.Tensor"
    assert (shown(math.inf), shown(1234.5)) == ("inf", "1.23e+03")


def test_rows_are_ranked_by_gradient_then_by_loss() -> None:
    twin = replace(ROWS[1], loss=0.05)
    ranked = replace(RESULT, rows=[*ROWS, twin]).ranked
    assert [ROWS.index(row) if row in ROWS else "twin" for row in ranked] == [2, "twin", 1, 0, 3]


def table(text: str, title: str) -> list[list[str]]:
    part = text.partition(f"<h2>{title}</h2>")[2].partition("</table>")[0]
    lines = re.findall(r"<tr>(<td>.*?)</tr>", part)
    return [re.findall(r"<td>(.*?)</td>", line) for line in lines]


def test_page_shows_every_row_and_escapes_names() -> None:
    text = page(RESULT, what="<run>", step=4)
    for part in (
        "&lt;run&gt;, step 4: noise as large as the rounding to float16",
        "(7 passes; loss 1.23457)",
        "the gradients move by 5.00e-01, the loss by nan.",
    ):
        assert part in text, part
    assert table(text, "Each row") == [
        ["inf", "1.00e-01", "&lt;b&gt;", "aten.mul.Tensor", "Mul", "forward", "1"],
        ["3.00e-01", "4.00e-02", "net.0", "", "", "backward", "1"],
        ["4.00e-03", "3.00e-02", "net.0", "aten.addmm.default", "MatMul", "forward", "3"],
        ["0.00e+00", "2.00e-01", "", "aten.x.y", "", "backward", "1"],
    ]
    assert table(text, "By layer") == [
        ["inf", "1.00e-01", "&lt;b&gt;"],
        ["3.00e-01", "5.00e-02", "net.0"],
        ["0.00e+00", "2.00e-01", "outside all layers"],
    ]
    assert table(text, "By CANN op type") == [
        ["inf", "1.00e-01", "Mul"],
        ["3.00e-01", "2.04e-01", "no CANN type"],
        ["4.00e-03", "3.00e-02", "MatMul"],
    ]
    assert "rows with smaller changes" not in text
    style = text.partition("<style>")[2].partition("</style>")[0]
    assert f"style-src '{policy_hash(style)}'" in text
    assert ".plain" in style


def circles(text: str) -> list[tuple[float, float, str, str]]:
    result = re.findall(
        r'<circle cx="([\d.]+)" cy="([\d.]+)" r="4" class="(v\d)"><title>(.*?)</title>', text
    )
    return [(float(x), float(y), kind, title) for x, y, kind, title in result]


def grid(text: str) -> list[tuple[float, str]]:
    result = re.findall(
        r'<line x1="60" x2="\d+" y1="([\d.]+)" y2="\1"/><text x="4" y="([\d.]+)">(.*?)<', text
    )
    assert all(float(lower) == pytest.approx(float(y) + 4) for y, lower, _ in result)
    return [(float(y), name) for y, _, name in result]


def test_chart_spans_whole_decades_around_all_values() -> None:
    text = page(RESULT, what="run", step=0)
    # From 1e-3 at 340 to 1 at 12; the infinite one at the top, the zero at the bottom. Places from
    # 70 to 1390.
    assert grid(text) == [(340.0, "1e-3"), (230.7, "1e-2"), (121.3, "1e-1"), (12.0, "1e0")]
    third = 328 / 3

    def height(gradient: float) -> float:
        return pytest.approx(12 - math.log10(gradient) * third, abs=0.06)

    assert circles(text) == [
        (
            70.0,
            height(0.004),
            "v0",
            "net.0: aten.addmm.default forward: gradient 4.00e-03, loss 3.00e-02",
        ),
        (510.0, height(0.3), "v1", "net.0: all ops backward: gradient 3.00e-01, loss 4.00e-02"),
        (950.0, 12.0, "v0", "&lt;b&gt;: aten.mul.Tensor forward: gradient inf, loss 1.00e-01"),
        (1390.0, 340.0, "v1", "aten.x.y backward: gradient 0.00e+00, loss 2.00e-01"),
    ]
    assert 'width="1400" viewBox="0 0 1400 380"' in text


def test_chart_has_at_least_two_decades_and_grows_with_the_rows() -> None:
    one = page(replace(RESULT, rows=ROWS[:1]), what="run", step=0)
    assert grid(one) == [(340.0, "1e-4"), (176.0, "1e-3"), (12.0, "1e-2")]
    assert [dot[0] for dot in circles(one)] == [70.0]
    nothing = page(replace(RESULT, rows=ROWS[2:]), what="run", step=0)
    assert grid(nothing) == [(340.0, "1e-5"), (176.0, "1e-4"), (12.0, "1e-3")]
    many = page(replace(RESULT, rows=[ROWS[0]] * 201), what="run", step=0)
    assert 'width="1487"' in many
    assert len(circles(many)) == 201
    assert circles(many)[-1][0] == 1477.0
    assert "1 rows with smaller changes are in the CSV file and the JSON." in many
    assert len(table(many, "Each row")) == 200
    layers = page(
        replace(RESULT, rows=[replace(ROWS[0], layer=str(at)) for at in range(201)]),
        what="run",
        step=0,
    )
    assert len(table(layers, "By layer")) == 200
