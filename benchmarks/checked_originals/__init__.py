"""The originals that `benchmarks/port_check_originals.py` trains beside their ports."""
