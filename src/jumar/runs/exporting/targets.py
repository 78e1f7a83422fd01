"""The target of `--to`: a file by its suffix, a folder, or TensorFlow."""

from pathlib import Path
from typing import Literal

from jumar.ground.errors import UserError
from jumar.ground.paths import exists

Kind = Literal["onnx", "pt2", "safetensors", "folder", "tf"]

_KINDS: dict[str, Kind] = {".onnx": "onnx", ".pt2": "pt2", ".safetensors": "safetensors"}
_ALTERNATIVES = {
    ".om": "CANN's atc compiles it from an ONNX file: --to {stem}.onnx writes a script for that.",
    ".pb": "A frozen graph is written as a copy of one with the original's front end and outputs: "
    "jumar weights export {run} --to frozen --like GRAPH.pb --out {to}",
    ".ckpt": "A TensorFlow checkpoint is several files: --to tf",
    ".pt": "It is a pickle, which can run code when it is loaded: --to {stem}.pt2",
    ".pth": "It is a pickle, which can run code when it is loaded: --to {stem}.pt2",
    ".bin": "It is a pickle, which can run code when it is loaded: --to {stem}.safetensors",
}
TARGETS = "FILE.onnx, FILE.pt2, FILE.safetensors, tf, or for BERT and NEZHA a FOLDER"


def kind_of(to: Path, run: Path) -> Kind:
    """Return the kind of output that `--to` names.

    Args:
        to: The value of `--to`.
        run: The run, for the message.

    Raises:
        UserError: Files of this kind cannot be written.
    """
    if str(to) == "tf":
        return "tf"
    suffix = to.suffix.lower()
    if suffix in _KINDS:
        return _KINDS[suffix]
    if not suffix:
        return "folder"
    alternative = _ALTERNATIVES.get(suffix, "").format(stem=to.with_suffix(""), run=run, to=to)
    raise UserError(
        f"cannot write files of the kind '{suffix}'",
        where=f"--to {to}",
        todo="\n  ".join(filter(None, [alternative, f"Possible: {TARGETS}."])),
    )


def meant_file(to: Path) -> str:
    """Return advice about a folder that is named like a kind of file, such as `onnx`, or ""."""
    suffix = f".{to.name.lower()}"
    return f"Did you mean --to NAME{suffix}? " if suffix in _KINDS else ""


def facts_path(to: Path) -> Path:
    """Return the path of the JSON file next to a graph."""
    return to.with_name(f"{to.name}.json")


def tokenizer_path(to: Path) -> Path:
    """Return the path of the tokenizer's folder next to a graph."""
    return to.with_name(f"{to.name}.tokenizer")


def script_path(to: Path) -> Path:
    """Return the path of the script for atc next to an ONNX file."""
    return to.with_name(f"{to.stem}.atc.sh")


def mixlist_path(to: Path) -> Path:
    """Return the path of the op list for atc next to an ONNX file."""
    return to.with_name(f"{to.stem}.mixlist.json")


def refuse_existing(paths: list[Path]) -> None:
    """Check that none of the paths exists.

    Raises:
        UserError: One of them exists.
    """
    for path in paths:
        if exists(path):
            raise UserError(
                "already exists",
                where=str(path),
                todo="Choose another name with --to, or replace it with --overwrite.",
            )
