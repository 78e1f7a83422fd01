import pytest

from jumar.data.loading.faults import FaultTally
from jumar.data.samples import Fault
from jumar.ground.errors import UserError


def fault(number: int) -> Fault:
    return Fault(origin=f"train.zip, {number}.jpg", reason="cut short")


def test_the_first_fault_stops_with_file_reason_and_option() -> None:
    with pytest.raises(UserError) as caught:
        FaultTally().add([fault(7)])
    assert caught.value.where == "train.zip, 7.jpg"
    assert "cut short" in str(caught.value)
    assert "--skip-corrupt N" in str(caught.value)


def test_as_many_as_allowed_are_tolerated_and_kept_in_order() -> None:
    tally = FaultTally(2)
    tally.add([fault(1)])
    tally.add([fault(0)])
    assert tally.faults == (fault(1), fault(0))


def test_one_more_than_allowed_stops_and_lists_all() -> None:
    tally = FaultTally(2)
    tally.add([fault(0), fault(1)])
    with pytest.raises(UserError) as caught:
        tally.add([fault(2)])
    assert "3 unreadable samples, more than the 2 allowed" in str(caught.value)
    for number in range(3):
        assert f"train.zip, {number}.jpg: cut short" in str(caught.value)


def test_a_sample_that_every_epoch_meets_counts_once() -> None:
    tally = FaultTally(1)
    for _ in range(5):
        tally.add([fault(3)])
    assert len(tally.faults) == 1


def test_a_long_list_is_cut() -> None:
    with pytest.raises(UserError, match=r"and 80 more") as caught:
        FaultTally(1).add([fault(number) for number in range(100)])
    assert len(str(caught.value).splitlines()) < 30
