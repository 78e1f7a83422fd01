"""Rewrites TensorFlow 1.15 and PyTorch scripts for the NPU, line by line, with the reason for every
line.

A rewrite is a list of edits and findings (`edits.py`), from which the diff, the reports and the
exit code are derived. Nothing here imports torch or TensorFlow.
"""
