"""Which operators of torch a list may name."""

import pytest
import torch

from jumar.precision.overloads import can_cast, find_overload

ATEN = torch.ops.aten


def test_overload_is_found_by_its_name_or_as_the_default() -> None:
    assert find_overload("mm") is ATEN.mm.default
    assert find_overload("softmax.int") is ATEN.softmax.int
    for name in ("softmax", "softmax.other", "nonsense", "nonsense.default", "__name__"):
        assert find_overload(name) is None, name


@pytest.mark.parametrize(
    ("op", "can"),
    [
        (ATEN.mm.default, True),
        (ATEN.cat.default, True),
        (ATEN.add.Tensor, True),
        (ATEN.add_.Tensor, False),
        (ATEN.add.out, False),
        (ATEN.view.default, False),
        (ATEN.gelu_backward.default, False),
        (ATEN.arange.default, False),
        (ATEN.item.default, False),
        (ATEN.equal.default, False),
    ],
)
def test_mutating_view_and_non_tensor_overloads_are_not_cast(
    op: torch._ops.OpOverload, can: bool
) -> None:
    assert can_cast(op) is can
