"""Precision of a run: modes, op lists, loss scale; nothing outside mentions float16."""
