"""Building a network whose weights will be loaded, without drawing random ones first."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_DRAWS: frozenset[Callable[..., object]] = frozenset(
    {
        Tensor.uniform_,
        Tensor.normal_,
        # These check for a mode before they call the two above.
        nn.init.uniform_,
        nn.init.normal_,
        nn.init.kaiming_uniform_,
    }
)
_STEPS_AFTER: frozenset[Callable[..., object]] = frozenset(
    {Tensor.erfinv_, Tensor.mul_, Tensor.add_, Tensor.clamp_}
)
"""Steps with which older torch releases truncate a normal; they cost as much as the draw."""


class Unfilled(TorchFunctionMode):
    """A context in which parameters are 0 instead of random, to be loaded afterwards.

    The 200 million weights of a BigGAN take many seconds to draw, only to be overwritten by those
    of a checkpoint. Buffers are created as usual, because masks and windows are computed and not
    stored in checkpoints.

        with Unfilled():
            model = recipe.build_model()
    """

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        """Handle every torch call in the context; only draws of parameters are changed."""
        del types
        kwargs = kwargs or {}
        if func in _DRAWS or func in _STEPS_AFTER:
            target = args[0] if args else kwargs.get("tensor")
            if isinstance(target, nn.Parameter):
                # 0 rather than uninitialised memory, because a truncated normal is redrawn while
                # any value is outside its bounds.
                with torch.no_grad():
                    return target.zero_() if func in _DRAWS else target
        return func(*args, **kwargs)
