"""Operators on the host."""
