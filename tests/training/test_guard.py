import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jumar.training.guard import Guard, NonFiniteLoss
from jumar.training.parallel.ranks import Ranks


@given(flags=st.lists(st.sampled_from([0.0, 1.0]), max_size=12))
def test_first_bad_step_and_objective_are_recorded_and_later_updates_blocked(
    flags: list[float],
) -> None:
    names = ["discriminator", "generator"]
    guard = Guard(names, torch.device("cpu"), Ranks())
    for number, flag in enumerate(flags):
        step, objective = number // 2 + 1, number % 2
        blocked = guard.watch(torch.tensor(flag), step, objective)
        assert bool(blocked) == any(flags[: number + 1])
    if not any(flags):
        guard.raise_if_blocked("why")
        return
    first = flags.index(1.0)
    with pytest.raises(NonFiniteLoss) as result:
        guard.raise_if_blocked("why")
    assert (result.value.step, result.value.objective) == (first // 2 + 1, names[first % 2])
    assert str(result.value) == f"step {result.value.step}, objective '{names[first % 2]}': why"
