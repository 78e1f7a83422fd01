"""Operators of the tensor engine."""
