"""What is known of the NPU's TensorFlow adapter: names, options, support of the API."""
