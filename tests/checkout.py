"""The checkout whose tests these are."""

import shutil
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


def copy_checkout(to: Path) -> Path:
    """Copy what a clone would hold, from a checkout, an sdist or a machine without git."""
    lines = (CHECKOUT / ".gitignore").read_text(encoding="utf-8").split()
    left_out = shutil.ignore_patterns(".git", *(line.rstrip("/") for line in lines))
    shutil.copytree(CHECKOUT, to, ignore=left_out)
    return to
