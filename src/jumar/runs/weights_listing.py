"""List the tensors in a weights file: `jumar weights show`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.paths import exists, is_folder, missing, unreadable
from jumar.ground.tables import aligned_lines
from jumar.ground.text import counted, plain_text
from jumar.training.checkpoint import MODEL, check_weights_file
from jumar.training.checkpoint_parts import PartedTensors, files_of, is_stored
from jumar.training.checkpoint_retention import find_checkpoint
from jumar.training.run_directory import RunDirectory
from jumar.weights.tensor_bundle import TensorBundle
from jumar.weights.tensor_files import TensorFile, open_tensors, stored_entry
from jumar.weights.tensor_types import Array, TensorEntry, shape_text


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The tensors of a file.

    Attributes:
        source: The file, or the file that was chosen from a run.
        tensors: The tensors, in file order.
        damage: The error if the names can be read but the values cannot.
    """

    source: str
    tensors: Sequence[TensorEntry]
    damage: UserError | None = None

    @property
    def elements(self) -> int:
        """Total number of elements."""
        return sum(tensor.elements for tensor in self.tensors)

    @property
    def bytes(self) -> int:
        """Total bytes of all elements; strings are not counted."""
        return sum(tensor.bytes for tensor in self.tensors)

    def lines(self) -> list[str]:
        """Return the table that `jumar weights show` prints."""
        rows = [
            (plain_text(tensor.name), shape_text(tensor.shape), tensor.dtype)
            for tensor in self.tensors
        ]
        count = counted(len(rows), "tensor")
        return [
            *aligned_lines(rows, numeric=[1]),
            f"{count}, {self.elements:,} elements, {self.bytes / 1e6:.1f} MB: {self.source}",
        ]


def list_weights(path: Path, *, verify: bool = False) -> Listing:
    """List the tensors of a run, of one of its checkpoints, or of any file with weights.

    Args:
        path: A run (its newest checkpoint is used), one of its checkpoints, a `.safetensors` file,
            a frozen `.pb` graph, or a TensorFlow checkpoint by any of its names.
        verify: Whether to read every value and verify checksums if the file has them.

    Raises:
        UserError: There is no such file, or its names cannot be read.
    """
    try:
        file, source = _open(path)
    except OSError as error:
        raise unreadable(path, error) from error
    entries = [file.entry(name) for name in file.names()]
    return Listing(source=source, tensors=entries, damage=_damage(file, verify=verify))


def _damage(file: TensorFile, *, verify: bool) -> UserError | None:
    """Return the error if the values cannot be read."""
    try:
        if isinstance(file, TensorBundle):
            file.check_data()
        for name in file.names() if verify else ():
            file.read(name)
    except UserError as error:
        return error
    return None


class _Parts:
    """The weights of a checkpoint written by several ranks, as a single file."""

    def __init__(self, path: Path) -> None:
        self._tensors = PartedTensors(path)

    def names(self) -> list[str]:
        return list(self._tensors.shapes)

    def entry(self, name: str) -> TensorEntry:
        return stored_entry(name, self._tensors.shapes[name], self._tensors.dtypes[name])

    def read(self, name: str) -> Array:
        return self._tensors.read(name).float().numpy()


def _open(path: Path) -> tuple[TensorFile, str]:
    run = RunDirectory(path)
    if run.exists:
        path = find_checkpoint(run.checkpoints, "last").model_file(ema=False)
    elif is_stored(path / MODEL):
        path = path / MODEL
        for file in files_of(path):
            check_weights_file(file)
    elif not exists(path) and not is_folder(path.parent):
        raise missing(path)
    parts = files_of(path)
    if parts == [path]:
        return open_tensors(path), str(path)
    return _Parts(path), f"{path} in {counted(len(parts), 'part')}"
