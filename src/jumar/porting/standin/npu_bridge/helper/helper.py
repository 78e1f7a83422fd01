"""The handle for the operators; importing this makes every session check its options."""

from npu_bridge_standin import device_ops
from npu_bridge_standin.sessions import check_every_session

version = "v1.15.0"
npu_bridge_handle = device_ops

# The real module loads the library whose graph optimizer reads the options of every session.
check_every_session()


def get_gen_ops():
    """Return the module with the operators."""
    return npu_bridge_handle
