"""Sessions whose work belongs on the host: decoding, writing files, freezing a graph."""

import ast

from jumar.porting.rewriting import View
from jumar.porting.script.nodes import walk

_HOST = (
    "tensorflow.image.decode_",
    "tensorflow.image.encode_",
    "tensorflow.io.decode_",
    "tensorflow.io.encode_",
    "tensorflow.audio.",
    "tensorflow.contrib.framework.python.ops.audio_ops.",
    "tensorflow.python.ops.gen_audio_ops.",
    "tensorflow.contrib.ffmpeg.",
    "tensorflow.graph_util.convert_variables_to_constants",
    "tensorflow.python.framework.graph_util.convert_variables_to_constants",
)
_TRAINS = ("tensorflow.train.", "tensorflow.gradients", "tensorflow.layers.", "tensorflow.nn.")


def is_host_only(call: ast.Call, view: View) -> bool:
    """Whether the function around a session calls host operations and nothing that trains.

    Such a session decodes WAV or JPEG strings, or freezes a graph: string and audio operators do
    not run on the device.
    """
    function = view.module.function(call)
    if function is None:
        return False
    names = [
        view.module.name_of(node.func) or ""
        for node in walk(function)
        if isinstance(node, ast.Call)
    ]
    host = any(name.startswith(_HOST) for name in names)
    trains = any(
        name.startswith(_TRAINS) and not name.startswith("tensorflow.train.Saver") for name in names
    )
    return host and not trains
