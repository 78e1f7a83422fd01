"""What the ops of a training step took and gave: recorded, read and written."""
