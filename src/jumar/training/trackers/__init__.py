"""Where the records of a run go: one `Observer` per file, and the choice among them."""
