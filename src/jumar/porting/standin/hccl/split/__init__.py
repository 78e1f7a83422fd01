"""Strategies to split gradients into several all-reduces."""
