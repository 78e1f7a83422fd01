"""The code that runs in the checked script's own Python 3.7, next to TensorFlow 1.15.

jumar itself imports none of it: `start.py` is a separate program. The package is therefore written
for Python 3.7, needs only TensorFlow, and is not part of the typed source.
"""
