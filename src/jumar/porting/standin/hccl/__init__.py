"""Stand-in for the collective communication library of Ascend, for one process."""
