"""numpy's files that lie about their shape are refused."""

from pathlib import Path

import numpy as np
import pytest
import torch

from jumar.ground.errors import UserError
from jumar.precision.dumps.tensor_files import TensorFiles, read_npy


@pytest.mark.parametrize("header_only", [False, True])
def test_shape_exceeding_memory_is_refused(tmp_path: Path, header_only: bool) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((4, 6), np.float16))
    data = path.read_bytes()
    shape = b"(4, %d), }" % 10**41
    changed = data.replace(b"(4, 6), }".ljust(len(shape)), shape)
    assert changed != data
    path.write_bytes(changed)
    with pytest.raises(UserError, match=r"a\.npy"):
        read_npy(path, header_only=header_only)


def test_tensors_are_read_by_name_from_both_file_formats(tmp_path: Path) -> None:
    array = np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3))
    np.save(tmp_path / "a.npy", array)
    tensor = torch.arange(3.0, requires_grad=True)
    torch.save(tensor, tmp_path / "b.pt")
    torch.save([1], tmp_path / "c.pt")
    (tmp_path / "d.pt").write_bytes(b"x")
    files = TensorFiles({name: tmp_path / name for name in ("a.npy", "b.pt", "c.pt", "d.pt", "e")})
    first, second = files.read("a.npy"), files.read("b.pt")
    assert (first.dtype, first.tolist()) == (torch.int16, [[0, 1, 2], [3, 4, 5]])
    assert (second.requires_grad, second.tolist()) == (False, [0.0, 1.0, 2.0])
    again = "Copy the folder again, with all of its tensor files, or dump that step again."
    for name, what, todo in (
        ("c.pt", "contains a list, not a tensor", ""),
        ("d.pt", "is damaged, or contains more than a tensor", again),
    ):
        with pytest.raises(UserError) as error:
            files.read(name)
        assert (error.value.what, error.value.where) == (what, str(tmp_path / name))
        assert error.value.todo == todo
    with pytest.raises(UserError, match="no such tensor file"):
        files.read("e")
    with pytest.raises(UserError, match="the dump contains no tensor 'f'"):
        files.read("f")


def test_header_suffices_for_dtype_and_shape_and_objects_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 0, 3), np.float16))
    head = read_npy(tmp_path / "a.npy", header_only=True)
    assert (head.dtype, tuple(head.shape), head.is_meta) == (torch.float16, (2, 0, 3), True)
    whole = read_npy(tmp_path / "a.npy")
    assert (whole.dtype, tuple(whole.shape), whole.is_meta) == (torch.float16, (2, 0, 3), False)
    np.save(tmp_path / "scalar.npy", np.float64(2.5))
    assert read_npy(tmp_path / "scalar.npy").shape == ()
    np.save(tmp_path / "object.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "text.npy", np.array(["x"]))
    for name in ("object.npy", "text.npy"):
        for header_only in (False, True):
            with pytest.raises(UserError):
                read_npy(tmp_path / name, header_only=header_only)
