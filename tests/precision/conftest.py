"""Every test of this room leaves torch's own op lists behind."""

from collections.abc import Iterator

import pytest

from jumar.precision.autocast_lists import installed


@pytest.fixture(autouse=True)
def torch_lists() -> Iterator[None]:
    """Close the lists a failed test left in force, which would change the tests after it."""
    yield
    lists = installed()
    if lists is not None:
        lists.close()
