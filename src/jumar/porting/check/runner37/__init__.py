"""The code that runs inside the checked script's own Python 3.7, next to TensorFlow 1.15.

Nothing here is imported by jumar itself: `start.py` is a program of its own, and so the package
is written for Python 3.7, needs nothing but TensorFlow, and is not part of the typed source.
"""
