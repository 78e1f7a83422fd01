"""The work of `jumar denoise`: the clips to process, and the paths of the clean frames."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from jumar.data.denoising.frame_triplets import clips_of
from jumar.data.images.class_folders import is_image
from jumar.data.images.picture_tree import Pictures, open_all_pictures
from jumar.data.pixels.decode import DecodeError
from jumar.data.pixels.picture_files import WRITTEN_SUFFIXES, not_kept_in, write_picture
from jumar.data.pixels.video import check_written_video, is_video
from jumar.data.pixels.whole_picture import Levels, WholePicture, decode_whole
from jumar.data.samples import CorruptRecord, Fault
from jumar.ground.errors import UserError
from jumar.ground.paths import exists, is_file, is_folder, missing, resolved
from jumar.runs.open_trained import TrainedRequest
from jumar.training.progress import Console

_MAX_NAMED = 3
DEEP_PEAK = 65535


@dataclass(frozen=True, kw_only=True)
class DenoiseRequest(TrainedRequest):
    """The options of `jumar denoise`, besides the weights.

    Attributes:
        source: An image, a folder or zip with images anywhere in it, or a video.
        to: An image for an image, a video or a folder for a video, otherwise a folder.
        resume: Keep the existing files and continue with the rest.
        skip_corrupt: Unreadable frames to tolerate; they are skipped.
    """

    source: Path
    to: Path
    resume: bool = False
    skip_corrupt: int = 0


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A noisy image and the path of its clean version, or the reason why there is none.

    Attributes:
        path: Path of the clean version.
        origin: The noisy image, for messages.
        pixels: RGB [height, width, 3], levels from 0 to `peak`.
        written_peak: The level of white in the clean version.
        picture: The other content of its file, which the clean version keeps.
    """

    path: Path
    origin: str
    pixels: Levels | None = None
    peak: int = 255
    written_peak: int = 255
    picture: WholePicture | None = None
    fault: Fault | None = None


class LostFeatures:
    """The features of noisy images that clean ones lack, with the names of the images."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}

    def add(self, features: Iterable[str], name: str) -> None:
        """Record the features that one image loses."""
        for feature in features:
            self._names.setdefault(feature, []).append(name)

    def report(self, console: Console) -> None:
        """Print a line for each lost feature, with the first affected images."""
        for feature, names in self._names.items():
            suffix = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
            console.line(f"not kept: {feature}: {', '.join(names[:_MAX_NAMED])}{suffix}")
        self._names.clear()


Clip = Callable[[], Iterator[Frame]]
Write = Callable[[Levels, Frame], None]


@dataclass(frozen=True, kw_only=True)
class Work:
    """The frames to process.

    Attributes:
        clips: Frames that belong together.
        total: Number of frames to write; None if a video does not state it.
        existing: Paths of clean frames that already exist and are kept; for a video, filled in
            while it is read.
        kept: Number of existing frames.
        writer: Opens the writer for clean frames.
    """

    clips: Sequence[Clip]
    total: int | None
    existing: Set[Path]
    kept: int
    writer: Callable[[], AbstractContextManager[Write]]


def check_paths(request: DenoiseRequest) -> None:
    """Check the options before the network is loaded.

    Raises:
        UserError: A path or number is not valid.
    """
    source, to = request.source, request.to
    if request.skip_corrupt < 0:
        raise UserError(
            f"it cannot be {request.skip_corrupt}",
            where="--skip-corrupt",
            todo="Allowed: 0 or more.",
        )
    if not exists(source):
        raise missing(source, more="Give an image, a folder or zip with images, or a video.")
    if is_folder(source) and resolved(to).is_relative_to(resolved(source)):
        raise UserError(
            "the denoised images would be written among the noisy ones",
            where=f"--to {to}",
            todo=f"Give a folder outside '{source}'.",
        )
    if is_file(source) and resolved(to) == resolved(source):
        raise UserError(
            "this would overwrite the noisy image", where=f"--to {to}", todo="Give another name."
        )
    if is_video(to.name):
        if not is_video(source.name):
            raise UserError(
                "images cannot be written as a video",
                where=f"--to {to}",
                todo="Give a folder.",
            )
        check_written_video(to)
        if exists(to) and not request.resume:
            raise already_exists(to, "Give another name, or remove it.")


def picture_work(
    request: DenoiseRequest, lost_features: LostFeatures, *, together: bool, console: Console
) -> Work:
    """Return the work for an image, or for the images of a folder or zip not yet denoised.

    Args:
        request: The request.
        lost_features: Collects the features that clean images lack.
        together: Whether the frames of a clip need their neighbours.
        console: Prints notices.

    Raises:
        UserError: There is nothing to read, or an output already exists.
    """
    pictures = open_all_pictures(request.source, notice=console.line)
    paths = _output_paths(request, pictures, console)
    ranges = clips_of(pictures) if together else [range(len(pictures))]
    is_done = [exists(path) for path in paths]
    if any(is_done) and not request.resume:
        raise already_exists(
            paths[is_done.index(True)],
            f"{sum(is_done)} of {len(paths)} files exist. Give another path, or keep them and "
            "continue with the rest: --resume",
        )
    if together:
        # A frame needs its neighbours, so a clip is computed as a whole.
        pending = [frames for frames in ranges if not all(is_done[index] for index in frames)]
    else:
        pending = [[index for index in frames if not is_done[index]] for frames in ranges]

    def clip(frames: Sequence[int]) -> Iterator[Frame]:
        for index in frames:
            yield _read(pictures, index, paths[index])

    return Work(
        clips=[lambda frames=frames: clip(frames) for frames in pending],
        total=is_done.count(False),
        existing={path for path, done in zip(paths, is_done, strict=True) if done},
        kept=sum(is_done),
        writer=lambda: nullcontext(
            lambda levels, frame: write_clean_picture(levels, frame, lost_features)
        ),
    )


def write_clean_picture(levels: Levels, frame: Frame, lost_features: LostFeatures) -> None:
    """Write a clean frame as an image, with all other content of its noisy version.

    Args:
        levels: [height, width, 3], or [height, width] for a grey image.
        frame: The noisy version and the path to write.
        lost_features: Collects the features that the clean image lacks.
    """
    clean = (frame.picture or WholePicture(pixels=levels)).with_pixels(levels)
    write_picture(clean, frame.path)
    lost_features.add((*clean.lost, *not_kept_in(clean, frame.path)), frame.origin)


def _read(pictures: Pictures, index: int, path: Path) -> Frame:
    try:
        record = pictures.read(index)
    except CorruptRecord as error:
        return Frame(path=path, origin=error.fault.origin, fault=error.fault)
    origin = record.origin
    try:
        picture = decode_whole(record.encoded)
    except DecodeError as error:
        return Frame(path=path, origin=origin, fault=Fault(origin=origin, reason=str(error)))
    pixels = picture.pixels
    peak = 255 if pixels.dtype == np.uint8 else DEEP_PEAK
    return Frame(
        path=path, origin=origin, pixels=pixels, peak=peak, written_peak=peak, picture=picture
    )


def _output_paths(request: DenoiseRequest, pictures: Pictures, console: Console) -> list[Path]:
    """Return the path of each clean image: the noisy image's name, as PNG."""
    one_picture = is_file(request.source) and request.source.suffix.lower() != ".zip"
    if one_picture and request.to.suffix.lower() in WRITTEN_SUFFIXES and not is_folder(request.to):
        return [request.to]
    if request.to.suffix.lower() in WRITTEN_SUFFIXES and not exists(request.to):
        raise UserError(
            "the images of a folder or zip cannot be written to one file",
            where=f"--to {request.to}",
            todo="Give a folder, without an image suffix in its name.",
        )
    if is_image(request.to.name) and request.to.suffix.lower() not in WRITTEN_SUFFIXES:
        raise UserError(
            f"images cannot be written as '{request.to.suffix}'",
            where=f"--to {request.to}",
            todo=f"Supported: {', '.join(WRITTEN_SUFFIXES)}; or give a folder.",
        )
    check_folder(request.to)
    names = [pictures.path(index) for index in range(len(pictures))]
    unique_names = distinct_names(names)
    if full_names := [
        unique for name, unique in zip(names, unique_names, strict=True) if unique != _short(name)
    ]:
        examples = ", ".join(full_names[:_MAX_NAMED])
        suffix = f" and {len(full_names) - _MAX_NAMED} more" if len(full_names) > _MAX_NAMED else ""
        console.line(f"images whose names differ only in the suffix keep it: {examples}{suffix}")
    return [request.to / name for name in unique_names]


def _short(name: str) -> str:
    """Return an image's name with .png instead of its suffix, if it has one."""
    return str(PurePosixPath(name).with_suffix(".png"))


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return a .png name for each image: with .png instead of its suffix, unless several share it.

    Args:
        names: The names of the images, all different.
    """
    unique_names = list(map(_short, names))
    while True:
        count = Counter(unique_names)
        shared_indices = [n for n, name in enumerate(unique_names) if count[name] > 1]
        # Long names are all different, so each round leaves fewer short ones.
        if not shared_indices:
            return unique_names
        for index in shared_indices:
            unique_names[index] = f"{names[index]}.png"


def check_folder(to: Path) -> None:
    """Check that images can be written into a folder.

    Raises:
        UserError: It is a file.
    """
    if exists(to) and not is_folder(to):
        raise UserError(
            "a folder is needed, but this is a file", where=f"--to {to}", todo="Give another name."
        )


def already_exists(path: Path, todo: str) -> UserError:
    """Return the error for an output that already exists."""
    message = "already exists and is not empty" if is_folder(path) else "already exists"
    return UserError(message, where=str(path), todo=todo)
