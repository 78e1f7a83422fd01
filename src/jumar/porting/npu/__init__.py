"""Data about the NPU's TensorFlow adapter: its names, options and API support."""
