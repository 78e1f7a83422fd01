"""The handle of the operators; importing it has every session's options checked."""

from npu_bridge_standin import device_ops
from npu_bridge_standin.sessions import check_every_session

version = "v1.15.0"
npu_bridge_handle = device_ops

# The real module loads the library whose graph optimizer reads the options of every session.
check_every_session()


def get_gen_ops():
    """The operators."""
    return npu_bridge_handle
