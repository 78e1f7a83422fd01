"""Estimate how far the parameters of two runs may have diverged before the compared step.

Gradients that differ by rounding make the parameters of a later step differ slightly. That is not a
fault of the layer, if the difference is smaller than the updates so far.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from jumar.precision.comparing.observed import magnitude
from jumar.precision.dumps.dump import Dump

_Parameter = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, kw_only=True)
class Drift:
    """The largest possible change by the updates since step 0.

    Attributes:
        parameters: The change (rms) of a parameter, by layer and shape.
        layers: The relative change of a layer's parameters, including its sublayers, by layer.
    """

    parameters: Mapping[_Parameter, float] = field(default_factory=dict[_Parameter, float])
    layers: Mapping[str, float] = field(default_factory=dict[str, float])


def drift_of(dump: Dump) -> Drift:
    """Estimate the drift up to the step of a dump, with one update per step, each like its own."""
    steps = dump.step or 0
    parameters: dict[_Parameter, float] = {}
    changes: defaultdict[str, float] = defaultdict(float)
    sizes: defaultdict[str, float] = defaultdict(float)
    for call in dump.calls if steps else ():
        for value in call.values if call.kind == "parameter" else ():
            rms = magnitude(value)[0]
            if not math.isfinite(rms):
                continue
            squares = rms * rms * math.prod(value.shape)
            if value.role == "change":
                key = (call.layer, value.shape)
                parameters[key] = max(parameters.get(key, 0.0), rms * steps)
            for layer in layer_and_ancestors(call.layer):
                if value.role == "change":
                    changes[layer] += squares
                elif value.role == "parameter":
                    sizes[layer] += squares
    layers = {
        layer: steps * math.sqrt(change / sizes[layer])
        for layer, change in changes.items()
        if sizes[layer] > 0
    }
    return Drift(parameters=parameters, layers=layers)


def layer_and_ancestors(layer: str) -> list[str]:
    """Return a layer and all its ancestors."""
    parts = layer.split(".") if layer else []
    return [".".join(parts[:length]) for length in range(len(parts) + 1)]
