"""What a few steps would save without casts that cancel out."""

from typing import Any

from jumar.profiling.views.chains import chains
from jumar.profiling.views.view import VIEWS, Options
from tests.profiling.generated import profile_of


def _step(step: int, *lengths: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for place, (taken, given) in enumerate((("FLOAT", "FLOAT16"), ("FLOAT16", "FLOAT"))):
        row = {"rank": 0, "step": step, "name": "Cast", "type": "Cast", "core": "AI_VECTOR_CORE"}
        row |= {"input_shapes": "8,8", "output_shapes": "8,8", "module": "head"}
        row |= {"input_types": taken, "output_types": given}
        row |= {"input_formats": "ND", "output_formats": "ND"}
        row |= {"start_ns": 1_000_000 * (2 * step + place), "duration_ns": lengths[place]}
        rows.append(row)
    return rows


def test_saving_per_step_comes_from_the_first_three_steps() -> None:
    lengths = [(100_000, 200_000), (100_000, 200_000), (400_000, 200_000), (900_000, 900_000)]
    ops = [row for step, pair in enumerate(lengths) for row in _step(step, *pair)]
    table = VIEWS["chains"].make(profile_of(ops), Options())
    assert table.to_dicts() == [
        {
            "what": "Cast + Cast",
            "shape": "8,8",
            "of": "FLOAT ND",
            "by_way_of": "FLOAT16 ND",
            "module": "head",
            "count": 1.0,
            "saved_ms": 0.4,
        }
    ]


def test_change_that_is_not_undone_is_not_a_chain() -> None:
    ops = [_step(step, 100_000, 1)[0] for step in range(3)]
    assert chains(profile_of(ops), Options()).is_empty()
