"""A comparison as tables and as a page: every cell of a small one."""

import csv
import io
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from jumar.ground.pages import policy_hash
from jumar.precision.comparing.comparison import Compared, Comparison, Row, call_name
from jumar.precision.comparing.observed import Difference
from jumar.precision.comparing.page import page
from jumar.precision.comparing.pairing import Pair
from jumar.precision.comparing.tables import (
    as_csv,
    as_dict,
    error_of,
    shown,
    summary,
    unequal_dict,
    unequal_text,
)
from jumar.precision.comparing.unequal import Unequal
from jumar.precision.dumps.dump import Call, Dump, Role, Statistics, Value


def value(role: Role, name: str, dtype: str = "float32", mean: float | None = 0.5) -> Value:
    numbers = Statistics(count=6, min=-1.0, max=2.0, mean=mean, l2=3.0)
    return Value(role=role, name=name, dtype=dtype, shape=(2, 3), statistics=numbers)


def call(op: str, number: int, layer: str = "net.0", cann: str = "Mul") -> Call:
    return Call(kind="op", op=op, layer=layer, number=number, phase="forward", values=(), cann=cann)


EXACT = Difference(lower=0, upper=0, rms=1.0, peak=2.0, is_exact=True, cosine=1.0, largest=0)
FAR = Difference(
    lower=0.25, upper=0.5, rms=1.0, peak=2.0, cosine=0.875, largest=math.inf, relative=0.75
)
ODD = Difference(lower=math.inf, upper=math.inf, rms=1.0, peak=2.0, remark="NaN in one")


def compared() -> list[Compared]:
    first = Compared(
        pair=Pair(call("mul", 2), call("mul", 2)),
        position=0,
        rows=[
            Row(value=value("input", "0"), partner=value("input", "0"), difference=FAR),
            Row(
                value=value("output", "0"),
                partner=value("output", "0", "float16", math.nan),
                difference=replace(FAR, lower=0.125),
                ratio=4.5,
                verdict="offender",
            ),
            Row(
                value=value("output", "1"),
                partner=value("output", "1"),
                difference=EXACT,
                ratio=0.0,
            ),
        ],
        ratio=4.5,
        verdict="offender",
        reason="its <argument>",
        added=0.0123456,
        inherited=0.0,
        baseline=0.1,
    )
    second = Compared(
        pair=Pair(call("add", 0, ""), call("add", 0, "")),
        position=1,
        rows=[
            Row(
                value=replace(value("output", "0"), statistics=None),
                partner=value("output", "0"),
                difference=ODD,
                ratio=math.inf,
                verdict="inherited",
            ),
            Row(value=value("output", "1"), partner=value("output", "1"), difference=None),
        ],
        ratio=math.inf,
        verdict="inherited",
    )
    return [first, second]


def comparison(**changes: Any) -> Comparison:
    calls = compared()
    before = Dump(where=Path("a"), tool="jumar", step=3, rank=1, calls=[call("mul", 2)] * 2)
    after = replace(before, where=Path("b"), tool="<CANN>", tensors=Memory(), calls=[calls[0].call])
    whole = Comparison(
        before=before,
        after=after,
        calls=calls,
        offenders=[calls[0]],
        only_before=[call("x", 1)],
        only_after=[call("y", 0, "")],
        first_difference=calls[1],
        hashed=7,
        first_unequal=UNEQUAL,
        notices=["A <notice>."],
    )
    return replace(whole, **changes)


class Memory:
    def read(self, name: str) -> torch.Tensor:
        raise KeyError(name)


UNEQUAL = Unequal(
    pair=Pair(call("mul", 2), call("mul", 2)),
    values=[
        (value("input", "0"), value("input", "0", "float16")),
        *((value("output", str(at)), value("output", str(at))) for at in range(4)),
    ],
    inputs_equal=False,
    unpaired=call("cast", 0),
)
NUMBERS = {"min": -1.0, "max": 2.0, "mean": 0.5, "l2": 3.0}
SIDES = {f"{name}_{side}": each for side in ("before", "after") for name, each in NUMBERS.items()}
NAMED = {"layer": "net.0", "op": "mul", "number": 2, "phase": "forward", "cann": "Mul"}
BARE = {"layer": "", "op": "add", "number": 0, "phase": "forward", "cann": "Mul"}


def row(role: str, name: str, **fields: Any) -> dict[str, Any]:
    plain = {"dtype_before": "float32", "dtype_after": "float32", "shape": "2x3"}
    seen = dict.fromkeys(
        ("ratio", "error", "error_at_most", "cosine", "max_absolute", "max_relative")
    )
    return {
        **{"role": role, "name": name},
        **plain,
        "verdict": "agrees",
        **seen,
        "remark": "",
        **SIDES,
        **fields,
    }


ROWS = [
    [
        row(
            "input",
            "0",
            error=0.25,
            error_at_most=0.5,
            cosine=0.875,
            max_absolute="inf",
            max_relative=0.75,
        ),
        row(
            "output",
            "0",
            dtype_after="float16",
            verdict="offender",
            ratio=4.5,
            error=0.125,
            error_at_most=0.5,
            cosine=0.875,
            max_absolute="inf",
            max_relative=0.75,
            mean_after="nan",
        ),
        row("output", "1", ratio=0.0, error=0, error_at_most=0, cosine=1.0, max_absolute=0),
    ],
    [
        row(
            "output",
            "0",
            verdict="inherited",
            ratio="inf",
            error="inf",
            error_at_most="inf",
            remark="NaN in one",
            **{f"{name}_before": None for name in NUMBERS},
        ),
        row("output", "1", remark="not comparable"),
    ],
]
FIRST = {
    "place": 0,
    "name": "net.0: mul #2 forward",
    **NAMED,
    "verdict": "offender",
    "reason": "its <argument>",
    "error": 0.125,
    "ratio": 4.5,
    "added": 0.0123456,
    "inherited": 0.0,
    "baseline_error": 0.1,
}
SECOND = {
    "place": 1,
    "name": "add forward",
    **BARE,
    "verdict": "inherited",
    "reason": "",
    "error": "inf",
    "ratio": "inf",
    "added": None,
    "inherited": None,
    "baseline_error": None,
}
SIDE = {"tool": "jumar", "step": 3, "rank": 1}


def test_json_has_every_number_and_spells_out_non_finite_ones() -> None:
    whole = as_dict(comparison())
    assert whole == {
        "before": {"path": "a", **SIDE, "calls": 2, "tensors": False},
        "after": {"path": "b", **SIDE, "tool": "<CANN>", "calls": 1, "tensors": True},
        "paired": 2,
        "only_before": ["net.0: x #1 forward"],
        "only_after": ["y forward"],
        "rows": 5,
        "flagged": 1,
        "first_difference": "add forward",
        "hashed": 7,
        "first_unequal": {
            **NAMED,
            "inputs_equal": False,
            "values": ["input 0", "output 0", "output 1", "output 2", "output 3"],
            "only_in_one": "net.0: cast forward",
        },
        "offenders": [FIRST],
        "calls": [{**FIRST, "values": ROWS[0]}, {**SECOND, "values": ROWS[1]}],
        "notices": ["A <notice>."],
    }
    json.dumps(whole, allow_nan=False)
    assert as_dict(comparison(first_difference=None))["first_difference"] is None


def test_csv_has_a_line_per_value_with_its_call() -> None:
    lines = list(csv.DictReader(io.StringIO(as_csv(comparison()))))
    expected = [
        {**named, "place": place, **each}
        for place, (named, rows) in enumerate(zip((NAMED, BARE), ROWS, strict=True))
        for each in rows
    ]
    assert lines == [
        {name: "" if each is None else str(each) for name, each in line.items()}
        for line in expected
    ]
    assert list(lines[0])[:7] == ["layer", "op", "number", "phase", "cann", "place", "role"]
    assert as_csv(comparison(calls=[])).split() == ["place"]


def test_summary_has_a_line_per_call_with_three_digits() -> None:
    plain = {"phase": "forward"}
    assert summary(compared()) == [
        {
            **{"place": "0", "layer": "net.0", "op": "mul #2", **plain, "error": "0.125"},
            **{"explained": "4.5 x", "added": "0.0123", "inherited": "0", "verdict": "offender"},
        },
        {
            **{"place": "1", "layer": "", "op": "add", **plain, "error": "inf"},
            **{"explained": "inf x", "added": "", "inherited": "", "verdict": "inherited"},
        },
    ]
    assert (shown(None), shown(1234.5), shown(1 / 3)) == ("", "1.23e+03", "0.333")


def test_error_of_a_call_is_the_largest_of_its_outputs() -> None:
    first, second = compared()
    assert (error_of(first), error_of(second)) == (0.125, math.inf)
    assert error_of(replace(first, rows=first.rows[:1])) is None
    assert error_of(replace(second, rows=[replace(second.rows[1], ratio=1.0)])) is None


def test_first_inequality_is_a_line_with_four_values() -> None:
    assert unequal_text(UNEQUAL) == (
        "net.0: mul #2 forward: its inputs already differ; unequal: input 0 (float32 and float16),"
        " output 0, output 1, output 2"
    )
    alone = replace(UNEQUAL, values=UNEQUAL.values[1:2], inputs_equal=True, unpaired=None)
    assert unequal_text(alone) == ("net.0: mul #2 forward: its inputs are equal; unequal: output 0")
    result = unequal_dict(alone)
    assert result is not None
    assert (result["inputs_equal"], result["only_in_one"]) == (True, None)
    assert unequal_dict(None) is None


def test_call_is_named_by_layer_op_number_and_phase() -> None:
    assert call_name(call("mul", 2)) == "net.0: mul #2 forward"
    assert call_name(replace(call("mul", 0, ""), phase="backward")) == "mul backward"


def data_of(text: str) -> Any:
    result = re.search(r'<script type="application/json" id="data">(.*)</script>\n', text)
    assert result is not None
    return json.loads(result[1])


def test_page_has_every_call_and_escapes_dump_content() -> None:
    text = page(comparison())
    assert data_of(text) == [
        [
            *("net.0", "mul", 2, "forward", 2, 0.125, ["4.5", "0.0123", "0"], "its <argument>"),
            [
                ["input 0", "float32", "2x3", "0.25", "0.875", "inf", "", 0],
                ["output 0", "float32 / float16", "2x3", "0.125", "0.875", "inf", "4.5", 2],
                ["output 1", "float32", "2x3", "0", "1", "0", "0", 0],
            ],
        ],
        [
            *("", "add", 0, "forward", 1, 1e30, ["inf", "", ""], ""),
            [
                ["output 0", "float32", "2x3", "inf", "", "", "inf", 1],
                ["output 1", "float32", "2x3", "", "", "", "", 0],
            ],
        ],
    ]
    for line in (
        '<p>before: a <span class="faint">(jumar, 2 calls)</span></p>',
        '<p>after: b <span class="faint">(&lt;CANN&gt;, 1 call)</span></p>',
        "<p>Paired: 2 calls with 5 values; flagged: 1 (20.0%).</p>",
        '<p class="faint">A &lt;notice&gt;.</p>',
        '<button type="button" data-place="0">net.0: mul #2 forward</button>: '
        "its &lt;argument&gt;; 4.5 times the explained error</li>",
    ):
        assert line in text, line
    assert "\n\n" not in text.replace("\n\n<", "<").partition("<body>")[2].partition("<script")[0]


def test_page_policy_allows_only_its_own_style_and_script() -> None:
    text = page(comparison())
    policy = re.search(r"style-src '(.*?)'; script-src '(.*?)'", text)
    assert policy is not None
    style = text.partition("<style>")[2].partition("</style>")[0]
    script = text.rpartition("<script>")[2].partition("</script>")[0]
    assert (policy[1], policy[2]) == (policy_hash(style), policy_hash(script))
    # What `printf x | openssl dgst -sha256 -binary | base64` prints.
    assert policy_hash("x") == "sha256-LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE="


def test_page_without_findings_says_so_and_names_at_most_100_other_calls() -> None:
    calls = compared()
    many = page(comparison(offenders=[calls[0]] * 101, notices=["n" * 401]))
    assert many.count("<li><button") == 100
    assert f"{'n' * 399}…" in many
    nothing = page(comparison(offenders=[], calls=[]))
    assert "No op is to blame: rounding explains all errors." in nothing
    assert "Paired: 0 calls with 0 values; flagged: 0 (0.0%)." in nothing
    assert data_of(nothing) == []


def test_single_value_is_written_as_csv() -> None:
    first = compared()[0]
    one = comparison(calls=[replace(first, rows=first.rows[:1])])
    (line,) = csv.DictReader(io.StringIO(as_csv(one)))
    assert (line["op"], line["role"]) == ("mul", "input")
