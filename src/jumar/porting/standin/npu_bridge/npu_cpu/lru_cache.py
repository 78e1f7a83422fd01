"""A cache of embeddings: its name, for it lives on a device."""

from npu_bridge_standin.device_ops import device_only

LruCache = device_only("LruCache")
