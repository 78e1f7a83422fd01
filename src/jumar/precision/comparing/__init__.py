"""Compares two dumps of one step: what rounding explains, and the first op that it does not."""
