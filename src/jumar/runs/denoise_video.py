"""Videos for `jumar denoise`: write their frames as images or as another video, with resume.

Clean frames go into a lossless video beside the requested one. At the end it is renamed if the
requested format is lossless too, and otherwise encoded in one pass. An interrupted call thus
resumes after its last frame, with the same result as an uninterrupted one: a lossy encoder would
treat the frames before and after the interruption as two videos.
"""

from collections.abc import Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from jumar.data.pixels.video import VideoReader, VideoWriter, is_video, written_bits
from jumar.data.pixels.whole_picture import Levels
from jumar.data.samples import Fault
from jumar.ground.errors import UserError
from jumar.ground.paths import exists, is_folder
from jumar.recipes.trained import Trained
from jumar.runs.denoise_work import (
    DEEP_PEAK,
    DenoiseRequest,
    Frame,
    LostFeatures,
    Work,
    Write,
    already_exists,
    check_folder,
    write_clean_picture,
)
from jumar.training.run_directory import read_json, write_json


def unfinished_video(to: Path) -> Path:
    """Return the path of the video that collects clean frames; a JSON file beside it has the call.

    Args:
        to: Path of the requested video.
    """
    return to.with_name(f"{to.name}.unfinished.mkv")


def check_unfinished(request: DenoiseRequest) -> None:
    """Check that an unfinished video, if there is one, is to be resumed.

    Raises:
        UserError: An interrupted call left one, and this call does not resume it.
    """
    unfinished = unfinished_video(request.to)
    if is_video(request.to.name) and exists(unfinished) and not request.resume:
        raise already_exists(
            unfinished,
            "It has the frames of an interrupted call. Continue it with --resume, or remove it",
        )


def video_work(
    request: DenoiseRequest,
    trained: Trained,
    lost_features: LostFeatures,
    *,
    frames_before: int | None,
) -> Work:
    """Return the work for a video, whose frames become images or another video.

    Args:
        request: The request.
        trained: The network, which has to be the same as for an unfinished video.
        lost_features: Collects the features of the video that the clean one will lack.
        frames_before: Number of earlier frames that a clean frame depends on; None for all.

    Raises:
        UserError: The video cannot be read, or an output already exists.
    """
    reader = VideoReader(request.source)
    lost_features.add(reader.lost, str(request.source))
    if not is_video(request.to.name):
        return _into_pictures(request, reader, lost_features, frames_before)
    bits = written_bits(request.to, reader.bits)
    if bits < reader.bits:
        lost_features.add([f"{reader.bits - bits} of {reader.bits} bits"], str(request.source))
    record: dict[str, Any] = {
        "run": str(request.run_dir.resolve()),
        "step": trained.checkpoint.step,
        "weights": trained.weights,
        "settings": list(request.assignments),
        "source": str(request.source.resolve()),
        "bytes": request.source.stat().st_size,
    }
    kept = _kept_frames(request, record)
    existing: set[Path] = set()

    def clip() -> Iterator[Frame]:
        readable = 0
        for path, frame in _numbered(request, reader):
            if isinstance(frame, Fault):
                yield Frame(path=path, origin=frame.origin, fault=frame)
                continue
            readable += 1
            if readable <= kept:
                existing.add(path)
                if frames_before is not None and readable <= kept - frames_before:
                    continue
            yield _frame(request, reader, path, frame, written_peak=2**bits - 1)

    return Work(
        clips=[clip],
        total=max(reader.count - kept, 0) or None,
        existing=existing,
        kept=kept,
        writer=lambda: _into_video(request, reader, record, kept, bits),
    )


def _into_pictures(
    request: DenoiseRequest,
    reader: VideoReader,
    lost_features: LostFeatures,
    frames_before: int | None,
) -> Work:
    check_folder(request.to)
    names = {path.name for path in request.to.iterdir()} if is_folder(request.to) else set[str]()
    if names and not request.resume:
        raise already_exists(
            request.to,
            "Give a folder that does not exist or is empty, or keep the existing images and "
            "continue with the rest: --resume",
        )
    existing = {request.to / name for name in names}
    first_missing = next(n for n in range(1, len(names) + 2) if _name(n) not in names)

    def clip() -> Iterator[Frame]:
        for number, (path, frame) in enumerate(_numbered(request, reader), start=1):
            if isinstance(frame, Fault):
                yield Frame(path=path, origin=frame.origin, fault=frame)
                continue
            is_needed = frames_before is None or (
                frames_before and number >= first_missing - frames_before
            )
            if is_needed or path not in existing:
                peak = 255 if reader.bits == 8 else DEEP_PEAK
                yield _frame(request, reader, path, frame, written_peak=peak)

    def writer() -> AbstractContextManager[Write]:
        return nullcontext(lambda levels, frame: write_clean_picture(levels, frame, lost_features))

    kept = sum(name == _name(n) for n, name in enumerate(sorted(names), start=1))
    return Work(
        clips=[clip], total=reader.count or None, existing=existing, kept=kept, writer=writer
    )


def _name(number: int) -> str:
    return f"{number:06d}.png"


def _numbered(
    request: DenoiseRequest, reader: VideoReader
) -> Iterator[tuple[Path, Levels | Fault]]:
    """Yield each frame with the path of its image."""
    try:
        for number, frame in enumerate(reader.frames(), start=1):
            yield request.to / _name(number), frame
    finally:
        reader.close()


def _frame(
    request: DenoiseRequest, reader: VideoReader, path: Path, pixels: Levels, *, written_peak: int
) -> Frame:
    origin = f"{request.source}, frame {int(path.stem)}"
    return Frame(
        path=path, origin=origin, pixels=pixels, peak=reader.peak, written_peak=written_peak
    )


def _record_of(to: Path) -> Path:
    return unfinished_video(to).with_suffix(".json")


def _kept_frames(request: DenoiseRequest, record: Mapping[str, Any]) -> int:
    """Return the number of frames left by an earlier call; an error if its options differed."""
    unfinished = unfinished_video(request.to)
    if not exists(unfinished):
        return 0
    if not exists(_record_of(request.to)):
        raise UserError(
            "the record of these frames is missing",
            where=str(unfinished),
            todo=f"Remove it; '{_record_of(request.to).name}' is not beside it.",
        )
    earlier = read_json(_record_of(request.to))
    both = f"'{_record_of(request.to).name}' and '{unfinished.name}'"
    for name in record:
        if earlier.get(name) != record[name]:
            raise UserError(
                f"the existing frames were made with other options or input: {name} is "
                f"{earlier.get(name)}, not {record[name]}",
                where=str(_record_of(request.to)),
                todo=f"Repeat the options of the interrupted call, or remove {both}.",
            )
    frames = earlier.get("frames")
    if not isinstance(frames, int):
        raise UserError(
            f"the number of frames is {frames}, not an integer",
            where=str(_record_of(request.to)),
            todo=f"The record is damaged: remove {both}.",
        )
    return frames


@contextmanager
def _into_video(
    request: DenoiseRequest, reader: VideoReader, record: Mapping[str, Any], kept: int, bits: int
) -> Generator[Write]:
    """Append frames to the kept ones; after an exception, all frames remain for a resume."""
    unfinished, count = unfinished_video(request.to), kept
    failure: BaseException | None = None
    with VideoWriter(unfinished, reader.rate, bits=bits) as video:
        if kept:
            for frame in _frames_of(unfinished, kept):
                video.write(frame)

        def write(levels: Levels, _frame: Frame) -> None:
            nonlocal count
            video.write(levels)
            count += 1

        try:
            yield write
        except BaseException as error:
            if count == kept:
                raise
            failure = error
    if not count:
        return
    write_json(_record_of(request.to), {**record, "frames": count})
    if failure is not None:
        raise failure
    _finish(request.to, reader, bits, count)


def _finish(to: Path, reader: VideoReader, bits: int, count: int) -> None:
    """Turn the lossless video into the requested one."""
    unfinished = unfinished_video(to)
    if to.suffix.lower() == unfinished.suffix:
        unfinished.replace(to)
    else:
        with VideoWriter(to, reader.rate, bits=bits) as video:
            for frame in _frames_of(unfinished, count):
                video.write(frame)
    for path in (unfinished, _record_of(to)):
        with suppress(OSError):
            path.unlink()


def _frames_of(path: Path, count: int) -> Iterator[Levels]:
    """Yield the first frames of a lossless video of this module, with their exact levels."""
    reader = VideoReader(path)
    number = 0
    try:
        for frame in islice(reader.frames(), count):
            if isinstance(frame, Fault):
                raise _damaged(path, frame.reason)
            number += 1
            yield frame
    finally:
        reader.close()
    if number < count:
        raise _damaged(path, f"it has {number} of {count} frames")


def _damaged(path: Path, reason: str) -> UserError:
    return UserError(f"it is damaged: {reason}", where=str(path), todo="Remove it and start again.")
