"""What `jumar denoise` has to do: which frames belong together, and where their clean ones go."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from jumar.data.denoising.clean_pictures import Pixels
from jumar.data.denoising.frame_triplets import clips_of
from jumar.data.images.picture_tree import Pictures, open_all_pictures
from jumar.data.pixels.decode import DecodeError, decode_image
from jumar.data.pixels.picture_files import WRITTEN_SUFFIXES, write_picture
from jumar.data.pixels.video import VideoReader, VideoWriter, check_written_video, is_video
from jumar.data.samples import CorruptRecord, Fault
from jumar.errors import UserError
from jumar.paths import exists, is_file, is_folder, missing, resolved
from jumar.recipes.trained import TrainedRequest
from jumar.training.progress import Console


@dataclass(frozen=True, kw_only=True)
class DenoiseRequest(TrainedRequest):
    """What `jumar denoise` was asked for, besides the weights.

    Attributes:
        source: A picture, a folder or zip with pictures anywhere in it, or a video.
        to: A picture for a picture, a video or a folder for a video, else a folder.
        resume: Keep the files that are there already and go on with the others.
        skip_corrupt: Unreadable frames to tolerate; they are left out.
    """

    source: Path
    to: Path
    resume: bool = False
    skip_corrupt: int = 0


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A noisy picture and where its clean version goes, or why there is none."""

    place: Path
    origin: str
    pixels: Pixels | None = None
    fault: Fault | None = None


Clip = Callable[[], Iterator[Frame]]
Write = Callable[[NDArray[np.uint8], Path], None]


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is to be done.

    Attributes:
        clips: Frames that belong together.
        total: Number of frames to be written, None where a video does not say.
        there: Files that are there already and stay.
        writer: Opens what takes the clean frames.
    """

    clips: Sequence[Clip]
    total: int | None
    there: frozenset[Path]
    writer: Callable[[], AbstractContextManager[Write]]


def check_places(request: DenoiseRequest) -> None:
    """What can be known before the network is loaded.

    Raises:
        UserError: A place or number that cannot be.
    """
    source, to = request.source, request.to
    if request.skip_corrupt < 0:
        raise UserError(
            f"it cannot be {request.skip_corrupt}",
            where="--skip-corrupt",
            todo="Allowed: 0 or more.",
        )
    if not exists(source):
        raise missing(source, more="Give a picture, a folder or zip with pictures, or a video.")
    if is_folder(source) and resolved(to).is_relative_to(resolved(source)):
        raise UserError(
            "the clean pictures would lie among the noisy ones",
            where=f"--to {to}",
            todo=f"Give a folder outside of '{source}'.",
        )
    if is_file(source) and resolved(to) == resolved(source):
        raise UserError(
            "it would overwrite the noisy one", where=f"--to {to}", todo="Give another name."
        )
    if is_video(to.name):
        if not is_video(source.name):
            raise UserError(
                "pictures are not put together to a video",
                where=f"--to {to}",
                todo="Give a folder.",
            )
        check_written_video(to)
        if exists(to):
            raise _in_the_way(to, "Give another name, or remove it.")


def video_work(request: DenoiseRequest) -> Work:
    """The frames of a video, into pictures or another video.

    Raises:
        UserError: It cannot be read, or something is in the way.
    """
    reader = VideoReader(request.source)
    to_video = is_video(request.to.name)
    if not to_video:
        _check_folder(request.to)
        if request.resume:
            raise UserError(
                "a video is cleaned from its beginning",
                where="--resume",
                todo="Leave it out, and give a folder that is empty.",
            )
        if is_folder(request.to) and any(request.to.iterdir()):
            raise _in_the_way(request.to, "Give a folder that does not exist or is empty.")

    def clip() -> Iterator[Frame]:
        try:
            for number, frame in enumerate(reader.frames(), start=1):
                place = request.to / f"{number:06d}.png"
                if isinstance(frame, Fault):
                    yield Frame(place=place, origin=frame.origin, fault=frame)
                else:
                    origin = f"{request.source}, frame {number}"
                    yield Frame(place=place, origin=origin, pixels=frame)
        finally:
            reader.close()

    def writer() -> AbstractContextManager[Write]:
        if to_video:
            return _video_frames(VideoWriter(request.to, reader.rate))
        return nullcontext(write_picture)

    return Work(clips=[clip], total=reader.count or None, there=frozenset(), writer=writer)


@contextmanager
def _video_frames(video: VideoWriter) -> Generator[Write]:
    """A video as something that takes frames; their names do not matter to it."""
    with video:
        yield lambda pixels, _place: video.write(pixels)


def picture_work(request: DenoiseRequest, *, together: bool, console: Console) -> Work:
    """A picture, or all of a folder or zip that are not there yet.

    Args:
        request: What was asked for.
        together: Frames of a clip need their neighbours.
        console: Takes lines for a person.

    Raises:
        UserError: There is nothing to be read, or something is in the way.
    """
    pictures = open_all_pictures(request.source, notice=console.line)
    places = _places(request, pictures)
    ranges = clips_of(pictures) if together else [range(len(pictures))]
    there = [exists(place) for place in places]
    if any(there) and not request.resume:
        raise _in_the_way(
            places[there.index(True)],
            f"{sum(there)} of {len(places)} files are there. Give another place, or keep them and "
            "go on with the others: --resume",
        )
    if together:
        # A frame needs its neighbours, so that a clip is computed as a whole.
        waiting = [frames for frames in ranges if not all(there[index] for index in frames)]
    else:
        waiting = [[index for index in frames if not there[index]] for frames in ranges]

    def clip(frames: Sequence[int]) -> Iterator[Frame]:
        for index in frames:
            yield _read(pictures, index, places[index])

    return Work(
        clips=[lambda frames=frames: clip(frames) for frames in waiting],
        total=there.count(False),
        there=frozenset(place for place, known in zip(places, there, strict=True) if known),
        writer=lambda: nullcontext(write_picture),
    )


def _read(pictures: Pictures, index: int, place: Path) -> Frame:
    try:
        record = pictures.read(index)
    except CorruptRecord as error:
        return Frame(place=place, origin=error.fault.origin, fault=error.fault)
    origin = record.origin
    try:
        return Frame(place=place, origin=origin, pixels=decode_image(record.encoded, fast=False))
    except DecodeError as error:
        return Frame(place=place, origin=origin, fault=Fault(origin=origin, reason=str(error)))


def _places(request: DenoiseRequest, pictures: Pictures) -> list[Path]:
    """Where each clean picture goes: by the noisy one's name, as PNG."""
    one_picture = is_file(request.source) and request.source.suffix.lower() != ".zip"
    if one_picture and request.to.suffix.lower() in WRITTEN_SUFFIXES and not is_folder(request.to):
        return [request.to]
    if request.to.suffix.lower() in WRITTEN_SUFFIXES and not exists(request.to):
        raise UserError(
            "the pictures of a folder or zip do not go into one file",
            where=f"--to {request.to}",
            todo="Give a folder, whose name does not end as a picture's.",
        )
    _check_folder(request.to)
    places: dict[Path, str] = {}
    for index in range(len(pictures)):
        path = pictures.path(index)
        place = request.to / PurePosixPath(path).with_suffix(".png")
        if place in places:
            raise UserError(
                f"'{places[place]}' and '{path}' would both become '{place.name}'",
                where=str(request.source),
                todo="Rename one of them.",
            )
        places[place] = path
    return list(places)


def _check_folder(to: Path) -> None:
    if exists(to) and not is_folder(to):
        raise UserError(
            "a folder is needed, and this is a file", where=f"--to {to}", todo="Give another name."
        )


def _in_the_way(place: Path, todo: str) -> UserError:
    return UserError("there is something already", where=str(place), todo=todo)
