"""Trace a network to a graph, keeping its open axes open."""

import copy
import io
import logging
import warnings
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr
from typing import Any

import torch
from torch.export import Dim, ExportedProgram

from jumar.ground.errors import UserError
from jumar.models.export_mode import export_mode
from jumar.runs.exporting.network import Axis, Exportable

_SOURCE_KEYS = ("stack_trace", "source_fn_stack", "nn_module_stack", "torch_fn")
"""Keys of node metadata that refer to files of this machine."""


def traced(exportable: Exportable) -> ExportedProgram:
    """Return the graph of a network, without changing the network."""
    network = copy.deepcopy(exportable.network).eval()
    exportable.prepared(network)
    dims = {name: _dim(name, axis) for name, axis in exportable.axes.items()}
    shapes = tuple(
        {
            position: dims[length]
            for position, length in enumerate(port.shape)
            if isinstance(length, str)
        }
        for port in exportable.inputs
    )
    with torch.no_grad(), export_mode(), calling_exporter():
        program = torch.export.export(
            network, exportable.sample(), dynamic_shapes=shapes, strict=False
        )
    for node in program.graph.nodes:
        for key in _SOURCE_KEYS:
            node.meta.pop(key, None)
    return program


@contextmanager
def calling_exporter() -> Generator[None]:
    """Silence torch's exporters and turn their exceptions into errors for the user.

    Raises:
        UserError: The network cannot be exported, for instance due to data-dependent control flow.
    """
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        # An incomplete graph is printed to stderr at any log level.
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    except (MemoryError, OSError, ImportError):
        raise
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(
            f"PyTorch {torch.__version__} cannot export this network: {reason[:300]}",
            todo="Its weights can be: --to FILE.safetensors. In your own network, the sequence of "
            "operations must not depend on values or sizes.",
        ) from error
    finally:
        logging.disable(before)


def _dim(name: str, axis: Axis) -> Any:
    multiple, longest = axis.multiple, axis.max_length
    if multiple == 1:
        return Dim(name, min=axis.min_length, max=longest)
    min_count = axis.min_length // multiple
    count = Dim(f"{name}_by_{multiple}", min=min_count, max=longest and longest // multiple)
    return multiple * count
