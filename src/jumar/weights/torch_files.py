"""Detect files written by `torch.save`, which are refused: their pickle could run code."""

import zipfile
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.paths import is_file


def check_no_torch_file(path: Path) -> None:
    """Check that a file was not written by `torch.save`.

    Raises:
        UserError: `torch.save` wrote it; the message explains the conversion to safetensors.
    """
    try:
        if not is_file(path) or not zipfile.is_zipfile(path):
            return
        with zipfile.ZipFile(path) as archive:
            has_pickle = any(name.rpartition("/")[2] == "data.pkl" for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return
    if has_pickle:
        raise UserError(
            "is a torch.save file, and loading it could execute code",
            where=str(path),
            todo="Convert it to a dictionary of tensors yourself: "
            "`from safetensors.torch import save_file; "
            "save_file(torch.load('FILE', weights_only=True), 'NAME.safetensors')`.",
        )
