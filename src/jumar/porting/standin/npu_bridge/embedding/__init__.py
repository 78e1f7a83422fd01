"""The names of the embedding service, which is meaningless without parameter servers."""

from npu_bridge_standin.signatures import add_device_only

add_device_only(globals())
