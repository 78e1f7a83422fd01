"""Figures of a capture, recomputed from its raw events with the standard library alone."""
