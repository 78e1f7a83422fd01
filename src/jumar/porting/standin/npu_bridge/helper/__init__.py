"""The handle for the compiled operators."""
