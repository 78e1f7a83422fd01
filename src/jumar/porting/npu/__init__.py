"""Data about the NPU's TensorFlow adapter: names, options, support of the API."""
