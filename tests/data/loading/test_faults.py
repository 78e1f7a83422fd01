import pytest

from jumar.data.loading.faults import FaultTally
from jumar.data.samples import Fault
from jumar.ground.errors import UserError


def fault(number: int) -> Fault:
    return Fault(origin=f"train.zip, {number}.jpg", reason="cut short")


def test_first_fault_stops_with_file_reason_and_option() -> None:
    with pytest.raises(UserError) as caught:
        FaultTally().add([fault(7)])
    assert caught.value.where == "train.zip, 7.jpg"
    assert "cut short" in str(caught.value)
    assert "--skip-corrupt N" in str(caught.value)


def test_allowed_number_of_faults_is_tolerated_and_kept_in_order() -> None:
    tally = FaultTally(2)
    tally.add([fault(1)])
    tally.add([fault(0)])
    assert tally.faults == (fault(1), fault(0))


def test_one_fault_too_many_stops_and_lists_all() -> None:
    tally = FaultTally(2)
    tally.add([fault(0), fault(1)])
    with pytest.raises(UserError) as caught:
        tally.add([fault(2)])
    assert "3 unreadable samples, more than the 2 allowed" in str(caught.value)
    for number in range(3):
        assert f"train.zip, {number}.jpg: cut short" in str(caught.value)


def test_sample_faulty_in_every_epoch_counts_once() -> None:
    tally = FaultTally(1)
    for _ in range(5):
        tally.add([fault(3)])
    assert len(tally.faults) == 1


def test_long_list_of_faults_is_truncated() -> None:
    with pytest.raises(UserError, match=r"and 80 more") as caught:
        FaultTally(1).add([fault(number) for number in range(100)])
    assert len(str(caught.value).splitlines()) < 30


def test_error_that_stops_a_run_has_the_full_message() -> None:
    with pytest.raises(UserError) as caught:
        FaultTally().add([fault(7)])
    assert str(caught.value) == (
        "train.zip, 7.jpg: cut short\n"
        "  Repair or remove this sample, or skip up to N such samples: "
        "--skip-corrupt N"
    )
    todo = "  Repair or remove them, or allow more: --skip-corrupt N"
    for count, more in ((20, ""), (21, "  ... and 1 more\n")):
        with pytest.raises(UserError) as caught:
            FaultTally(3).add([fault(number) for number in range(count)])
        lines = "".join(f"  train.zip, {number}.jpg: cut short\n" for number in range(20))
        assert str(caught.value) == (
            f"{count} unreadable samples, more than the 3 allowed\n{lines}{more}{todo}"
        )


def test_no_faults_are_allowed_by_default_and_the_first_report_of_a_sample_is_kept() -> None:
    tally = FaultTally()
    tally.add([])
    assert (tally.allowed, tally.faults) == (0, ())
    tally = FaultTally(1)
    tally.add([Fault(origin="a", reason="first")])
    tally.add([Fault(origin="a", reason="second")])
    assert tally.faults == (Fault(origin="a", reason="first"),)
