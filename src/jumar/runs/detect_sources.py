"""The inputs of `jumar detect`: images of a folder or zip, or the frames of a video."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jumar.data.images.picture_tree import Pictures, open_all_pictures
from jumar.data.pixels.decode import DecodeError, EncodedImage
from jumar.data.pixels.video import VideoReader, is_video
from jumar.data.pixels.whole_picture import Levels
from jumar.data.samples import CorruptRecord, Fault
from jumar.runs.denoise_work import distinct_names


class Frame(NamedTuple):
    """An image of a source.

    Attributes:
        name: Its path in the source, or the video's name with the number of the frame.
        path: Relative path of the files written for it, without a suffix.
        pixels: RGB [height, width, 3], or the reason why it cannot be read.
    """

    name: str
    path: PurePosixPath
    pixels: NDArray[np.uint8] | Fault


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """The images of a source.

    Attributes:
        frames: The images, read one at a time.
        count: Number of frames; None if a video does not state it.
        rate: Frames per second of `frames`; None unless the source is a video.
    """

    frames: Iterator[Frame]
    count: int | None
    rate: Fraction | None = None


def open_source(path: Path, *, every: int, notice: Callable[[str], None]) -> Source:
    """Open an image, a folder or zip of images, or a video.

    Args:
        path: The source.
        every: Process every Nth frame of a video.
        notice: Called with a message about omitted files.

    Raises:
        UserError: There is nothing to read.
    """
    if is_video(path.name):
        reader = VideoReader(path)
        count = -(-reader.count // every) or None
        frames = _video_frames(reader, path, every)
        return Source(frames=frames, count=count, rate=reader.rate / every)
    pictures = open_all_pictures(path, notice=notice)
    return Source(frames=_pictures(pictures), count=len(pictures))


def _pictures(pictures: Pictures) -> Iterator[Frame]:
    names = [pictures.path(index) for index in range(len(pictures))]
    for index, (name, unique_name) in enumerate(zip(names, distinct_names(names), strict=True)):
        yield Frame(name, PurePosixPath(unique_name).with_suffix(""), _decoded(pictures, index))


def _decoded(pictures: Pictures, index: int) -> NDArray[np.uint8] | Fault:
    try:
        record = pictures.read(index)
    except CorruptRecord as error:
        return error.fault
    try:
        return EncodedImage(record.encoded).decode(fast=False)
    except DecodeError as error:
        return CorruptRecord(record.origin, error).fault


def _video_frames(reader: VideoReader, path: Path, every: int) -> Iterator[Frame]:
    try:
        for number, frame in enumerate(reader.frames(), start=1):
            if (number - 1) % every:
                continue
            name = f"{number:06d}"
            pixels = frame if isinstance(frame, Fault) else _to_8_bits(frame, reader.peak)
            yield Frame(f"{path.name}/{name}", PurePosixPath(path.stem, name), pixels)
    finally:
        reader.close()


def _to_8_bits(levels: Levels, peak: int) -> NDArray[np.uint8]:
    scaled = levels if peak == 255 else np.rint(levels.astype(np.float32) * (255 / peak))
    return scaled.astype(np.uint8, copy=False)
