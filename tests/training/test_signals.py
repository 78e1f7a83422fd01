"""Signals that ask a run to stop."""

import os
import signal
from collections.abc import Iterator

import pytest

from jumar.training.signals import StopRequest, listening

NUMBERS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in NUMBERS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_first_signal_is_a_request_and_the_second_takes_effect(number: int, exit_code: int) -> None:
    before = [signal.getsignal(each) for each in NUMBERS]
    with listening() as stop:
        assert (bool(stop), stop.signal) == (False, 0)
        os.kill(os.getpid(), number)
        assert (bool(stop), stop.signal, stop.exit_code) == (True, number, exit_code)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        if number == signal.SIGINT:
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), number)
    assert [signal.getsignal(each) for each in NUMBERS] == before


def test_ignored_signals_stay_ignored_and_others_are_restored_after_an_error() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    before = signal.getsignal(signal.SIGTERM)

    def fail() -> None:
        with listening() as stop:
            os.kill(os.getpid(), signal.SIGINT)
            assert not stop
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not before
            raise RuntimeError("as planned")

    with pytest.raises(RuntimeError, match="as planned"):
        fail()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is before


def test_request_is_none_until_a_signal_arrives() -> None:
    request = StopRequest()
    assert not request
    assert request.exit_code == 128
    request.signal = 15
    assert request
    assert request.exit_code == 143
