"""Three consecutive frames of a clip, for networks that look at neighbouring frames.

A clip is a folder of frames (on the disk or in a zip), in the order of the numbers in their
names. The frames of a triplet have noise of one strength, as ViDeNN's Temp3-CNN was trained.

ViDeNN's scripts clean whole frames with the spatial network first, and write patches of those to
a file. Here the noisy patches travel, so that the spatial network cleans them on the device; with
`margin`, they are larger than the clean patch on each side, so that nothing of the spatial
network's borders reaches the temporal one. Triplets begin at every frame, there at every third.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from jumar.data.denoising.clean_pictures import Channels, CleanPictures, Pixels
from jumar.data.denoising.denoise_sets import DenoisingData, with_evaluation_noise
from jumar.data.denoising.noise import NoiseSettings, add_noise, draw_level, storage_of
from jumar.data.denoising.noisy_pictures import NoisyPictures, Sample, evaluation_batch
from jumar.data.denoising.patch_set import (
    PATCH_FIELDS,
    TURNS,
    channels_first,
    mirrored,
    random_window,
    turned,
)
from jumar.data.images.picture_tree import Pictures, open_pictures
from jumar.data.images.sources import check_pair
from jumar.data.loading.sampler import sample_random
from jumar.data.samples import CorruptRecord, Fault, Fetched, SampleKey
from jumar.ground.errors import UserError
from jumar.ground.machine import check_fits
from jumar.ground.text import counted
from jumar.settings import setting


class Triplet(NamedTuple):
    """Positions of three frames among the pictures."""

    before: int
    middle: int
    after: int


@dataclass(frozen=True, kw_only=True)
class ClipData(DenoisingData):
    """Where the clips are, and how their frames become noisy triplets."""

    margin: int = setting(
        0, "What noisy patches have more than clean ones on each side.", unit="px", minimum=0
    )
    holdout_frames: int = setting(
        12,
        "Frames at the end of each clip that are kept for evaluation, where neither path has "
        "parts nor eval_path is set.",
        minimum=0,
    )


class TripletPatches:
    """Patches of the same place in three frames: a `SampleSet`.

    A batch holds `clean`, uint8 [N, channels, patch_size, patch_size] of the middle frame, and
    `noisy`, [N, 3 * channels, side, side] with the frames one after the other in the channels,
    where side is patch_size + 2 * margin; uint8 or float32 as in `PatchSet`.

    Args:
        frames: Decoded, at one scale.
        triplets: Which frames belong together.
        noise: Kind, strength and form of the noise.
        patch_size: Side of a clean patch in pixels.
        margin: What noisy patches have more on each side.
        patches_per_triplet: Patches of each triplet in an epoch.
        turns: Whether patches are rotated and flipped.
        seed: Together with a key, decides everything that is drawn.
    """

    def __init__(
        self,
        frames: CleanPictures,
        triplets: Sequence[Triplet],
        noise: NoiseSettings,
        *,
        patch_size: int,
        margin: int = 0,
        patches_per_triplet: int,
        turns: bool = True,
        seed: int = 0,
    ) -> None:
        self.frames = frames
        self.triplets = tuple(triplets)
        self.noise = noise
        self.patch_size = patch_size
        self.margin = margin
        self.patches_per_triplet = patches_per_triplet
        self.turns = turns
        self.seed = seed

    def __len__(self) -> int:
        return len(self.triplets) * self.patches_per_triplet

    def fetch(self, keys: Sequence[SampleKey]) -> Fetched:
        """The patches of these keys, in their order.

        Raises:
            UserError: None of the triplets can be read.
        """
        faults: list[Fault] = []
        channels = 3 if self.frames.channels == "colour" else 1
        storage = storage_of(self.noise)
        side, inner = self.patch_size + 2 * self.margin, slice(self.margin, -self.margin or None)
        check_fits(len(keys), 13 * side * side * channels, "patches", PATCH_FIELDS)
        clean = np.empty((len(keys), self.patch_size, self.patch_size, channels), np.uint8)
        noisy = np.empty(
            (len(keys), side, side, 3 * channels), np.uint8 if storage == "uint8" else np.float32
        )
        for row, key in enumerate(keys):
            random = sample_random(self.seed, key)
            pixels = mirrored(self._readable(key.index // self.patches_per_triplet, faults), side)
            cut = random_window(pixels, side, random)
            cut = turned(cut, int(random.integers(TURNS))) if self.turns else cut
            clean[row] = cut[inner, inner, channels : 2 * channels]
            noisy[row] = add_noise(
                np.ascontiguousarray(cut), draw_level(self.noise, random), random, storage
            )
        batch = {"clean": channels_first(clean), "noisy": channels_first(noisy)}
        return Fetched(batch=batch, faults=faults)

    def _readable(self, index: int, faults: list[Fault]) -> Pixels:
        for step in range(len(self.triplets)):
            try:
                return read_triplet(self.frames, self.triplets[(index + step) % len(self.triplets)])
            except CorruptRecord as error:
                faults.append(error.fault)
        raise UserError(
            f"none of the {len(self.triplets)} triplets of frames can be read, the last one "
            f"because: {faults[-1].reason}",
            where=faults[-1].origin,
            todo="Check the path of the data.",
        )


class NoisyTriplets:
    """Every frame with its neighbours at every noise level: a `SampleSet` for evaluation.

    A batch is that of `NoisyPictures`, except that `noisy` has three frames in its channels. A
    frame has the same noise in each of the three triplets that it belongs to.

    Args:
        pictures: The frames and their noise.
        triplets: Which frames belong together.
    """

    def __init__(self, pictures: NoisyPictures, triplets: Sequence[Triplet]) -> None:
        self.pictures = pictures
        self.triplets = tuple(triplets)

    def __len__(self) -> int:
        return len(self.triplets) * len(self.pictures.levels)

    def fetch(self, keys: Sequence[SampleKey]) -> Fetched:
        """The frames of these keys, in their order; those that cannot be read are faults.

        Raises:
            UserError: The frames differ in size and do not fit into one batch.
        """
        faults: list[Fault] = []
        samples: list[Sample] = []
        frames = self.pictures.pictures
        for key in keys:
            place, index = divmod(key.index, len(self.triplets))
            triplet = self.triplets[index]
            try:
                read_triplet(frames, triplet)
                clean = [frames.read(which) for which in triplet]
            except CorruptRecord as error:
                faults.append(error.fault)
                continue
            noisy = [
                self.pictures.noisy(pixels, which, place)
                for pixels, which in zip(clean, triplet, strict=True)
            ]
            samples.append((clean[1], np.concatenate(noisy, axis=2), place))
        return Fetched(batch=evaluation_batch(samples) if samples else {}, faults=faults)


def read_triplet(frames: CleanPictures, triplet: Triplet) -> Pixels:
    """Three frames one after the other in the channels, [height, width, 3 * channels].

    Raises:
        CorruptRecord: One cannot be read, or they differ in size.
    """
    pixels = [frames.read(index) for index in triplet]
    if len({frame.shape for frame in pixels}) > 1:
        sizes = ", ".join(f"{frame.shape[1]} x {frame.shape[0]}" for frame in pixels)
        names = [frames.pictures.path(index) for index in triplet]
        reason = f"the frames {', '.join(names)} differ in size: {sizes}"
        raise CorruptRecord(
            Fault(origin=frames.pictures.read(triplet.middle).origin, reason=reason)
        )
    return np.concatenate(pixels, axis=2)


def clips_of(pictures: Pictures) -> list[range]:
    """The positions of the frames of each clip: of the pictures of each folder."""
    clips: list[range] = []
    start, folder = 0, ""
    for index in range(len(pictures)):
        own = pictures.path(index).rpartition("/")[0]
        if index and own != folder:
            clips.append(range(start, index))
            start = index
        folder = own
    return [*clips, range(start, len(pictures))]


def inner_triplets(clip: range) -> list[Triplet]:
    """The triplets of a clip without its ends: those that lack no neighbour."""
    return [Triplet(middle - 1, middle, middle + 1) for middle in clip[1:-1]]


def all_triplets(clip: range) -> list[Triplet]:
    """A triplet for each frame of a clip; the first and the last one are their own neighbours."""
    return [Triplet(max(middle - 1, clip[0]), middle, min(middle + 1, clip[-1])) for middle in clip]


def open_triplets(
    data: ClipData, *, seed: int, notice: Callable[[str], None] = lambda _: None
) -> tuple[TripletPatches, NoisyTriplets | None]:
    """Patches of triplets to learn from and whole triplets to score on.

    Args:
        data: Settings.
        seed: Of the run.
        notice: Is told what a user should know, such as files that were left out.

    Returns:
        Both sets; None for the second where `eval_path` is `none`.

    Raises:
        UserError: There are no clips of three frames at the path, or both sets are the same.
    """
    pictures = open_pictures(data.path, "train", notice=notice)
    clips = clips_of(pictures)
    eval_pictures, eval_clips = pictures, clips
    if data.eval_path != "none":
        eval_pictures = open_pictures(data.eval_path or data.path, "eval", notice=notice)
        eval_clips = clips_of(eval_pictures)
        if not data.eval_path and data.holdout_frames and _are_same(pictures, eval_pictures):
            clips = [clip[: -data.holdout_frames] for clip in clips]
            eval_clips = [clip[-data.holdout_frames :] for clip in eval_clips]
        else:
            check_pair(pictures, eval_pictures)
    triplets = [triplet for clip in clips for triplet in inner_triplets(clip)]
    if not triplets:
        raise UserError(
            f"among {counted(len(pictures), 'frame')} no three belong to one clip",
            where=data.path,
            todo="Give a folder of clips, each with three frames or more besides the "
            f"{data.holdout_frames} of data.holdout_frames.",
        )
    channels = cast("Channels", data.channels)
    patches = TripletPatches(
        CleanPictures(pictures, channels, cache_bytes=data.cache_mib * 2**20),
        triplets,
        data.noise,
        patch_size=data.patch_size,
        margin=data.margin,
        patches_per_triplet=data.patches_per_image,
        turns=data.turns,
        seed=seed,
    )
    if data.eval_path == "none":
        return patches, None
    noisy = with_evaluation_noise(data, eval_pictures)
    return patches, NoisyTriplets(
        noisy, [triplet for clip in eval_clips for triplet in all_triplets(clip)]
    )


def _are_same(one: Pictures, other: Pictures) -> bool:
    try:
        return len(one) == len(other) and one.read(0).origin == other.read(0).origin
    except CorruptRecord:
        return one.path(0) == other.path(0)
