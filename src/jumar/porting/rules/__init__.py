"""The rules, one per file; `registry.py` loads them."""
