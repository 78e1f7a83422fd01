"""Records what the ops and layers of a training step take and give, on any device."""
