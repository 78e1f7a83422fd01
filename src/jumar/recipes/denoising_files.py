"""Clean pictures, folders of frames and videos with a trained network: `jumar denoise`.

Frames go through one after the other: what is in memory is the frame at hand and the few that the
network keeps. A finished frame is on the disk before the next one is read.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jumar.data.denoising.clean_pictures import Pixels, grey
from jumar.data.denoising.frame_triplets import clips_of
from jumar.data.images.picture_tree import Pictures, open_all_pictures
from jumar.data.loading.faults import FaultTally
from jumar.data.pixels.decode import DecodeError, decode_image
from jumar.data.pixels.picture_files import WRITTEN_SUFFIXES, write_picture
from jumar.data.pixels.video import VideoReader, VideoWriter, check_written_video, is_video
from jumar.data.samples import CorruptRecord, Fault
from jumar.errors import UserError
from jumar.recipes.denoising import DenoisingRecipe
from jumar.recipes.starting import say_unreadable, stored_recipe
from jumar.recipes.trained import Trained, TrainedRequest, open_trained
from jumar.tasks.denoising import picture_levels, unit_scale
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory
from jumar.training.signals import StopRequest, listening


@dataclass(frozen=True, kw_only=True)
class DenoiseRequest:
    """What `jumar denoise` was asked for.

    Attributes:
        source: A picture, a folder or zip with pictures anywhere in it, or a video.
        to: A picture for a picture, a video or a folder for a video, else a folder.
        resume: Keep the files that are there already and go on with the others.
        skip_corrupt: Unreadable frames to tolerate; they are left out.
        which: `last`, `best`, or a step.
    """

    run_dir: Path
    source: Path
    to: Path
    resume: bool = False
    skip_corrupt: int = 0
    which: str = "last"
    use_ema: bool = True
    assignments: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    device: str = "auto"


@dataclass(frozen=True, kw_only=True)
class _Frame:
    """A noisy picture and where its clean version goes, or why there is none."""

    place: Path
    origin: str
    pixels: Pixels | None = None
    fault: Fault | None = None


Clip = Callable[[], Iterator[_Frame]]
Write = Callable[[NDArray[np.uint8], Path], None]


@dataclass(frozen=True, kw_only=True)
class _Work:
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


def denoise_files(request: DenoiseRequest) -> int:
    """Clean what was asked for and say how long it took.

    Returns:
        The exit code: 0, or that of the signal that stopped it between two frames.

    Raises:
        UserError: The run is no denoiser's, nothing is to be read, something is in the way, or
            more frames than allowed cannot be read.
    """
    console = Console()
    _check_places(request)
    _check_recipe(request)
    trained = open_trained(
        TrainedRequest(
            run_dir=request.run_dir,
            which=request.which,
            use_ema=request.use_ema,
            assignments=request.assignments,
            imports=request.imports,
            device=request.device,
        )
    )
    try:
        recipe = trained.recipe
        assert isinstance(recipe, DenoisingRecipe)
        together = recipe.looks_at_neighbours()
        if is_video(request.source.name):
            work = _video(request)
        else:
            work = _pictures(request, together=together, console=console)
        with listening() as stop:
            return _Denoising(request, trained, recipe, console, stop).run(work, together=together)
    finally:
        trained.policy.close()


class _Denoising:
    """One call of `jumar denoise`."""

    def __init__(
        self,
        request: DenoiseRequest,
        trained: Trained,
        recipe: DenoisingRecipe,
        console: Console,
        stop: StopRequest,
    ) -> None:
        self._request = request
        self._trained = trained
        self._recipe = recipe
        self._console = console
        self._stop = stop
        self._tally = FaultTally(request.skip_corrupt)
        self._done = 0

    def run(self, work: _Work, *, together: bool) -> int:
        """All clips of some work."""
        start = time.perf_counter()
        try:
            with (
                self._console.bar("frames", work.total) as bar,
                work.writer() as write,
                torch.inference_mode(),
                self._trained.policy.forward(),
            ):
                for clip in work.clips:
                    for pixels, place in self._clean(clip, together=together):
                        if place in work.there:
                            continue
                        write(pixels, place)
                        self._done += 1
                        bar.show(self._done)
                    if self._stop:
                        break
                if self._stop and is_video(self._request.to.name):
                    raise _VideoUnfinished
        except _VideoUnfinished:
            self._console.line(
                f"stopped after {_frames(self._done)}: a video is written whole or not at all, so "
                "there is none; a folder of pictures (--to DIRECTORY) keeps what is done"
            )
            return self._stop.exit_code
        say_unreadable(self._console, [str(fault) for fault in self._tally.faults])
        if not self._done and not work.there and not self._stop:
            raise UserError(
                "not one picture of it could be cleaned",
                where=str(self._request.source),
                todo="Nothing was written. The lines above say why.",
            )
        self._summarize(work, time.perf_counter() - start)
        return self._stop.exit_code if self._stop else 0

    def _clean(self, clip: Clip, *, together: bool) -> Iterator[tuple[NDArray[np.uint8], Path]]:
        waiting: deque[_Frame] = deque()
        noisy = self._noisy(clip, waiting, together=together)
        for clean in self._recipe.denoise_frames(self._trained.model, noisy):
            if self._stop:
                return
            frame = waiting.popleft()
            if not torch.isfinite(clean).all():
                raise UserError(
                    "the network gives numbers that are not finite",
                    where=str(frame.place),
                    todo="Try --set precision.mode=must_keep_origin_dtype, or another checkpoint.",
                )
            yield _as_picture(clean), frame.place

    def _noisy(self, clip: Clip, waiting: deque[_Frame], *, together: bool) -> Iterator[Tensor]:
        shape: tuple[int, ...] = ()
        for frame in clip():
            if self._stop:
                return
            if frame.fault is not None or frame.pixels is None:
                self._tally.add([frame.fault] if frame.fault else [])
                continue
            if together and shape and frame.pixels.shape != shape:
                reason = (
                    f"is {frame.pixels.shape[1]} x {frame.pixels.shape[0]} pixels, the frames "
                    f"before {shape[1]} x {shape[0]}: they are not of one clip"
                )
                self._tally.add([Fault(origin=frame.origin, reason=reason)])
                continue
            shape = frame.pixels.shape
            waiting.append(_Frame(place=frame.place, origin=frame.origin))
            yield self._tensor(frame.pixels, together=together)

    def _tensor(self, pixels: Pixels, *, together: bool) -> Tensor:
        """A picture for the network; a grey network takes the colours one by one."""
        one_by_one = self._recipe.data.channels == "grey"
        if one_by_one and not together and (pixels == pixels[..., :1]).all():
            pixels = grey(pixels)
        tensor = torch.from_numpy(np.ascontiguousarray(pixels)).to(self._trained.device.torch)
        planes = unit_scale(tensor.permute(2, 0, 1))
        return planes.unsqueeze(1) if one_by_one else planes.unsqueeze(0)

    def _summarize(self, work: _Work, seconds: float) -> None:
        kept = len(work.there)
        if not self._done and kept and not self._stop:
            left = ", but for what could not be read" if self._tally.faults else ""
            self._console.line(f"all {kept} are there already{left}: {self._request.to}")
            return
        kept = f", {kept} kept" if kept else ""
        weights = "averaged weights" if self._trained.weights == "ema" else "weights"
        said = "stopped after" if self._stop else ""
        self._console.line(
            f"{said} {_frames(self._done)} by the {weights} of step "
            f"{self._trained.checkpoint.step}, {seconds:.1f} s, "
            f"{self._done / max(seconds, 1e-9):.2f} frames/s{kept}: {self._request.to}".strip()
        )
        if self._stop:
            self._console.line("go on with the same command and --resume")


class _VideoUnfinished(Exception):
    """Leaving the writer of a video by an exception takes its beginning away."""


def _frames(count: int) -> str:
    return "1 frame" if count == 1 else f"{count} frames"


def _as_picture(clean: Tensor) -> NDArray[np.uint8]:
    """[height, width, 3], or [height, width] of a grey picture."""
    levels = picture_levels(clean)
    planes = levels[:, 0] if levels.shape[1] == 1 else levels[0]
    pixels = planes.permute(1, 2, 0).cpu().numpy()
    return np.ascontiguousarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


def _check_recipe(request: DenoiseRequest) -> None:
    """That the run is a denoiser's, before its network is made and loaded."""
    name, _, recipe = stored_recipe(RunDirectory(request.run_dir), request.imports)
    if not isinstance(recipe, DenoisingRecipe):
        raise UserError(
            f"the recipe '{name}' takes no noise away",
            where=str(request.run_dir),
            todo="Give a run of a recipe such as videnn-spatial or nlrn.",
        )


def _check_places(request: DenoiseRequest) -> None:
    """What can be known before the network is loaded."""
    source, to = request.source, request.to
    if request.skip_corrupt < 0:
        raise UserError(
            f"it cannot be {request.skip_corrupt}",
            where="--skip-corrupt",
            todo="Allowed: 0 or more.",
        )
    if not source.exists():
        raise UserError(
            "there is no such file or folder",
            where=str(source),
            todo="Give a picture, a folder or zip with pictures, or a video.",
        )
    if source.is_dir() and to.resolve().is_relative_to(source.resolve()):
        raise UserError(
            "the clean pictures would lie among the noisy ones",
            where=f"--to {to}",
            todo=f"Give a folder outside of '{source}'.",
        )
    if source.is_file() and to.resolve() == source.resolve():
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
        if to.exists():
            raise _in_the_way(to, "Give another name, or remove it.")


def _video(request: DenoiseRequest) -> _Work:
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
        if request.to.is_dir() and any(request.to.iterdir()):
            raise _in_the_way(request.to, "Give a folder that does not exist or is empty.")

    def clip() -> Iterator[_Frame]:
        try:
            for number, frame in enumerate(reader.frames(), start=1):
                place = request.to / f"{number:06d}.png"
                if isinstance(frame, Fault):
                    yield _Frame(place=place, origin=frame.origin, fault=frame)
                else:
                    origin = f"{request.source}, frame {number}"
                    yield _Frame(place=place, origin=origin, pixels=frame)
        finally:
            reader.close()

    def writer() -> AbstractContextManager[Write]:
        if to_video:
            return _video_frames(VideoWriter(request.to, reader.rate))
        return nullcontext(write_picture)

    return _Work(clips=[clip], total=reader.count or None, there=frozenset(), writer=writer)


@contextmanager
def _video_frames(video: VideoWriter) -> Generator[Write]:
    """A video as something that takes frames; their names do not matter to it."""
    with video:
        yield lambda pixels, _place: video.write(pixels)


def _pictures(request: DenoiseRequest, *, together: bool, console: Console) -> _Work:
    pictures = open_all_pictures(request.source, notice=console.line)
    places = _places(request, pictures)
    ranges = clips_of(pictures) if together else [range(len(pictures))]
    there = [place.exists() for place in places]
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

    def clip(frames: Sequence[int]) -> Iterator[_Frame]:
        for index in frames:
            yield _read(pictures, index, places[index])

    return _Work(
        clips=[lambda frames=frames: clip(frames) for frames in waiting],
        total=there.count(False),
        there=frozenset(place for place, known in zip(places, there, strict=True) if known),
        writer=lambda: nullcontext(write_picture),
    )


def _read(pictures: Pictures, index: int, place: Path) -> _Frame:
    try:
        record = pictures.read(index)
    except CorruptRecord as error:
        return _Frame(place=place, origin=error.fault.origin, fault=error.fault)
    origin = record.origin
    try:
        return _Frame(place=place, origin=origin, pixels=decode_image(record.encoded, fast=False))
    except DecodeError as error:
        return _Frame(place=place, origin=origin, fault=Fault(origin=origin, reason=str(error)))


def _places(request: DenoiseRequest, pictures: Pictures) -> list[Path]:
    """Where each clean picture goes: by the noisy one's name, as PNG."""
    one_picture = request.source.is_file() and request.source.suffix.lower() != ".zip"
    if one_picture and request.to.suffix.lower() in WRITTEN_SUFFIXES and not request.to.is_dir():
        return [request.to]
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
    if to.exists() and not to.is_dir():
        raise UserError(
            "a folder is needed, and this is a file", where=f"--to {to}", todo="Give another name."
        )


def _in_the_way(place: Path, todo: str) -> UserError:
    return UserError("there is something already", where=str(place), todo=todo)
