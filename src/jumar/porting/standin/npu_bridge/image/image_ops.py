"""Decoding of JPEG pictures with a change of size."""

import tensorflow.compat.v1 as tf1


def decode_and_resize_jpeg(image, size):
    """A JPEG picture in another size."""
    return _resized(tf1.image.decode_jpeg(image, channels=3), size)


def decode_and_crop_and_resize_jpeg(image, crop_size, size):
    """A part of a JPEG picture, given by y, x, height and width, in another size."""
    return _resized(tf1.image.decode_and_crop_jpeg(image, crop_size, channels=3), size)


def _resized(picture, size):
    return tf1.cast(tf1.image.resize_images(picture, size), tf1.uint8)
