"""Inputs and outputs of the ops of a training step: recorded, read and written."""
