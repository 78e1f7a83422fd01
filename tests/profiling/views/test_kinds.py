"""Ops that are equal in all that is recorded are one kind, with sums over them."""

from typing import Any

import polars as pl

from jumar.profiling.views.kinds import KEY, PARTS, counters, kinds, pipes_of
from tests.profiling.generated import profile_of

_BASE = {
    "type": "Add",
    "core": "AI_VECTOR_CORE",
    "input_shapes": "2,2",
    "input_types": "FLOAT",
    "input_formats": "ND",
    "output_shapes": "2,2",
    "output_types": "FLOAT",
    "output_formats": "ND",
}


def _op(length: int | None, **more: Any) -> dict[str, Any]:
    return _BASE | {"duration_ns": length} | more


def test_kinds_have_counts_times_and_costs() -> None:
    profile = profile_of(
        [
            _op(10, flops=7, bytes=8, aiv_vec_ratio=0.25, aic_mac_ratio=None, cube_ratio=0.5),
            _op(5, type="Mul", aiv_vec_ratio=1.0, aic_mac_ratio=0.125),
            _op(30, flops=9, bytes=9, aiv_vec_ratio=0.5, aic_mac_ratio=None),
            _op(None, aiv_vec_ratio=None, aic_mac_ratio=1.0),
            _op(2, output_formats="NZ"),
        ]
    )
    of_op, table = kinds(profile)
    columns = ("type", "output_formats", "count", "total_ns", "known_flops", "known_bytes")
    assert table.select(columns).rows() == [
        ("Add", "ND", 3, 40, 7, 8),
        ("Mul", "ND", 1, 5, None, None),
        ("Add", "NZ", 1, 2, None, None),
    ]
    numbers = table["kind"].to_list()
    assert of_op.to_list() == [numbers[at] for at in (0, 1, 0, 0, 2)]
    # The format of the output is not part of what decides the cost.
    first, second, third = table["same"].to_list()
    assert first == third != second


def test_counters_are_summed_over_the_ops_with_the_same_key() -> None:
    profile = profile_of(
        [
            _op(10, aiv_vec_ratio=0.25, aic_mac_ratio=None, cube_ratio=0.5),
            _op(5, type="Mul", aiv_vec_ratio=1.0, aic_mac_ratio=0.125),
            _op(30, aiv_vec_ratio=0.5, aic_mac_ratio=None),
            _op(None, aiv_vec_ratio=None, aic_mac_ratio=1.0),
            _op(2, output_formats="NZ", aiv_vec_ratio=1.0, aic_mac_ratio=None),
            _op(9, type="Sub", aiv_vec_ratio=1.0, aic_mac_ratio=1.0),
        ]
    )
    table = kinds(profile).table
    wanted = table.filter(pl.col("type") != "Sub")["same"]
    sums = table.select("same", "type").unique().join(counters(profile, wanted), on="same")
    assert PARTS == 1_000_000
    assert sums.drop("same").sort("type").rows(named=True) == [
        {
            "type": "Add",
            "aiv_vec_ratio": 1_750_000,
            "aic_mac_ratio": 1_000_000,
            "aiv_vec_ratio_count": 3,
            "aic_mac_ratio_count": 1,
        },
        {
            "type": "Mul",
            "aiv_vec_ratio": 1_000_000,
            "aic_mac_ratio": 125_000,
            "aiv_vec_ratio_count": 1,
            "aic_mac_ratio_count": 1,
        },
    ]


def test_ops_that_differ_in_a_single_column_are_different_kinds() -> None:
    rows = [_op(1), *(_op(1, **{name: "x"}) for name in (*KEY, "output_formats"))]
    table = kinds(profile_of(rows)).table
    assert table.height == 9
    assert table["same"].n_unique() == 8


def test_pipe_counters_are_distinguished_from_others() -> None:
    names = ("aic_mac_ratio", "aiv_vec_ratio", "scalar_ratio", "aic_fixpipe_ratio", "mte1_ratio")
    others = ("aic_total_cycles", "mac_time", "aic_mac_ratio_extra", "cube_ratio", "mte4_ratio")
    table = profile_of([_op(1, **dict.fromkeys((*names, *others), 0.5))]).ops
    assert pipes_of(table) == list(names)


def test_kinds_are_cached() -> None:
    profile = profile_of([_op(1)])
    assert kinds(profile) is kinds(profile)


def test_kinds_are_in_order_of_first_occurrence() -> None:
    names = [f"T{number * 7919 % 400}" for number in range(400)]
    table = kinds(profile_of([_op(1, type=name) for name in [*names, *names[::-1]]])).table
    assert table["type"].to_list() == names


def test_ratio_that_is_no_number_adds_nothing() -> None:
    profile = profile_of(
        [_op(10, aiv_vec_ratio=0.25), _op(5, aiv_vec_ratio=float("nan")), _op(4, aiv_vec_ratio=0.5)]
    )
    sums = counters(profile, kinds(profile).table["same"])
    assert sums["aiv_vec_ratio"].to_list() == [750_000]
