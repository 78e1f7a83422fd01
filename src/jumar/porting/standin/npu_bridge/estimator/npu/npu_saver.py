"""Savers; a device needs special ones, a CPU does not."""

from tensorflow.python.training.saver import BulkSaverBuilder, Saver


class NPUBulkSaverBuilder(BulkSaverBuilder):
    """TensorFlow's builder."""


class NPUSaver(Saver):
    """TensorFlow's saver."""
