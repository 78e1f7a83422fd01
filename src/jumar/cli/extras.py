"""Packages that a plain `pip install jumar` does not install, and the message if one is needed."""

from importlib.util import find_spec

from jumar.ground.errors import UserError

TRAIN_MODULES = frozenset(
    {
        "torch",
        "safetensors",
        "PIL",
        "simplejpeg",
        "google_crc32c",
        "sklearn",
        "scipy",
        "tokenizers",
        "nltk",
    }
)
"""The modules of the extra `train`, whose packages pyproject.toml lists."""
DETECTION_MODULES = frozenset({"cv2", "shapely", "pyclipper"})
"""Modules of the extra `detection`, beyond `train`."""
ONNX_MODULES = frozenset({"onnx", "onnxscript", "onnxruntime"})
"""Modules of the extra `onnx`."""
RAY_MODULES = frozenset({"ray"})
"""The module of the extra `ray`, which carries out runs on other machines."""
SEARCH_MODULES = frozenset({"optuna"})
"""The module of the extra `search`, which proposes hyperparameters."""
_EXTRAS = {
    "train": TRAIN_MODULES,
    "detection": DETECTION_MODULES,
    "onnx": ONNX_MODULES,
    "ray": RAY_MODULES,
    "search": SEARCH_MODULES,
}


def not_installed(error: ModuleNotFoundError) -> UserError | None:
    """Return the error that names the extra to install; None if the module is not in an extra."""
    module = (error.name or "").partition(".")[0]
    extra = next((name for name, modules in _EXTRAS.items() if module in modules), None)
    if extra is None or find_spec(module) is not None:
        return None
    return UserError(
        f'this command needs {module}, which is not installed: pip install "jumar[{extra}]"'
    )
