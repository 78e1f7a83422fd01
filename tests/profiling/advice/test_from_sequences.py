"""Small ops that are the parts of one op of torch_npu are named, where that is certain."""

from pathlib import Path
from typing import Any

import pytest

from jumar.profiling import read
from jumar.profiling.advice.todo import Advice, todo
from jumar.profiling.profile import Profile
from jumar.profiling.views import Options
from tests.profiling.generated import profile_of

X, SMALL = "4,64,512", "4,64,1"
NORM = [
    ("Pows", f"{X};", X, 20),
    ("ReduceMean", f"{X};1", SMALL, 10),
    ("Adds", f"{SMALL};", SMALL, 2),
    ("Rsqrt", SMALL, SMALL, 2),
    ("Mul", f"{X};{SMALL}", X, 30),
    ("Mul", f"512;{X}", X, 25),
]
Q, HALF = "4,8,64,128", "4,8,64,64"
ROTARY = [
    ("Mul", f"{Q};64,128", Q, 20),
    ("Neg", HALF, HALF, 5),
    ("ConcatD", f"{HALF};{HALF}", Q, 12),
    ("Mul", f"{Q};64,128", Q, 20),
    ("Add", f"{Q};{Q}", Q, 22),
]
GATE = "4,64,2048"
SWIGLU = [
    ("Swish", GATE, GATE, 30),
    ("MatMulV3", "256,512;2048,512", "256,2048", 200),
    ("Mul", f"{GATE};{GATE}", GATE, 40),
]
S = "4,8,64,64"
ATTENTION = [
    ("BatchMatMulV2", f"{Q};{Q}", S, 100),
    ("Muls", f"{S};", S, 20),
    ("Add", f"{S};4,1,64,64", S, 25),
    ("SoftmaxV2", S, S, 40),
    ("Cast", S, S, 15),
    ("BatchMatMulV2", f"{S};{Q}", Q, 100),
]
GELU = [
    (kind, f"{X};{X}" if kind in ("Add", "Mul") else f"{X};", X, 10 + at)
    for at, kind in enumerate(("Pows", "Muls", "Add", "Muls", "Tanh", "Adds", "Mul"))
]
ERF = [
    (kind, f"{X};{X}" if kind == "Mul" else f"{X};", X, 10 + at)
    for at, kind in enumerate(("Muls", "Erf", "Adds", "Mul"))
]
ALL = {
    "RMSNorm": (NORM, "npu_rms_norm", 59),
    "rotary embedding": (ROTARY, "npu_rotary_mul", 57),
    "SwiGLU": (SWIGLU, "npu_swiglu", 30),
    "attention": (ATTENTION, "npu_fusion_attention", 60),
    "GELU": (GELU, "gelu", 75),
}


def _profile(ops: list[tuple[str, str, str, int]], **more: Any) -> Profile:
    rows, at = [], 0
    for kind, inputs, outputs, length in ops:
        row = {"rank": 0, "stream": "2", "type": kind, "core": "AI_VECTOR_CORE"}
        row |= {"input_shapes": inputs, "output_shapes": outputs, "start_ns": at * 1000}
        rows.append(row | {"duration_ns": length * 1000} | more)
        at += length
    return profile_of(rows)


def _lines(profile: Profile, language: Any = "en") -> list[Advice]:
    return [
        line
        for line in todo(profile, Options(language=language))
        if line.finding.name == "fusible-sequence"
    ]


@pytest.mark.parametrize("name", ALL)
def test_saving_is_all_small_ops_except_the_longest(name: str) -> None:
    ops, api, saved = ALL[name]
    other = ("Relu", "7,7", "7,7", 3)
    (line,) = _lines(_profile([other, *ops, other, *ops, other]))
    assert line.claim.values["name"] == name
    assert api in str(line.claim.values["api"])
    assert line.finding.what.filled(**line.claim.values).en.startswith(
        f"{name} is computed by small ops: 2 times per step, "
    )
    assert line.saving_ns == 2 * saved * 1000
    kept = ("BatchMatMulV2", "MatMulV3")
    small = [(kind, inputs) for kind, inputs, _, _ in ops if kind not in kept]
    chain = " > ".join(kind for kind, _ in small)
    (evidence,) = line.claim.evidence
    assert evidence.en == evidence.zh == f"2 x {chain}: {small[0][1]}"


def test_gelu_by_erf_and_a_norm_in_16_bits_are_found() -> None:
    assert [line.saving_ns for line in _lines(_profile(ERF))] == [33_000]
    cast = [*NORM[:5], ("Cast", X, X, 9), NORM[5]]
    assert [line.saving_ns for line in _lines(_profile(cast))] == [68_000]
    # Without a weight it is a norm as well, and what comes after is not part of it.
    after = ([], [("Mul", f"{X};{X}", X, 50)], [("Mul", "7,7;7,7", "7,7", 50)])
    for more in after:
        assert [line.saving_ns for line in _lines(_profile([*NORM[:5], *more]))] == [34_000]


def test_slices_producing_contiguous_halves_belong_to_the_sequence() -> None:
    half = ("Slice", f"4,64,4096;{GATE}", GATE, 12)
    assert [line.saving_ns for line in _lines(_profile([SWIGLU[0], half, SWIGLU[2]]))] == [42_000]
    sliced = [ROTARY[0], *[("Slice", Q, HALF, 7)] * 2, ROTARY[1], ("AsStrided", Q, HALF, 7)]
    assert [line.saving_ns for line in _lines(_profile([*sliced, *ROTARY[2:]]))] == [78_000]
    wrong = ("Slice", GATE, "4,64,1024", 12)
    assert not _lines(_profile([SWIGLU[0], wrong, SWIGLU[2]]))


def test_op_belongs_to_one_sequence() -> None:
    erf = [(kind, f"{GATE};{GATE}", GATE, length) for kind, _, _, length in ERF[1:]]
    (line,) = _lines(_profile([SWIGLU[0], SWIGLU[2], *erf]))
    assert line.claim.values["name"] == "SwiGLU"


def test_each_sequence_has_a_line() -> None:
    every = [op for ops, _, _ in ALL.values() for op in ops]
    found = {str(line.claim.values["name"]) for line in _lines(_profile(every))}
    assert found == set(ALL)


def _with(ops: list[tuple[str, str, str, int]], at: int, **changed: str) -> list[Any]:
    kind, inputs, outputs, length = ops[at]
    one = (
        changed.get("type", kind),
        changed.get("inputs", inputs),
        changed.get("outputs", outputs),
        length,
    )
    return [*ops[:at], one, *ops[at + 1 :]]


@pytest.mark.parametrize(
    "ops",
    [
        _with(NORM, 1, inputs="4,64,500;1"),
        _with(NORM, 3, inputs="4,1,512"),
        _with(NORM, 4, inputs=f"{X};512"),
        _with(NORM, 3, type="Sqrt"),
        _with(NORM, 0, type="Mul", inputs=f"{X};512"),
        _with(ROTARY, 1, inputs="4,8,64,32"),
        _with(ROTARY, 2, inputs=f"{HALF};{HALF};{HALF}"),
        _with(ROTARY, 4, inputs=f"{Q};128"),
        _with(ROTARY, 3, inputs=f"{HALF};{HALF}"),
        _with(SWIGLU, 2, inputs=f"{GATE};2048"),
        _with(SWIGLU, 1, outputs="256,1024"),
        _with(SWIGLU, 1, type="Conv2D"),
        _with(SWIGLU, 0, type="Sigmoid"),
        _with(ATTENTION, 0, outputs="4,8,64,128"),
        _with(ATTENTION, 5, inputs=f"{Q};{S}"),
        _with(ATTENTION, 2, inputs="4,8,64,64,2"),
        _with(ATTENTION, 0, type="MatMulV2"),
        _with(ATTENTION, 2, type="Relu"),
        _with(GELU, 2, inputs="4,64,513"),
        _with(GELU, 4, type="Sigmoid"),
        _with(ERF, 3, inputs="4,64"),
    ],
)
def test_ambiguous_types_or_shapes_give_no_finding(ops: list[Any]) -> None:
    assert not _lines(_profile(ops))


def test_sequence_is_confined_to_one_stream_of_one_npu() -> None:
    profile = _profile(NORM)
    rows = profile.ops.to_dicts()
    for name, value in (("stream", "3"), ("rank", 1)):
        rows[3] = rows[3] | {name: value}
        assert not _lines(profile_of(rows))
        rows[3] = profile.ops.row(3, named=True)
    assert _lines(profile_of(rows))
    assert not _lines(profile_of(rows, kind="cuda"))
    for name, value in (("stream", "3"), ("rank", 1)):
        apart = [row | ({name: value} if at > 2 else {}) for at, row in enumerate(rows)]
        assert not _lines(profile_of(apart))
    # What another stream does in that time does not count as between.
    between = rows[2] | {"stream": "9", "type": "Relu"}
    assert _lines(profile_of([*rows, between]))


def test_advice_is_in_both_languages() -> None:
    (line,) = _lines(_profile(NORM))
    what = line.finding.what.filled(**line.claim.values)
    assert what.en == "RMSNorm is computed by small ops: 1 time per step, 0.089 ms"
    assert what.zh == "RMSNorm 由多个小算子拼成：每迭代 1 次，耗时 0.089 ms"


@pytest.mark.parametrize(
    "name",
    [
        *("torch_npu_level2_4rank", "torch_npu_level1_2rank", "torch_npu_910b_2023"),
        *("torch_npu_2024_trace", "msprof_cann6_2023", "mindspore_r1_2021"),
    ],
)
def test_real_captures_have_no_sequences(shared: Path, name: str) -> None:
    assert not _lines(read(shared / "data/msprof" / name))
