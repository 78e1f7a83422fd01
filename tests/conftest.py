"""What every test may ask for."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[1].parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real data and the original TensorFlow numbers, beside the checkout."""
    if not (SHARED / "data").is_dir():
        pytest.skip(f"needs the reference data in {SHARED}, which is not part of the checkout")
    return SHARED


@pytest.fixture(scope="session")
def parity(shared: Path) -> Path:
    """Numbers made with the original TensorFlow code."""
    return shared / "data" / "parity"
