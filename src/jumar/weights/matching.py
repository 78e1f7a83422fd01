"""Match the variables in a file to the weights of a network.

Each network comes with a description, `TfNames`. Comparing it with a file yields a `Matching`: the
pairs, and the unmatched names on either side. Only names and shapes are compared; no value is read.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jumar.models.tf_layout import TfNames, TfVariable
from jumar.weights.tensor_types import TensorEntry, shape_text

AVERAGE = "/ExponentialMovingAverage"
GLOBAL_STEP = "global_step"
_NO_WEIGHTS = (
    r"(^|/)global_step$",
    r"/(Adam|AdamOptimizer|Momentum|RMSProp|Adagrad|Ftrl)(_\d+)?$",
    r"/(adam|lamb)_[mv]$",
    r"(^|/)beta[12]_power(_\d+)?$",
    r"(^|/)(loss_scale|good_steps|bad_steps)(/|$)",
    r"^(_CHECKPOINTABLE_OBJECT_GRAPH|save_counter/.*)$",
)
"""What TensorFlow's and Ascend's training code saves beside the weights."""
_NOT_IN_TENSORFLOW = ".num_batches_tracked"
"""Torch counts the batches of a batch norm, but does not use the count if a momentum is set."""


@dataclass(frozen=True, kw_only=True)
class Match:
    """A weight of the network and its names in the file.

    Attributes:
        raw: Name in the file of the value as trained.
        average: Name in the file of its moving average, or "".
    """

    variable: TfVariable
    raw: str
    average: str


@dataclass(frozen=True, kw_only=True)
class WrongShape:
    """A weight that has another shape in the file; both shapes are in TensorFlow's layout."""

    variable: TfVariable
    source: str
    found: tuple[int, ...]
    needed: tuple[int, ...]

    def __str__(self) -> str:
        return (
            f"{self.source} {shape_text(self.found)} for {self.variable.name}, "
            f"which needs {shape_text(self.needed)}"
        )


@dataclass(frozen=True, kw_only=True)
class Matching:
    """How a file matches a network.

    Attributes:
        matches: Weights that match, in the order of the original's graph.
        wrong_shape: Weights that match only by name.
        missing: Variables that the network needs and the file lacks.
        unnamed: Weights of the network that have no name in TensorFlow.
        leftover: Names in the file that do not belong to the network, although they may be
            weights.
        ignored: Names in the file that are known not to be weights.
    """

    matches: Sequence[Match]
    wrong_shape: Sequence[WrongShape]
    missing: Sequence[TfVariable]
    unnamed: Sequence[str]
    leftover: Sequence[str]
    ignored: Sequence[str]

    @property
    def has_averages(self) -> bool:
        """Whether the file has the average of any matching weight."""
        return any(match.average for match in self.matches)


def match_names(
    names: TfNames,
    entries: Mapping[str, TensorEntry],
    weights: Mapping[str, tuple[int, ...]],
) -> Matching:
    """Compare a file with a network.

    Args:
        names: The network's names in TensorFlow.
        entries: The file's entries by name.
        weights: Shapes of the network's `state_dict`.
    """
    sources, other_names = _resolve(names, entries)
    matches: list[Match] = []
    wrong_shape: list[WrongShape] = []
    missing: list[TfVariable] = []
    for variable in names.variables:
        plain = sources.pop((variable.tf_name, False), "")
        average = sources.pop((variable.tf_name, True), "")
        if names.averages == "swapped" and plain and average:
            plain, average = average, plain
        if not plain:
            missing.append(variable)
            other_names += [average] if average else []
            continue
        needed = tensorflow_shape(variable, weights[variable.name])
        source = next(
            (name for name in (plain, average) if name and entries[name].shape != needed), ""
        )
        if source:
            wrong_shape.append(
                WrongShape(
                    variable=variable, source=source, found=entries[source].shape, needed=needed
                )
            )
        else:
            matches.append(Match(variable=variable, raw=plain, average=average))
    patterns = [re.compile(pattern) for pattern in (*_NO_WEIGHTS, *names.ignored)]
    ignored = [name for name in other_names if any(pattern.search(name) for pattern in patterns)]
    return Matching(
        matches=matches,
        wrong_shape=wrong_shape,
        missing=missing,
        unnamed=unnamed_weights(names, weights),
        leftover=[name for name in other_names if name not in set(ignored)],
        ignored=ignored,
    )


def unnamed_weights(names: TfNames, weights: Iterable[str]) -> list[str]:
    """Return the network's weights that have no name in TensorFlow."""
    with_name = {variable.name for variable in names.variables}
    return [
        name for name in weights if name not in with_name and not name.endswith(_NOT_IN_TENSORFLOW)
    ]


def tensorflow_shape(variable: TfVariable, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that a weight of the network has in TensorFlow."""
    # A view of a single zero takes no memory, and the layout only moves axes.
    return variable.layout.to_tensorflow(np.broadcast_to(np.float32(0), shape)).shape


def _resolve(
    names: TfNames, file_names: Iterable[str]
) -> tuple[dict[tuple[str, bool], str], list[str]]:
    """Return the file's name for each variable and average, and the remaining names."""
    tf_names = {variable.tf_name for variable in names.variables}
    renamings = [(re.compile(pattern), new) for pattern, new in names.renamings]
    sources: dict[tuple[str, bool], str] = {}
    other_names: list[str] = []
    # An exact name takes precedence over one that has to be renamed.
    for name in sorted(
        file_names, key=lambda name: (name.removesuffix(AVERAGE) not in tf_names, name)
    ):
        target = (
            _renamed(name.removesuffix(AVERAGE), tf_names, renamings),
            name.endswith(AVERAGE),
        )
        if target[0] in tf_names and target not in sources:
            sources[target] = name
        else:
            other_names.append(name)
    return sources, other_names


def _renamed(
    name: str, tf_names: "set[str]", renamings: Sequence[tuple["re.Pattern[str]", str]]
) -> str:
    for pattern, new in renamings:
        if name in tf_names:
            break
        name = pattern.sub(new, name)
    return name
