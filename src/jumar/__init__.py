"""jumar: bring up deep-learning models on Huawei Ascend NPUs."""

import os

# The real torch_npu registers itself for torch to load at its own import, and without CANN that
# import fails, even with `--device cpu`. `jumar.devices.npu` loads torch_npu on request.
os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")

# On a CPU, memory in pages of 2 MB where Linux has them: gradients are taken anew at every step,
# and mapping AlexNet's in pages of 4 kB costs a quarter of one. Torch reads it at the first one.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

__version__ = "0.1.0"
