"""The linter of NPU options in scripts that have them already."""
