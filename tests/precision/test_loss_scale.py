"""The loss scale: the rule's corners that the parity sequences do not reach, and its state."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jumar.precision.loss_scale import (
    ExponentialLossScale,
    FixedLossScale,
    LossScale,
    NoLossScale,
)

GOOD, BAD = torch.tensor(0.0), torch.tensor(1.0)


def exponential(scale: float = 1024.0, **changes: Any) -> LossScale:
    rule: dict[str, Any] = {"incr_every_n_steps": 2, "decr_ratio": 0.5, **changes}
    return ExponentialLossScale(init_loss_scale=scale, **rule).create("cpu")


def test_overflows_accumulate_across_finite_steps() -> None:
    scale = exponential(incr_every_n_steps=100)
    for result in (BAD, GOOD, GOOD, BAD):
        scale.update(result)
    assert scale.scale.item() == 512


def test_growth_needs_consecutive_finite_steps() -> None:
    scale = exponential(decr_every_n_nan_or_inf=100)
    for result in (GOOD, BAD, GOOD, BAD, GOOD):
        scale.update(result)
    assert scale.scale.item() == 1024
    scale.update(GOOD)
    assert scale.scale.item() == 2048


def test_scale_never_becomes_infinite_and_counters_still_reset() -> None:
    scale = exponential(2.0e38, incr_every_n_steps=1)
    scale.update(GOOD)
    assert scale.scale.item() == torch.tensor(2.0e38).item()
    assert scale.good.item() == 0


def test_overflow_at_the_floor_is_recorded() -> None:
    scale = exponential(2.0, decr_every_n_nan_or_inf=1)
    scale.update(BAD)
    assert scale.scale.item() == 1
    assert not scale.overflow_at_floor
    scale.update(GOOD)
    assert not scale.overflow_at_floor
    scale.update(BAD)
    scale.update(GOOD)
    assert scale.overflow_at_floor


def test_fixed_scale_of_1_is_at_its_floor_from_the_start() -> None:
    scale = FixedLossScale(init_loss_scale=1).create("cpu")
    scale.update(GOOD)
    assert not scale.overflow_at_floor
    scale.update(BAD)
    assert scale.overflow_at_floor


def test_rank_sums_and_nan_count_as_one_overflow() -> None:
    scale = FixedLossScale(init_loss_scale=8).create("cpu")
    for result in (3.0, float("nan"), 0.0):
        scale.update(torch.tensor(result))
    assert scale.skipped.item() == 2
    assert scale.scale.item() == 8


@given(st.lists(st.booleans(), max_size=60), st.integers(0, 60))
def test_restored_scale_continues_as_if_uninterrupted(found: list[bool], at: int) -> None:
    whole, first, second = (exponential(decr_ratio=0.8) for _ in range(3))
    for bad in found:
        whole.update(torch.tensor(float(bad)))
    for bad in found[:at]:
        first.update(torch.tensor(float(bad)))
    second.load_state_dict(first.state_dict())
    for bad in found[at:]:
        second.update(torch.tensor(float(bad)))
    expected, restored = whole.state_dict(), second.state_dict()
    assert all(torch.equal(expected[name], restored[name]) for name in expected)
    assert whole.skipped.item() == sum(found)


def test_saved_state_does_not_change_with_the_scale() -> None:
    scale = exponential()
    state = scale.state_dict()
    scale.update(BAD)
    scale.update(BAD)
    assert state["scale"].item() == 1024


def test_state_has_the_dtypes_of_the_original_counters() -> None:
    state = exponential().state_dict()
    assert {name: tensor.dtype for name, tensor in state.items()} == {
        "scale": torch.float32,
        "good": torch.int32,
        "bad": torch.int32,
        "skipped": torch.int64,
        "overflow_at_floor": torch.bool,
    }


def test_incomplete_state_is_refused() -> None:
    with pytest.raises(KeyError):
        exponential().load_state_dict({"scale": torch.tensor(1.0)})


def test_update_does_not_read_from_the_device() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    # A fake tensor has no value, so any read-back or branch on it raises.
    with FakeTensorMode():
        scale = exponential()
        scale.update(torch.zeros(()))
        assert scale.scale.dtype == torch.float32


def moved(settings: ExponentialLossScale, *overflows: bool) -> list[tuple[float, int, int, int]]:
    """Scale and counters after each step."""
    scale = settings.create()
    seen: list[tuple[float, int, int, int]] = []
    for overflow in overflows:
        scale.update(torch.tensor(2.0 if overflow else 0.0))
        seen.append((scale.scale.item(), int(scale.good), int(scale.bad), int(scale.skipped)))
    return seen


def test_every_step_updates_scale_and_counters_by_the_rule() -> None:
    settings = ExponentialLossScale(
        init_loss_scale=8.0,
        incr_every_n_steps=2,
        decr_every_n_nan_or_inf=2,
        incr_ratio=4.0,
        decr_ratio=0.125,
    )
    assert moved(settings, False, False, True, False, True, True, True, True, True) == [
        (8.0, 1, 0, 0),
        (32.0, 0, 0, 0),
        (32.0, 0, 1, 1),
        (32.0, 1, 1, 1),
        (4.0, 0, 0, 2),
        (4.0, 0, 1, 3),
        (1.0, 0, 0, 4),
        (1.0, 0, 1, 5),
        (1.0, 0, 0, 6),
    ]


def test_scale_that_would_exceed_float32_is_kept() -> None:
    for start, after in ((1.6e38, 3.2e38), (1.8e38, 1.8e38)):
        settings = ExponentialLossScale(init_loss_scale=start, incr_every_n_steps=1)
        (first,) = moved(settings, False)
        assert first[0] == pytest.approx(after)
        assert first[1:] == (0, 0, 0)


def test_fixed_scale_only_counts_overflows() -> None:
    scale = FixedLossScale(init_loss_scale=8.0).create()
    for value in (0.0, 1.0, 3.0):
        scale.update(torch.tensor(value))
    state = {name: each.item() for name, each in scale.state_dict().items()}
    assert state == {"scale": 8.0, "good": 0, "bad": 0, "skipped": 2, "overflow_at_floor": False}
    assert scale.is_fixed
    assert not ExponentialLossScale().create().is_fixed
    assert NoLossScale().create() is None
