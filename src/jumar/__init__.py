"""jumar: bring deep-learning models up onto Huawei Ascend NPUs."""

import os

# The real torch_npu registers itself for torch to load at its own import, and without CANN that
# import fails: even `--device cpu` would die of it. `jumar.device` loads torch_npu when asked.
os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")

__version__ = "0.1.0"
