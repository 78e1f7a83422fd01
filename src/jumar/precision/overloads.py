"""Find torch's operators by their names in op lists."""

from functools import cache
from typing import Any

import torch


@cache
def find_overload(op: str) -> torch._ops.OpOverload | None:
    """Return the torch operator of an aten overload name, or None if this torch lacks it."""
    packet_name, _, overload = op.partition(".")
    packet = getattr(torch.ops.aten, packet_name, None)
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return None
    return getattr(packet, overload or "default", None)


def can_cast(overload: torch._ops.OpOverload) -> bool:
    """Whether a list may change an operator's dtype.

    That is not possible if it writes to an argument or returns a view of one: because of a cast, it
    would use a copy, and the assignment in `x[:, 0] = y` would be lost.
    """
    schema: Any = overload._schema
    tensors = [argument for argument in schema.arguments if "Tensor" in str(argument.type)]
    aliases = any(argument.alias_info for argument in schema.arguments)
    returns_tensor = any("Tensor" in str(result.type) for result in schema.returns)
    is_backward = "backward" in schema.name
    return bool(tensors) and returns_tensor and not aliases and not is_backward
