"""Where gradients are split between two all-reduces."""
