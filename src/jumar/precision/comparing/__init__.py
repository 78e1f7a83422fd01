"""Compare two dumps of one step: find the first op whose error rounding does not explain."""
