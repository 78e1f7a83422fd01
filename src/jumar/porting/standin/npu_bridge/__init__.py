"""Stand-in for the TensorFlow adapter of Ascend: the real names, computed by TensorFlow's CPU.

What a port is checked with where no NPU is: the same import paths, signatures and defaults as the
real package, options that are checked instead of ignored, and collectives of one process. Numbers
of the device (rounding, random masks, speed) are not reproduced.
"""

from npu_bridge.helper import helper
from npu_bridge.helper.helper import npu_bridge_handle
from npu_bridge.helper.helper import version as __version__

# The real package imports these too, so scripts reach them through `import npu_bridge`.
from npu_bridge.estimator.npu import npu_estimator  # isort: skip
from npu_bridge.hccl import hccl_ops  # isort: skip

__all__ = ["__version__", "hccl_ops", "helper", "npu_bridge_handle", "npu_estimator"]
