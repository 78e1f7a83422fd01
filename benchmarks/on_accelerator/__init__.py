"""Everything that is measured on an accelerator; `benchmarks/accelerator.py` is the command."""
