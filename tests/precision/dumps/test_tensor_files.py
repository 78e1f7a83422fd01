"""numpy's files that lie about their shape are refused."""

from pathlib import Path

import numpy as np
import pytest

from jumar.ground.errors import UserError
from jumar.precision.dumps.tensor_files import read_npy


@pytest.mark.parametrize("header_only", [False, True])
def test_a_shape_beyond_all_memory_is_refused(tmp_path: Path, header_only: bool) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((4, 6), np.float16))
    data = path.read_bytes()
    shape = b"(4, %d), }" % 10**41
    changed = data.replace(b"(4, 6), }".ljust(len(shape)), shape)
    assert changed != data
    path.write_bytes(changed)
    with pytest.raises(UserError, match=r"a\.npy"):
        read_npy(path, header_only=header_only)
