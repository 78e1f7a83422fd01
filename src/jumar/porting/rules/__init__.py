"""The rules, one a file; `registry.py` finds them."""
