"""The linter for NPU options in scripts that already have them."""
