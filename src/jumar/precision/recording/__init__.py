"""Record inputs and outputs of the ops and layers of a training step, on any device."""
