"""Axes that are open, and those that a file fixes."""

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.runs.exporting.network import Axis, Exportable, Port


def exportable() -> Exportable:
    return Exportable(
        network=torch.nn.Identity(),
        inputs=[Port(name="image", shape=("batch", 3, "height", "width"), meaning="")],
        outputs=[Port(name="maps", shape=("batch", 6, "height/4", "width*2"), meaning="")],
        axes={
            "batch": Axis(usual=2, other=3),
            "height": Axis(usual=64, other=96, min_length=32, max_length=320, multiple=32),
            "width": Axis(usual=8, other=9),
        },
        made_up=lambda lengths, random: (
            torch.rand(lengths["batch"], 3, lengths["height"], lengths["width"], generator=random),
        ),
        facts={},
    )


def test_sizes_derived_from_a_fixed_length_are_fixed() -> None:
    fixed = exportable().fixed({"height": 96, "width": 5})
    assert list(fixed.axes) == ["batch"]
    assert fixed.inputs[0].shape == ["batch", 3, 96, 5]
    assert fixed.outputs[0].shape == ["batch", 6, 24, 10]
    assert fixed.sample(batch=1)[0].shape == (1, 3, 96, 5)


@pytest.mark.parametrize("length", [0, 31, 33, 352])
def test_length_that_the_network_does_not_support_is_refused(length: int) -> None:
    with pytest.raises(UserError, match=f"height cannot be {length}"):
        exportable().fixed({"height": length})


@pytest.mark.parametrize(
    ("shape", "fits"),
    [
        ((4, 3, 64, 7), True),
        ((4, 1, 64, 7), False),
        ((4, 3, 65, 7), False),
        ((4, 3, 64), False),
    ],
)
def test_inputs_fit_if_all_lengths_do(shape: tuple[int, ...], fits: bool) -> None:
    lengths = exportable().lengths_of([torch.zeros(shape)])
    assert (lengths == {"batch": 4, "height": 64, "width": 7}) if fits else lengths is None
