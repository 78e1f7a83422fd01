"""The handle of the compiled operators."""
