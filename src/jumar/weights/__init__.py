"""Weights of TensorFlow 1.x, read and written without TensorFlow."""
