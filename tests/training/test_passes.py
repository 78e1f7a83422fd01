import torch
from hypothesis import given
from hypothesis import strategies as st

from jumar.training.passes import split_batch, step_seed


@given(size=st.integers(1, 40), micro=st.integers(0, 45), first=st.integers(0, 100))
def test_parts_cover_the_batch_once(size: int, micro: int, first: int) -> None:
    batch = {"x": torch.arange(size), "y": torch.arange(size) * 2}
    parts = split_batch(batch, micro, first)
    assert torch.equal(torch.cat([part.batch["x"] for part in parts]), batch["x"])
    assert [part.first_row for part in parts] == [first + int(part.batch["x"][0]) for part in parts]


@given(seed=st.integers(0, 2**31), step=st.integers(0, 10**7))
def test_seeds_of_steps_differ_from_step_to_step_and_run_to_run(seed: int, step: int) -> None:
    here = step_seed(seed, step)
    assert 0 <= here < 2**63
    assert here != step_seed(seed, step + 1)
    assert here != step_seed(seed + 1, step)
