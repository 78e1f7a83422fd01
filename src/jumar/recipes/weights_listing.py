"""What a file of weights holds: `jumar weights show`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jumar.errors import UserError
from jumar.training.checkpoint import MODEL, find_checkpoint
from jumar.training.run_directory import RunDirectory
from jumar.weights.tensor_files import TensorFile, open_tensors
from jumar.weights.tensor_types import TensorEntry, shape_text


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The tensors of a file.

    Attributes:
        source: The file, or what of a run was taken.
        tensors: In the order of the file.
    """

    source: str
    tensors: Sequence[TensorEntry]

    @property
    def elements(self) -> int:
        """All numbers together."""
        return sum(tensor.elements for tensor in self.tensors)

    @property
    def bytes(self) -> int:
        """Bytes of all numbers together; strings are not counted."""
        return sum(tensor.bytes for tensor in self.tensors)

    def lines(self) -> list[str]:
        """The table that `jumar weights show` prints."""
        rows = [(tensor.name, shape_text(tensor.shape), tensor.dtype) for tensor in self.tensors]
        widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
        count = "1 tensor" if len(rows) == 1 else f"{len(rows)} tensors"
        return [
            *(f"{name:<{widths[0]}}  {shape:>{widths[1]}}  {kind}" for name, shape, kind in rows),
            f"{count}, {self.elements:,} numbers, {self.bytes / 1e6:.1f} MB: {self.source}",
        ]


def list_weights(path: Path) -> Listing:
    """The tensors of a run, of one of its checkpoints, or of any file that holds weights.

    Args:
        path: A run (its newest checkpoint is taken), a checkpoint of it, a `.safetensors` file, a
            frozen `.pb` graph, or a TensorFlow checkpoint by any of its names.

    Raises:
        UserError: There is nothing of the kind, or it is damaged.
    """
    try:
        file, source = _open(path)
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(path)) from error
    return Listing(source=source, tensors=[file.entry(name) for name in file.names()])


def _open(path: Path) -> tuple[TensorFile, str]:
    run = RunDirectory(path)
    if run.exists:
        path = find_checkpoint(run.checkpoints, "last").model_file(ema=False)
    elif (path / MODEL).is_file():
        path = path / MODEL
    elif not path.exists() and not path.parent.is_dir():
        raise UserError(f"there is no '{path}'")
    return open_tensors(path), str(path)
