"""Finds the parts of a labelled text data set: one file for training, one for evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jumar.data.loading.loader_settings import LoaderSettings, batch_size_setting
from jumar.ground.errors import UserError, did_you_mean
from jumar.ground.paths import expanded, is_file, is_folder, missing, resolved
from jumar.settings import setting

Part = Literal["train", "eval"]

_PREFIXES = {"train": ("train",), "eval": ("dev", "val")}
NO_EVALUATION = "none"


def max_seq_length_setting(default: int) -> int:
    """The length of a sample, for texts with their own default."""
    return setting(
        default,
        "Tokens of a sample with [CLS] and [SEP]; longer ones are truncated.",
        minimum=4,
        maximum=2048,
    )


@dataclass(frozen=True, kw_only=True)
class TextData(LoaderSettings):
    """Where to find labelled texts, and how to split them into word pieces."""

    path: str = setting("", "A file, or a folder with train.* and dev.* or val.*.", unit="path")
    eval_path: str = setting(
        "",
        "The evaluation file; empty for dev.* or val.* of the folder, none for no evaluation.",
        unit="path",
        changeable=True,
    )
    do_lower_case: bool = setting(True, "Convert texts to lower case and remove accents.")
    max_seq_length: int = max_seq_length_setting(128)
    batch_size: int = batch_size_setting(32)


@dataclass(frozen=True, kw_only=True)
class LabelledData(TextData):
    """Settings of texts whose labels are names from a list."""

    labels: tuple[str, ...] = setting(
        (), "Names of the labels, in the order of the outputs; empty: those in the data, sorted."
    )

    def check(self) -> None:
        """Reject repeated labels.

        Raises:
            UserError: A label is listed twice.
        """
        if len(set(self.labels)) < len(self.labels):
            raise UserError(f"'{','.join(self.labels)}' lists a label twice", where="data.labels")


def part_file(data: TextData, part: Part, suffixes: Sequence[str]) -> Path | None:
    """Find the file of a part; return None if evaluation is off.

    Raises:
        UserError: There is no file or several, or evaluation would use the training file.
    """
    field = "data.path" if part == "train" else "data.eval_path"
    if part == "eval" and data.eval_path == NO_EVALUATION:
        return None
    text = data.path if part == "train" or not data.eval_path else data.eval_path
    if not text:
        raise UserError(
            "no data set",
            where=field,
            todo="Set it to a file or folder, for instance data.path=train.tsv",
        )
    path = expanded(text)
    if is_folder(path):
        return _in_folder(path, part, suffixes, field)
    if not is_file(path):
        raise missing(path, where=field)
    if part == "eval" and (not data.eval_path or resolved(path) == resolved(expanded(data.path))):
        raise UserError(
            "no evaluation file other than the training file",
            where="data.eval_path",
            todo="Specify another file, or none for no evaluation: data.eval_path=none",
        )
    return path


def _in_folder(folder: Path, part: Part, suffixes: Sequence[str], field: str) -> Path:
    candidates = sorted(
        path
        for path in folder.iterdir()
        if path.name.startswith(_PREFIXES[part]) and path.suffix in suffixes and is_file(path)
    )
    expected = " or ".join(f"{name}*" for name in _PREFIXES[part])
    if not candidates:
        raise UserError(
            f"there is no file {expected} of {', '.join(suffixes)}",
            where=str(folder),
            todo=f"Specify the file: {field}=..."
            + (", or none for no evaluation" if part == "eval" else ""),
        )
    if len(candidates) > 1:
        names = ", ".join(path.name for path in candidates)
        raise UserError(
            f"the file is ambiguous: {names}",
            where=str(folder),
            todo=f"Specify one: {field}=...",
        )
    return candidates[0]


def unknown_label(label: str, known: Sequence[str], where: str) -> UserError:
    """Return the error for a label that is not in the list."""
    return UserError(
        f"the label '{label}' is not in the list",
        where=where,
        todo=f"{did_you_mean(label, known)}Known: {', '.join(known)}. "
        "To use another list: data.labels=...",
    )
