"""Tests of `benchmarks/`, whose folder is on the import path here as it is for its scripts."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
