"""Stand-in for Ascend's TensorFlow adapter: the real names, computed by TensorFlow on the CPU.

It is for checking a port without an NPU: the import paths, signatures and defaults are those of the
real package, options are checked instead of ignored, and collectives run in one process. Properties
of the device (rounding, random masks, speed) are not reproduced.
"""

from npu_bridge.helper import helper
from npu_bridge.helper.helper import npu_bridge_handle
from npu_bridge.helper.helper import version as __version__

# The real package imports these too, so scripts reach them through `import npu_bridge`.
from npu_bridge.estimator.npu import npu_estimator  # isort: skip
from npu_bridge.hccl import hccl_ops  # isort: skip

__all__ = ["__version__", "hccl_ops", "helper", "npu_bridge_handle", "npu_estimator"]
