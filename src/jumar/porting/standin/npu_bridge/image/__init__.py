"""Decoding of pictures."""
