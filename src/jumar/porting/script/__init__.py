"""A parsed script: its text, scopes, names, kinds of values, and the tree around it."""
