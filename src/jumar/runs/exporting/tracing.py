"""Traces a network to a graph, with open axes left open."""

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
from jumar.runs.exporting.network import Exportable

_ADDRESSES = ("stack_trace", "source_fn_stack", "nn_module_stack", "torch_fn")
"""Node metadata that refers to files of this machine."""


def traced(exportable: Exportable) -> ExportedProgram:
    """The graph of a network; the network itself is unchanged."""
    network = copy.deepcopy(exportable.network).eval()
    exportable.prepared(network)
    dims = {
        name: _dim(name, axis.least, axis.most, axis.multiple)
        for name, axis in exportable.axes.items()
    }
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
        for key in _ADDRESSES:
            node.meta.pop(key, None)
    return program


@contextmanager
def calling_exporter() -> Generator[None]:
    """A region that calls torch's exporters without their log messages.

    The result is checked afterwards.

    Raises:
        UserError: An exporter fails on the network, such as one with data-dependent control flow.
    """
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        # An incomplete graph is printed to stderr, whatever the log level.
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    except (MemoryError, OSError, ImportError):
        raise
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(
            f"PyTorch {torch.__version__} cannot export this network: {reason[:300]}",
            todo="Its weights can be: --to FILE.safetensors. In a network of your own, what is "
            "computed must not depend on values or sizes.",
        ) from error
    finally:
        logging.disable(before)


def _dim(name: str, least: int, most: int | None, multiple: int) -> Any:
    if multiple == 1:
        return Dim(name, min=least, max=most)
    count = Dim(f"{name}_by_{multiple}", min=least // multiple, max=most and most // multiple)
    return multiple * count
