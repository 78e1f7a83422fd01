"""Two dumps of one step compared: what rounding explains, and the op that it does not explain."""
