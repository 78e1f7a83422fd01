"""The names of the matrix engine's operators, which run only on a device."""

from npu_bridge_standin.signatures import add_device_only

add_device_only(globals())
