"""Write a traced network as an ONNX file, and run it with onnxruntime."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram

from jumar.ground.errors import UserError
from jumar.ground.text import size_text
from jumar.runs.exporting.checking import Array, Runner
from jumar.runs.exporting.network import Exportable, Port
from jumar.runs.exporting.tracing import calling_exporter

OPSET = 18
IR_VERSION = 8
"""The version of files of ONNX 1.12, which atc of CANN 7.0 to 9.1 reads, with opsets 9 to 18."""
_MAX_BYTES = 2**31 - 1
"""Maximum size of a protobuf message."""


def onnx_content(
    exportable: Exportable, program: ExportedProgram, facts: Mapping[str, Any]
) -> tuple[bytes, frozenset[str]]:
    """Return the bytes of an ONNX file and the op types in it.

    Args:
        exportable: The network.
        program: The traced network.
        facts: Metadata for the file, each value stored as JSON.

    Raises:
        UserError: The network is too large for one file.
        ModuleNotFoundError: A package of the extra `onnx` is missing.
    """
    import onnx

    size = sum(tensor.nbytes for tensor in program.state_dict.values())
    if size > _MAX_BYTES:
        raise UserError(
            f"the weights are {size_text(size)}, but an ONNX file is limited to 2 GB",
            where="--to",
            todo="Export as FILE.pt2 or FILE.safetensors.",
        )
    with torch.no_grad(), calling_exporter():
        onnx_program = torch.onnx.export(
            program,
            dynamo=True,
            opset_version=OPSET,
            input_names=[port.name for port in exportable.inputs],
            output_names=[port.name for port in exportable.outputs],
            external_data=False,
            verbose=False,
        )
    assert onnx_program is not None
    model = onnx_program.model_proto
    model.ir_version = IR_VERSION
    model.producer_name = "jumar"
    graph = model.graph
    # Names and source lines of intermediate results are of no use elsewhere.
    del graph.value_info[:], model.metadata_props[:], graph.metadata_props[:]
    for entry in [*graph.node, *graph.initializer, *graph.input, *graph.output]:
        del entry.metadata_props[:]
        entry.doc_string = ""
    for info, port in zip(
        [*graph.input, *graph.output], [*exportable.inputs, *exportable.outputs], strict=True
    ):
        _name_axes(info, port)
    for key, value in facts.items():
        model.metadata_props.add(key=key, value=json.dumps(value))
    onnx.checker.check_model(model)
    return model.SerializeToString(), frozenset(node.op_type for node in graph.node)


def onnx_runner(content: bytes) -> Runner:
    """Return a runner of an ONNX file with onnxruntime, on one thread of the CPU."""
    session = onnx_session(content)
    names = [port.name for port in session.get_inputs()]

    def run(batches: Sequence[tuple[Array, ...]]) -> list[list[Array]]:
        return [
            [np.asarray(array) for array in session.run(None, dict(zip(names, batch, strict=True)))]
            for batch in batches
        ]

    return run


def onnx_session(content: bytes) -> Any:
    """Return an onnxruntime session on one thread of the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(content, options, providers=providers)


def _name_axes(info: Any, port: Port) -> None:
    for dim, length in zip(info.type.tensor_type.shape.dim, port.shape, strict=True):
        if isinstance(length, str):
            dim.dim_param = length
