"""The porting wing: rewrites TensorFlow 1.15 and PyTorch scripts for the NPU, line by line, with
the reason for every line.

A rewrite is a list of edits and findings (`edits.py`); the diff, the reports and the exit code are
readers of that list. Nothing here imports torch or TensorFlow.
"""
