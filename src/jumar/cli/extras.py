"""Packages that a bare `pip install jumar` leaves out, and the message when one is needed."""

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
"""Those of the extra `detection`, beyond `train`."""

PLACING_MODULES = {"ray": "ray", "optuna": "search"}
"""The module of each extra that places runs elsewhere or chooses their settings."""


def not_installed(error: ModuleNotFoundError) -> UserError | None:
    """What to install for a failed import; None if the module is not in an extra."""
    module = (error.name or "").partition(".")[0]
    known = {*TRAIN_MODULES, *DETECTION_MODULES, *PLACING_MODULES}
    if module not in known or find_spec(module) is not None:
        return None
    extra = "detection" if module in DETECTION_MODULES else PLACING_MODULES.get(module, "train")
    return UserError(
        f'this command needs {module}, which is not installed: pip install "jumar[{extra}]"'
    )
