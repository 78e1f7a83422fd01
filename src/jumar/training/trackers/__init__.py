"""Where the records of a run go: an `Observer` a file, and the choice of them."""
