"""Reads and writes video files frame by frame; needs PyAV (`pip install 'jumar[video]'`)."""

import importlib
import os
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from jumar.data.pixels.decode import MAX_PIXELS
from jumar.data.pixels.whole_picture import Levels
from jumar.data.samples import Fault
from jumar.ground.errors import UserError

VIDEO_SUFFIXES = (".mp4", ".mkv", ".webm", ".avi", ".mov", ".m4v", ".mpg", ".mpeg", ".y4m")
_READ_FORMATS = "mov,matroska,avi,mpeg,mpegvideo,yuv4mpegpipe"
"""Containers that include their frames. Playlists, which name other files or hosts, are not opened,
whatever the file is called."""
_WRITERS: dict[str, tuple[str, dict[str, str], tuple[int, ...]]] = {
    ".mkv": ("ffv1", {}, (8, 10, 12, 16)),
    ".mp4": ("libx264", {"crf": "12"}, (8, 10)),
    ".mov": ("libx264", {"crf": "12"}, (8, 10)),
}
"""Codec, options and supported bits per level, by suffix."""
_EXACT = {"gbrp10le": 10, "gbrp12le": 12, "gbrp16le": 16}
"""Pixel formats of deep .mkv files, which are read without conversion, with their bits."""
_HDR_TRANSFERS = (16, 18)
"""Codes of PQ and HLG in ISO/IEC 23091-2."""
_RATE = Fraction(25)
_DURATION_UNITS = 1_000_000
"""Units of FFmpeg's AV_TIME_BASE per second."""
_MIN_FRACTION = 0.95
"""Minimum fraction of the announced frames; headers of variable-rate videos are inexact."""


def is_video(name: str) -> bool:
    """Return whether a file counts as a video, by its suffix in upper or lower case."""
    return name.lower().endswith(VIDEO_SUFFIXES)


class VideoReader:
    """The frames of a video file's first video stream, one in memory at a time.

    Args:
        path: The file.

    Attributes:
        rate: Frames per second; 25 if the file does not specify it.
        count: Number of frames according to the file; 0 if unknown.
        bits: Bits per level in the file.
        peak: The level of white in the frames: 255, or higher for more than 8 bits.
        lost: Descriptions of features of the file that its frames lack.

    Raises:
        UserError: PyAV is missing, or the file is not a video.
    """

    def __init__(self, path: Path) -> None:
        av = _pyav(path)
        self._path = path
        self._errors: type[Exception] = av.error.FFmpegError
        try:
            self._container: Any = av.open(
                str(path.resolve()),
                options={"format_whitelist": _READ_FORMATS, "protocol_whitelist": "file"},
            )
        except (av.error.FFmpegError, OSError) as error:
            raise UserError(
                f"cannot be read as a video: {_reason(error)}", where=str(path)
            ) from error
        if not self._container.streams.video:
            raise UserError("it has no video stream", where=str(path))
        self._stream: Any = self._container.streams.video[0]
        self._stream.thread_type = "AUTO"
        self.rate = Fraction(self._stream.average_rate or _RATE)
        self.count = int(self._stream.frames or 0)
        self.bits, has_alpha = self._format()
        self._exact = _EXACT.get(self._stream.codec_context.pix_fmt or "")
        self.peak = 255 if self.bits == 8 else 2 ** (self._exact or 16) - 1
        self.lost = self._not_in_frames(has_alpha)
        # The duration of a file with sound is that of the longer stream.
        is_only_stream = len(self._container.streams) == 1
        duration: int = (self._container.duration if is_only_stream else None) or 0
        self._announced = self.count or round(duration * self.rate / _DURATION_UNITS)

    def frames(self) -> Iterator[Levels | Fault]:
        """Yield the frames as RGB [height, width, 3], and a fault for each undecodable one.

        They are uint8, or uint16 from 0 to `peak` if the file has more than 8 bits. After a fault,
        frames are correct again from the next key frame on.
        """
        number = 0
        packets: Iterator[Any] = iter(self._container.demux(self._stream))
        while True:
            try:
                packet = next(packets, None)
                if packet is None:
                    if number < _MIN_FRACTION * self._announced - 1:
                        reason = f"the file ends here, but should have {self._announced} frames"
                        yield Fault(origin=f"{self._path}, frame {number + 1}", reason=reason)
                    return
                decoded = packet.decode()
            except self._errors as error:
                origin = f"{self._path}, frame {number + 1}"
                yield Fault(origin=origin, reason=f"cannot be decoded: {_reason(error)}")
                number += 1
                continue
            for frame in decoded:
                number += 1
                if frame.width * frame.height > MAX_PIXELS:
                    origin = f"{self._path}, frame {number}"
                    yield Fault(origin=origin, reason=f"{frame.width} x {frame.height} pixels")
                    continue
                yield self._pixels(frame)

    def _format(self) -> tuple[int, bool]:
        """Return the bits per level, and whether there is transparency."""
        pixel_format: Any = self._stream.codec_context.format
        components: list[Any] = list(pixel_format.components) if pixel_format is not None else []
        bits = max((int(component.bits) for component in components), default=8)
        return max(bits, 8), any(component.is_alpha for component in components)

    def _not_in_frames(self, has_alpha: bool) -> tuple[str, ...]:
        lost: list[str] = []
        other_types = {stream.type for stream in self._container.streams} - {"video"}
        lost += ["sound"] if "audio" in other_types else []
        lost += ["subtitles"] if "subtitle" in other_types else []
        lost += ["transparency"] if has_alpha else []
        if self._stream.codec_context.color_trc in _HDR_TRANSFERS:
            lost.append("the HDR colour information")
        return tuple(lost)

    def _pixels(self, frame: Any) -> Levels:
        if self.bits == 8:
            return frame.to_ndarray(format="rgb24")
        return frame.to_ndarray(format=frame.format.name if self._exact else "rgb48le")

    def close(self) -> None:
        """Close the file."""
        self._container.close()


class VideoWriter:
    """Writes a video to a temporary file, which is renamed when complete.

    `.mkv` is lossless (FFV1); `.mp4` and `.mov` are slightly lossy (H.264, constant rate factor 12,
    colours at half resolution if the sides are even). This is a context manager: after an
    exception, no file is left.

    Args:
        path: The file.
        rate: Frames per second.
        bits: Requested bits per level.

    Attributes:
        bits: Bits per level in the file: at least as requested, up to the codec's maximum.

    Raises:
        UserError: PyAV is missing, or the suffix is not supported.
    """

    def __init__(self, path: Path, rate: Fraction, *, bits: int = 8) -> None:
        av = _pyav(path)
        check_written_video(path)
        self.bits = written_bits(path, bits)
        self._path = path
        self._temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
        self._av = av
        self._rate = rate
        self._size = (0, 0)
        self._stream: Any = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._container: Any = av.open(str(self._temporary), "w")
        except (av.error.FFmpegError, OSError) as error:
            raise self._write_error(error) from error

    def __enter__(self) -> "VideoWriter":
        return self

    def write(self, pixels: Levels) -> None:
        """Add a frame [height, width, 3] or [height, width]; all must have the same size.

        Args:
            pixels: uint8, or uint16 from 0 to 2 ** bits - 1 if the file has more than 8 bits.

        Raises:
            UserError: The size differs, or the file cannot be written.
        """
        if pixels.ndim == 2:
            pixels = np.repeat(pixels[..., None], 3, axis=2)
        size = (pixels.shape[0], pixels.shape[1])
        if self._stream is None:
            self._size = size
            self._stream = self._new_stream(*size)
        if size != self._size:
            raise UserError(
                f"a frame of {size[1]} x {size[0]} pixels does not fit into a video of "
                f"{self._size[1]} x {self._size[0]}",
                where=str(self._path),
                todo="Write a folder of images instead.",
            )
        pixel_format = "rgb24" if self.bits == 8 else f"gbrp{self.bits}le"
        frame = self._av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format=pixel_format)
        self._encode(frame)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None and self._stream is not None:
                self._encode(None)
            self._close()
            if kind is None and self._stream is not None:
                self._temporary.replace(self._path)
        except OSError as failure:
            raise self._write_error(failure) from failure
        finally:
            with suppress(OSError):
                self._temporary.unlink()

    def _new_stream(self, height: int, width: int) -> Any:
        codec, options, _ = _WRITERS[self._path.suffix.lower()]
        stream = self._container.add_stream(codec, rate=self._rate, options=options)
        stream.width, stream.height = width, height
        even = height % 2 == 0 and width % 2 == 0
        deep = "" if self.bits == 8 else f"{self.bits}le"
        if codec == "ffv1":
            stream.pix_fmt = f"gbrp{deep}" if deep else "bgr0"
        else:
            stream.pix_fmt = f"yuv{420 if even else 444}p{deep}"
        return stream

    def _encode(self, frame: Any) -> None:
        try:
            for packet in self._stream.encode(frame):
                self._container.mux(packet)
        except (self._av.error.FFmpegError, OSError) as error:
            raise self._write_error(error) from error

    def _close(self) -> None:
        try:
            self._container.close()
        except self._av.error.FFmpegError as error:
            raise self._write_error(error) from error

    def _write_error(self, error: Exception) -> UserError:
        return UserError(f"cannot be written: {_reason(error)}", where=str(self._path))


def written_bits(path: Path, requested: int) -> int:
    """Return the smallest supported bits per level that suffice for a request, or the maximum."""
    available = _WRITERS[path.suffix.lower()][2]
    return next((bits for bits in available if bits >= requested), available[-1])


def check_written_video(path: Path) -> None:
    """Check that a video can be written to a file with this name.

    Raises:
        UserError: PyAV is missing, or the suffix is not supported.
    """
    _pyav(path)
    if path.suffix.lower() not in _WRITERS:
        raise UserError(
            f"videos cannot be written as '{path.suffix}'",
            where=str(path),
            todo=f"Known: {', '.join(_WRITERS)}; or specify a folder for single images.",
        )


def _pyav(path: Path) -> Any:
    try:
        return importlib.import_module("av")
    except ImportError as error:
        raise UserError(
            "reading and writing videos needs PyAV, which is not installed",
            where=str(path),
            todo="pip install 'jumar[video]', or convert the video to images first: "
            "ffmpeg -i VIDEO FRAMES/%06d.png",
        ) from error


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
