"""Passes that are repeated leave no trace."""

import random

import numpy
import pytest
import torch

from jumar.precision.recording.restoring import restored


def drawn() -> tuple[float, float, float]:
    return random.random(), float(numpy.random.random()), torch.rand(()).item()


def test_buffers_and_all_random_states_are_restored() -> None:
    buffer = torch.arange(3.0)
    with restored([buffer]) as restore:
        first = drawn()
        assert drawn() != first
        buffer.add_(1)
        restore()
        assert (drawn(), buffer.tolist()) == (first, [0.0, 1.0, 2.0])
        buffer.add_(1)
    assert (drawn(), buffer.tolist()) == (first, [0.0, 1.0, 2.0])


def test_state_is_restored_after_an_error() -> None:
    buffer = torch.ones(2, requires_grad=True)

    def fail() -> None:
        with restored([buffer]):
            with torch.no_grad():
                buffer.add_(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert buffer.tolist() == [1.0, 1.0]
