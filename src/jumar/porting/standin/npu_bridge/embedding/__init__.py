"""The embedding service: its names, for it has no meaning without parameter servers."""

from npu_bridge_standin.signatures import add_device_only

add_device_only(globals())
