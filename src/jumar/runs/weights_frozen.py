"""Write a recipe's weights into a copy of a frozen graph: `jumar weights export --to frozen`."""

from collections.abc import Mapping
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.runs.weights_exchange import Network, Weights, listed
from jumar.weights.frozen_graph import read_constants
from jumar.weights.frozen_writer import write_frozen
from jumar.weights.matching import match_names
from jumar.weights.tensor_types import Array, TensorEntry

_FLOATS = ("float32", "float64", "half", "bfloat16")


def export_frozen(network: Network, weights: Weights, like: Path, out: Path) -> list[str]:
    """Write a frozen graph with a network's weights.

    Args:
        network: The network, for its names and shapes.
        weights: The weights used for scoring: averages if there are any.
        like: A frozen graph of the same network, created by the original's scripts.
        out: The file to create.

    Returns:
        The lines of a summary.

    Raises:
        UserError: The graph is not of this network, or the file cannot be written.
    """
    graph = read_constants(like)
    entries = {name: graph.entry(name) for name in graph.names()}
    matching = match_names(network.names, entries, network.shapes)
    wrong_types = [
        f"{match.raw} {entries[match.raw].dtype}"
        for match in matching.matches
        if entries[match.raw].dtype != "float32"
    ]
    problems = [
        (
            "missing in the graph",
            [f"{weight.tf_name} for {weight.name}" for weight in matching.missing],
        ),
        ("with a different shape", [str(weight) for weight in matching.wrong_shape]),
        ("without a TensorFlow name", list(matching.unnamed)),
        ("not float32", wrong_types),
    ]
    if any(names for _, names in problems):
        raise UserError(
            f"is not a frozen graph of {network.name}",
            where=str(like),
            todo="\n".join(
                [
                    *(f"  {listed(title, names)}" for title, names in problems if names),
                    "Nothing was written. --like needs a graph whose variables became constants "
                    "of the same names, without folded batch norms or quantized weights.",
                ]
            ),
        )
    values: Mapping[str, Array] = {
        match.raw: match.variable.to_tensorflow(weights[match.variable.name].float())
        for match in matching.matches
    }
    write_frozen(out, graph, values)
    unchanged = [name for name in matching.leftover if _may_be_weights(entries[name])]
    return [
        f"{len(values)} weights of {network.name} in a copy of {like}",
        *([f"  {listed('unchanged', unchanged)}"] if unchanged else []),
        f"written: {out}",
    ]


def _may_be_weights(entry: TensorEntry) -> bool:
    return entry.dtype in _FLOATS and entry.elements > 1
