"""Denoise images, folders of frames and videos with a trained network: `jumar denoise`.

Frames are processed one at a time: only the current frame and the few that the network keeps are in
memory. A finished frame is on disk before the next one is read.
"""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from jumar.data.loading.faults import FaultTally
from jumar.data.pixels.video import is_video
from jumar.data.pixels.whole_picture import Levels
from jumar.data.samples import Fault
from jumar.ground.errors import UserError
from jumar.ground.paths import exists
from jumar.ground.text import counted
from jumar.recipes.denoising import DenoisingRecipe
from jumar.recipes.stored import stored_recipe
from jumar.recipes.trained import Trained
from jumar.runs.context import print_unreadable
from jumar.runs.denoise_video import check_unfinished, video_work
from jumar.runs.denoise_work import (
    Clip,
    DenoiseRequest,
    Frame,
    LostFeatures,
    Work,
    check_paths,
    picture_work,
)
from jumar.runs.open_trained import open_trained
from jumar.tasks.denoising import picture_levels, unit_scale
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory
from jumar.training.signals import StopRequest, listening


def denoise_files(request: DenoiseRequest) -> int:
    """Denoise the requested files and print how long it took.

    Returns:
        The exit code: 0, or that of the signal that stopped it between frames.

    Raises:
        UserError: The run is not a denoiser's, there is nothing to read, an output already exists,
            or more frames than allowed cannot be read.
    """
    console = Console()
    check_paths(request)
    check_unfinished(request)
    _check_recipe(request)
    if is_video(request.to.name) and exists(request.to):
        console.line(f"already complete: {request.to}")
        return 0
    trained = open_trained(request)
    with closing(trained.policy):
        recipe = trained.recipe
        assert isinstance(recipe, DenoisingRecipe)
        together, lost_features = recipe.looks_at_neighbours(), LostFeatures()
        if is_video(request.source.name):
            frames_before = recipe.frames_before()
            work = video_work(request, trained, lost_features, frames_before=frames_before)
        else:
            work = picture_work(request, lost_features, together=together, console=console)
        try:
            with listening() as stop:
                return _Denoising(request, trained, recipe, console, stop).run(
                    work, together=together
                )
        finally:
            lost_features.report(console)


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

    def run(self, work: Work, *, together: bool) -> int:
        """Process all clips of the work."""
        start = time.perf_counter()
        with (
            suppress(_VideoUnfinished),
            self._console.bar("frames", work.total) as bar,
            work.writer() as write,
            torch.inference_mode(),
            self._trained.policy.forward(),
        ):
            for clip in work.clips:
                for clean, frame in self._clean(clip, together=together):
                    if frame.path in work.existing:
                        continue
                    write(_levels(clean, frame.written_peak), frame)
                    self._done += 1
                    bar.show(self._done)
                if self._stop:
                    break
            if self._stop and is_video(self._request.to.name):
                raise _VideoUnfinished
        print_unreadable(self._console, [str(fault) for fault in self._tally.faults])
        if not self._done and not work.kept and not self._stop:
            raise UserError(
                "no image could be denoised",
                where=str(self._request.source),
                todo="Nothing was written; the lines above state the reasons.",
            )
        self._summarize(work, time.perf_counter() - start)
        return self._stop.exit_code if self._stop else 0

    def _clean(self, clip: Clip, *, together: bool) -> Iterator[tuple[Tensor, Frame]]:
        waiting: deque[Frame] = deque()
        noisy = self._noisy(clip, waiting, together=together)
        for clean in self._recipe.denoise_frames(self._trained.model, noisy):
            if self._stop:
                return
            frame = waiting.popleft()
            if not torch.isfinite(clean).all():
                raise UserError(
                    "the network outputs non-finite values",
                    where=str(frame.path),
                    todo="Try --set precision.mode=must_keep_origin_dtype, or another checkpoint.",
                )
            yield clean, frame

    def _noisy(self, clip: Clip, waiting: deque[Frame], *, together: bool) -> Iterator[Tensor]:
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
                    f"before it {shape[1]} x {shape[0]}: they are not from the same clip"
                )
                self._tally.add([Fault(origin=frame.origin, reason=reason)])
                continue
            shape = frame.pixels.shape
            waiting.append(replace(frame, pixels=None))
            yield self._tensor(frame.pixels, frame.peak, together=together)

    def _tensor(self, pixels: Levels, peak: int, *, together: bool) -> Tensor:
        """Return an image as the network's input; a grey network gets one colour at a time."""
        one_by_one = self._recipe.data.channels == "grey"
        if one_by_one and not together and (pixels == pixels[..., :1]).all():
            pixels = pixels[..., :1]
        if pixels.dtype == np.uint16:
            tensor = torch.from_numpy(pixels.astype(np.float32) / peak)
        else:
            tensor = torch.from_numpy(np.ascontiguousarray(pixels))
        tensor = tensor.to(self._trained.device.torch)
        planes = unit_scale(tensor.permute(2, 0, 1))
        return planes.unsqueeze(1) if one_by_one else planes.unsqueeze(0)

    def _summarize(self, work: Work, seconds: float) -> None:
        kept = work.kept
        if not self._done and kept and not self._stop:
            except_for = ", except those that could not be read" if self._tally.faults else ""
            self._console.line(f"all {kept} already exist{except_for}: {self._request.to}")
            return
        kept = f", {kept} kept" if kept else ""
        weights = "averaged weights" if self._trained.weights == "ema" else "weights"
        prefix = "stopped after" if self._stop else ""
        self._console.line(
            f"{prefix} {counted(self._done, 'frame')} with the {weights} of step "
            f"{self._trained.checkpoint.step}, {seconds:.1f} s, "
            f"{self._done / max(seconds, 1e-9):.2f} frames/s{kept}: {self._request.to}".strip()
        )
        if self._stop:
            self._console.line("resume with the same command and --resume")


class _VideoUnfinished(Exception):
    """Raised inside the video writer to keep the unfinished video for a later resume."""


def _levels(clean: Tensor, peak: int) -> Levels:
    """Return levels [height, width, 3], or [height, width] if grey; uint16 if `peak` is not 255."""
    planes = clean[:, 0] if clean.shape[1] == 1 else clean[0]
    if peak == 255:
        levels: Levels = picture_levels(planes).cpu().numpy()
    else:
        levels = (planes.float().clamp(0, 1) * peak).round().cpu().numpy().astype(np.uint16)
    pixels = levels.transpose(1, 2, 0)
    return np.ascontiguousarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


def _check_recipe(request: DenoiseRequest) -> None:
    """Check that the run trained a denoiser, before its network is built and loaded."""
    name, _, recipe = stored_recipe(RunDirectory(request.run_dir), request.imports)
    if not isinstance(recipe, DenoisingRecipe):
        raise UserError(
            f"the recipe '{name}' does not denoise",
            where=str(request.run_dir),
            todo="Give a run of a recipe such as videnn-spatial or nlrn.",
        )
