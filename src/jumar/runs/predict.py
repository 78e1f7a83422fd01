"""Predict the words in audio files and the classes of images with a trained network."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from jumar.data.images.class_folders import IMAGE_SUFFIXES, is_hidden
from jumar.data.pixels.decode import DecodeError
from jumar.data.pixels.whole_picture import pages_left_out
from jumar.data.records.offset_files import read_whole
from jumar.data.samples import Batch, CorruptRecord, Record
from jumar.data.speech.decoded_clips import fit_clip
from jumar.data.speech.wav import read_wav, resample
from jumar.devices.contract import Device
from jumar.ground.errors import UserError
from jumar.ground.paths import exists, is_file, is_folder, missing, unreadable
from jumar.recipes.classification import ClassificationRecipe
from jumar.recipes.ds_cnn import KeywordRecipe
from jumar.recipes.trained import Trained
from jumar.runs.open_trained import TrainedRequest, open_trained

_WINDOWS_PER_CLIP = 4
"""Number of windows that start per clip length, so that at least one contains the whole word."""
_BATCH_SIZE = 64


@dataclass(frozen=True, kw_only=True)
class Guess:
    """A label and its predicted probability, 0 to 1."""

    label: str
    probability: float


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A network's prediction for a file.

    Attributes:
        guesses: All labels, the most probable first.
        start_s: Start of the window within a longer clip, in seconds; None if the file was used as
            a whole.
    """

    path: Path
    guesses: Sequence[Guess]
    start_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """A file without a prediction, or a folder without suitable files.

    Attributes:
        error: The reason.
    """

    path: Path
    error: UserError


@dataclass(frozen=True, kw_only=True)
class PredictRequest:
    """The files and the trained network.

    Attributes:
        files: Files, or folders whose suitable files are all used.
        trained: The run and its weights.
        skip_corrupt: Unreadable files to tolerate; they are reported and skipped.
    """

    files: Sequence[Path]
    trained: TrainedRequest
    skip_corrupt: int = 0


def _content(path: Path) -> bytes:
    try:
        return read_whole(path)
    except OSError as error:
        raise unreadable(path, error) from error
    except ValueError as error:
        raise UserError(str(error), where=str(path)) from error


class _Clips:
    """WAV files, for keyword spotting runs."""

    suffixes: Sequence[str] = (".wav", ".wave")
    kind = "WAV files"

    def __init__(self, recipe: KeywordRecipe, device: Device) -> None:
        self._data = recipe.data
        self._front_end = recipe.build_front_end().to(device.torch)

    def read(self, path: Path) -> tuple[Batch, Sequence[float]]:
        """Return the windows of a file and the start of each in seconds.

        Raises:
            UserError: The file cannot be read.
        """
        try:
            wave = read_wav(_content(path), str(path))
        except CorruptRecord as error:
            raise UserError(error.fault.reason, where=error.fault.origin) from error
        if not len(wave.samples):
            raise UserError("has no audio samples", where=str(path))
        samples, length = resample(wave, self._data.sample_rate), self._data.clip_samples
        step = max(1, length // _WINDOWS_PER_CLIP)
        starts = list(range(0, max(1, len(samples) - length + step), step))
        windows = np.stack([fit_clip(samples[start:], length) for start in starts])
        seconds = [start / self._data.sample_rate for start in starts]
        return {"audio": torch.from_numpy(windows)}, seconds

    def logits(self, model: nn.Module, batch: Batch) -> torch.Tensor:
        """Return logits [windows, labels] on the device of the batch."""
        return model(self._front_end(batch["audio"]))

    def label(self, index: int) -> str:
        """Return the label of an output."""
        return self._data.labels[index]

    def chosen(self, probabilities: torch.Tensor) -> int:
        """Return the index of the window to report."""
        # The first two labels, silence and unknown words, are those of most windows.
        return int(probabilities[:, 2:].amax(dim=1).argmax())


class _Pictures:
    """Images, for image classification runs."""

    suffixes: Sequence[str] = IMAGE_SUFFIXES
    kind = "images"

    def __init__(
        self, recipe: ClassificationRecipe, names: Sequence[str], say: Callable[[str], None]
    ) -> None:
        self._data = recipe.data
        self._names = names
        self._say = say

    def read(self, path: Path) -> tuple[Batch, Sequence[float]]:
        """Return an image as a single window.

        Raises:
            UserError: The file cannot be read.
        """
        record = Record(encoded=_content(path), label=0, origin=str(path))
        if num_unused := pages_left_out(record.encoded):
            self._say(f"{path}: only the first one is used, {num_unused} ignored")
        try:
            arrays: Mapping[str, np.ndarray] = self._data.preprocessing.eval_image(
                record, self._data.image_size
            )
        except DecodeError as error:
            raise UserError(str(error), where=str(path)) from error
        batch = {name: torch.from_numpy(array).unsqueeze(0) for name, array in arrays.items()}
        # Like a batch from an image set: [N, 3, H, W] in channels_last memory.
        return {**batch, "image": batch["image"].permute(0, 3, 1, 2)}, [0.0]

    def logits(self, model: nn.Module, batch: Batch) -> torch.Tensor:
        """Return logits [windows, labels] on the device of the batch."""
        return model(self._data.preprocessing.on_device(batch, training=False))

    def label(self, index: int) -> str:
        """Return the label of an output."""
        return self._names[index] if index < len(self._names) else f"class {index}"


_Reader = _Clips | _Pictures
"""Reads the files of one family of recipes and interprets the network's outputs."""


def predict(
    request: PredictRequest, say: Callable[[str], None] = lambda _: None
) -> Iterator[Prediction]:
    """Yield the predictions of a run's network for files.

    Args:
        request: The files and the run.
        say: Prints a line for each skipped file and each file of which only the first frame or page
            is used.

    Raises:
        UserError: There is no such run or file, the run's recipe does not classify, or more files
            than tolerated cannot be read.
    """
    num_skipped = 0
    for answer in answers(request, say):
        if isinstance(answer, Prediction):
            yield answer
            continue
        error = answer.error
        if not is_file(answer.path):  # a misspelt name, or a folder of other files, is not damage
            raise error
        num_skipped += 1
        if num_skipped > request.skip_corrupt:
            hint = "To skip up to N such files: --skip-corrupt N"
            todo = f"{error.todo}\n  {hint}" if error.todo else hint
            raise UserError(error.what, where=error.where, todo=todo) from error
        say(f"skipped: {error}")


def answers(
    request: PredictRequest, say: Callable[[str], None] = lambda _: None
) -> Iterator[Prediction | Unreadable]:
    """Yield the prediction of a run's network for each file, or the reason why there is none.

    A short clip is padded with zeros at the end, as in evaluation. A clip longer than the training
    clips is scanned with a window of their length, moved by a quarter of it; the result is the
    window with the most probable word. Of an image with several frames or pages, the first is used.

    Args:
        request: The files and the run.
        say: Prints a line about each file of which only a part is used.

    Raises:
        UserError: There is no such run, or its recipe does not classify.
    """
    trained = open_trained(request.trained)
    with closing(trained.policy):
        reader = _reader(trained, request.trained.run_dir, say)
        for path, error in list(_expanded(request.files, reader)):
            try:
                if error is not None:
                    raise error
                yield _predict(trained, reader, path)
            except UserError as failure:
                yield Unreadable(path=path, error=failure)


def _predict(trained: Trained, reader: _Reader, path: Path) -> Prediction:
    windows, starts = reader.read(path)
    chunks: list[torch.Tensor] = []
    with torch.inference_mode():
        for first in range(0, len(starts), _BATCH_SIZE):
            batch = _rows_on(trained.device, windows, slice(first, first + _BATCH_SIZE))
            with trained.policy.forward():
                logits = reader.logits(trained.model, batch)
            chunks.append(logits.float().softmax(dim=1).cpu())
    probabilities = torch.cat(chunks)
    window = 0
    if isinstance(reader, _Clips) and len(starts) > 1:
        window = reader.chosen(probabilities)
    values, indices = probabilities[window].sort(descending=True, stable=True)
    return Prediction(
        path=path,
        guesses=[
            Guess(label=reader.label(index), probability=value)
            for value, index in zip(values.tolist(), indices.tolist(), strict=True)
        ],
        start_s=starts[window] if len(starts) > 1 else None,
    )


def _rows_on(device: Device, batch: Batch, rows: slice) -> Batch:
    return {name: tensor[rows].to(device.torch) for name, tensor in batch.items()}


def _reader(trained: Trained, run_dir: Path, say: Callable[[str], None]) -> _Reader:
    recipe = trained.recipe
    if isinstance(recipe, KeywordRecipe):
        return _Clips(recipe, trained.device)
    if isinstance(recipe, ClassificationRecipe):
        return _Pictures(recipe, trained.outputs, say)
    raise not_a_classifier(trained.name, run_dir)


def not_a_classifier(name: str, run_dir: Path) -> UserError:
    """Return the error about a run of a recipe that predicts nothing for files."""
    return UserError(
        f"the recipe '{name}' is not a classifier",
        where=str(run_dir),
        todo="jumar predict accepts runs of keyword spotting and image classification.",
    )


def _expanded(files: Sequence[Path], reader: _Reader) -> Iterator[tuple[Path, UserError | None]]:
    """Yield the files, and the suitable files inside folders; an error for a folder without any."""
    for path in files:
        try:
            if not is_folder(path):
                yield path, None if exists(path) else missing(path)
                continue
        except UserError as error:
            yield path, error
            continue
        suitable = sorted(
            inner
            for inner in path.rglob("*")
            if inner.suffix.lower() in reader.suffixes and not is_hidden(inner.name)
        )
        if not suitable:
            message = f"contains no {reader.kind} ({', '.join(reader.suffixes)})"
            yield path, UserError(message, where=str(path))
        yield from ((inner, None) for inner in suitable)
