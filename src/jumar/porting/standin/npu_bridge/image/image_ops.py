"""Decodes and resizes JPEG images."""

import tensorflow.compat.v1 as tf1


def decode_and_resize_jpeg(image, size):
    """Decode and resize a JPEG image."""
    return _resized(tf1.image.decode_jpeg(image, channels=3), size)


def decode_and_crop_and_resize_jpeg(image, crop_size, size):
    """Decode a crop of a JPEG image, given by y, x, height and width, and resize it."""
    return _resized(tf1.image.decode_and_crop_jpeg(image, crop_size, channels=3), size)


def _resized(image, size):
    return tf1.cast(tf1.image.resize_images(image, size), tf1.uint8)
