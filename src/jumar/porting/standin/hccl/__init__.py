"""Stand-in for Ascend's collective communication library, for a single process."""
