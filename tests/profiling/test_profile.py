"""One profile, and what never changes about it."""

import dataclasses

import polars as pl
import pytest

from jumar.profiling.profile import OPS_SCHEMA, STEPS_SCHEMA, Missing, Profile, empty


def made(ranks: list[int | None], steps: list[int | None]) -> Profile:
    return Profile(
        source="s",
        producer="p",
        kind="npu",
        ops=pl.DataFrame({"rank": ranks}, schema={"rank": pl.Int32}),
        steps=pl.DataFrame({"rank": steps}, schema={"rank": pl.Int32}),
    )


def test_ranks_are_those_with_ops_or_steps_sorted() -> None:
    assert made([3, 3, None], [1, 3, 2]).ranks == (1, 2, 3)
    assert made([], []).ranks == ()


def test_profile_has_empty_default_tables_and_its_own_cache() -> None:
    one, other = (
        Profile(source="s", producer="p", kind="cpu", ops=empty(OPS_SCHEMA)) for _ in "ab"
    )
    for table in (one.steps, one.host, one.collectives, one.links):
        assert table.is_empty()
    assert one.steps.schema == dict(STEPS_SCHEMA)
    assert (one.files, one.missing, one.chip, one.statistics) == ((), (), "", {})
    one.memo["x"] = 1
    assert other.memo == {}
    assert "memo" not in repr(one)
    with pytest.raises(TypeError):
        Profile(source="s", producer="p", kind="cpu", ops=one.ops, memo={})  # pyright: ignore
    (memo,) = (field for field in dataclasses.fields(Profile) if field.name == "memo")
    assert memo.compare is False
    assert Missing(file="a", what="b").needed_for == ()
