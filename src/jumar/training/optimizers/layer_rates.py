"""Learning rates that differ by layer: factors on the schedule's rate for each parameter."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Protocol, runtime_checkable

from torch import nn

from jumar.ground.errors import UserError
from jumar.training.name_patterns import check_patterns, matches, matches_any
from jumar.training.optimizers.optimizer import OptimizerSettings, rate_of

_DECAY = "optimizer.layer_decay"


@runtime_checkable
class OrderedLayers(Protocol):
    """A network that names its layers from the input to the output."""

    def layer_order(self) -> Sequence[str]:
        """Prefixes of parameter names; parameters without such a prefix belong to the output."""
        ...


def rate_factors(
    model: nn.Module, names: Sequence[str], settings: OptimizerSettings
) -> dict[str, float]:
    """The factor on the learning rate of each parameter.

    With layer decay, the output has a factor of 1 and each layer below it `layer_decay` times the
    factor of the layer above, as in ELECTRA and BEiT. `layer_rates` multiplies these factors; if
    several patterns match a parameter, the last one counts.

    Args:
        model: The network.
        names: The names in the network of one optimizer's parameters.
        settings: The settings of the optimizer.

    Raises:
        UserError: A pattern matches nothing, or the network does not define the order of its
            layers.
    """
    factors = dict.fromkeys(names, 1.0)
    if settings.layer_decay != 1.0:
        factors = _decayed(model, names, settings.layer_decay)
    pairs = [rate_of(text) for text in settings.layer_rates]
    check_patterns((pattern for pattern, _ in pairs), names, where="optimizer.layer_rates")
    for name in names:
        pattern_factors = [factor for pattern, factor in pairs if matches(name, pattern)]
        if pattern_factors:
            factors[name] *= pattern_factors[-1]
    return factors


def factor_lines(factors: dict[str, float]) -> list[str]:
    """A line with the factors in ascending order; no line if all are 1."""
    by_factor: dict[float, list[str]] = {}
    for name, factor in factors.items():
        by_factor.setdefault(factor, []).append(name)
    if set(by_factor) <= {1.0}:
        return []
    parts = [f"{factor:.4g} for {_shared(by_factor[factor])}" for factor in sorted(by_factor)]
    shortened = parts if len(parts) <= 6 else [*parts[:3], "...", *parts[-2:]]
    return [f"factors on the learning rate: {', '.join(shortened)}"]


def _decayed(model: nn.Module, names: Sequence[str], decay: float) -> dict[str, float]:
    order = _layer_order(model)
    if not order:
        raise UserError(
            f"the order of the layers of {type(model).__name__} is not known",
            where=_DECAY,
            todo="Set rates by layer instead: --set optimizer.layer_rates=PATTERN=FACTOR,... In "
            "your own network, define layer_order(), which returns the prefixes of its layers from "
            "the input to the output.",
        )
    # Layers without parameters (a pooling) do not count as steps of the decay.
    order = [layer for layer in order if any(matches(name, layer) for name in names)]
    if names and all(matches_any(name, order) for name in names):
        order = order[:-1]
    return {name: decay ** (len(order) - _depth(name, order)) for name in names}


def _layer_order(model: nn.Module) -> list[str]:
    """The prefixes of the layers, or those of the encoder below the heads; empty if unknown."""
    if isinstance(model, OrderedLayers):
        return list(model.layer_order())
    if isinstance(model, nn.Sequential):
        return [name for name, _ in model.named_children()]
    encoders = [
        (name, child) for name, child in model.named_children() if isinstance(child, OrderedLayers)
    ]
    return [f"{name}.{layer}" for name, child in encoders[:1] for layer in child.layer_order()]


def _depth(name: str, order: Sequence[str]) -> int:
    return next((depth for depth, layer in enumerate(order) if matches(name, layer)), len(order))


def _shared(names: Sequence[str]) -> str:
    """A name for several parameters: their common prefix, or the first name and a count."""
    parts = [name.split(".") for name in names]
    columns = zip(*parts, strict=False)
    common = [column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns)]
    if common:
        return ".".join(common)
    return f"{names[0]} and {len(names) - 1} more"
