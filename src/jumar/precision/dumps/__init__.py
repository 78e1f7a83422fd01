"""Read and write dumps, the inputs and outputs of the ops of a training step."""
