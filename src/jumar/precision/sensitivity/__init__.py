"""Measure how loss and gradients change if the outputs of an op are rounded to a low dtype."""
