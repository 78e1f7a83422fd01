"""The rules, one per file; `registry.py` finds them."""
