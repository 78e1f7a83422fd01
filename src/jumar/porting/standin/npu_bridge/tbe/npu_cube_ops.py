"""Operators of the matrix engine: their names, for they run on a device."""

from npu_bridge_standin.signatures import add_device_only

add_device_only(globals())
