"""Three consecutive frames of a clip, for networks that use neighbouring frames.

A clip is a folder of frames (on disk or in a zip), in the order of the numbers in their names. The
frames of a triplet have noise of the same strength, as in the training of ViDeNN's Temp3-CNN.

ViDeNN's scripts first denoise whole frames with the spatial network and write patches of the result
to a file. Here, batches contain the noisy patches, which the spatial network denoises on the
device; with `margin`, these are larger than the clean patch on each side, so that border effects of
the spatial network do not reach the temporal one. A triplet starts at every frame; in the scripts,
at every third.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, cast

import numpy as np

from jumar.data.denoising.clean_pictures import Channels, CleanPictures, Pixels
from jumar.data.denoising.denoise_sets import DenoisingData, with_evaluation_noise
from jumar.data.denoising.noise import NoiseSettings, add_noise, draw_level, storage_of
from jumar.data.denoising.noisy_pictures import NoisyPictures, whole_pictures_set, whole_sample
from jumar.data.denoising.patch_set import TURNS, denoising_collate, random_window, turned
from jumar.data.images.picture_tree import Pictures, open_pictures
from jumar.data.images.sources import check_pair
from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.loading.sampler import sample_random
from jumar.data.samples import Arrays, CorruptRecord, SampleKey, fingerprint
from jumar.ground.errors import UserError
from jumar.ground.text import counted
from jumar.settings import setting


class Triplet(NamedTuple):
    """Positions of three frames among the images."""

    before: int
    middle: int
    after: int


@dataclass(frozen=True, kw_only=True)
class ClipData(DenoisingData):
    """Where to find the clips, and how to make noisy triplets of their frames."""

    margin: int = setting(
        0, "Extra border of noisy patches around clean ones.", unit="px", minimum=0
    )
    holdout_frames: int = setting(
        12,
        "Frames at the end of each clip held out for evaluation when path has no parts and "
        "eval_path is unset.",
        minimum=0,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class TripletPatches:
    """Patches at the same position in three frames: `noisy` of all, `clean` of the middle one.

    Attributes:
        frames: The decoded frames, at one scale.
        triplets: The frames that belong together.
        noise: Kind, strength and form of the noise.
        patch_size: Side of a clean patch in pixels.
        margin: Extra pixels of noisy patches on each side.
        turns: Whether patches are rotated and flipped.
        seed: Together with a key, determines all random choices.
    """

    frames: CleanPictures
    triplets: Sequence[Triplet]
    noise: NoiseSettings
    patch_size: int
    margin: int = 0
    turns: bool = True
    seed: int = 0

    def __len__(self) -> int:
        return len(self.triplets)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the frames and of their grouping; see `Fingerprinted`."""
        return triplets_fingerprint(self.frames, self.triplets)

    def open(self, item: int, _key: SampleKey) -> Pixels:
        """Read the three frames; see `SampleKind.open`."""
        return np.concatenate(read_frames(self.frames, self.triplets[item]), axis=2)

    def map(self, pixels: Pixels, _item: int, key: SampleKey) -> Arrays:
        """Cut a patch from the frames, and add noise; see `SampleKind.map`."""
        random = sample_random(self.seed, key)
        patch = random_window(pixels, self.patch_size + 2 * self.margin, random)
        patch = np.ascontiguousarray(
            turned(patch, int(random.integers(TURNS))) if self.turns else patch
        )
        level = draw_level(self.noise, random)
        centre, channels = slice(self.margin, -self.margin or None), patch.shape[2] // 3
        return {
            "clean": patch[centre, centre, channels : 2 * channels],
            "noisy": add_noise(patch, level, random, storage_of(self.noise)),
        }


def triplet_set(patches: TripletPatches, *, per_triplet: int) -> KeyedSet[TripletPatches]:
    """Patches as batches: `clean`, uint8 [N, channels, patch_size, patch_size], and `noisy`,
    [N, 3 * channels, side, side] with the frames stacked along the channels, where side
    is patch_size + 2 * margin; uint8 or float32 as in `patch_set`.

    Args:
        patches: The patches to batch.
        per_triplet: Patches of each triplet in an epoch.
    """
    channels = 3 if patches.frames.channels == "colour" else 1
    side = patches.patch_size + 2 * patches.margin
    return KeyedSet(
        kind=patches,
        collate=denoising_collate(13 * channels * side**2),
        training=True,
        per_item=per_triplet,
        what="triplets of frames",
        todo="Check the path of the data.",
    )


class NoisyTriplets:
    """Every frame with its neighbours at every noise level, like `NoisyPictures`, except that
    `noisy` has three frames in its channels.

    A frame has the same noise in each of the three triplets that it belongs to.

    Args:
        pictures: The frames and their noise.
        triplets: The frames that belong together.
    """

    def __init__(self, pictures: NoisyPictures, triplets: Sequence[Triplet]) -> None:
        self.pictures = pictures
        self.triplets = tuple(triplets)

    def __len__(self) -> int:
        return len(self.triplets) * len(self.pictures.levels)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the frames and of their grouping; see `Fingerprinted`."""
        return triplets_fingerprint(self.pictures.pictures, self.triplets)

    def open(self, item: int, _key: SampleKey) -> list[Pixels]:
        """Read the three clean frames of a sample; see `SampleKind.open`."""
        return read_frames(self.pictures.pictures, self.triplets[item % len(self.triplets)])

    def map(self, frames: list[Pixels], item: int, _key: SampleKey) -> Arrays:
        """Return the middle frame, and all three with noise; see `SampleKind.map`."""
        level, index = divmod(item, len(self.triplets))
        noisy = [
            self.pictures.noisy(pixels, frame, level)
            for pixels, frame in zip(frames, self.triplets[index], strict=True)
        ]
        return whole_sample(frames[1], np.concatenate(noisy, axis=2), level)


def triplets_fingerprint(frames: CleanPictures, triplets: Sequence[Triplet]) -> str:
    """Return a fingerprint of frames and of their grouping."""
    return fingerprint(frames.pictures.fingerprint.encode(), np.array(triplets).tobytes())


def read_frames(frames: CleanPictures, triplet: Triplet) -> list[Pixels]:
    """Read the three frames of a triplet, each [height, width, channels].

    Raises:
        CorruptRecord: A frame cannot be read, or the frames differ in size.
    """
    pixels = [frames.read(index) for index in triplet]
    if len({frame.shape for frame in pixels}) > 1:
        sizes = ", ".join(f"{frame.shape[1]} x {frame.shape[0]}" for frame in pixels)
        names = [frames.pictures.path(index) for index in triplet]
        reason = f"the frames {', '.join(names)} differ in size: {sizes}"
        raise CorruptRecord(frames.pictures.read(triplet.middle).origin, reason)
    return pixels


def clips_of(pictures: Pictures) -> list[range]:
    """Return the positions of the frames of each clip, that is, of the images in each folder."""
    clips: list[range] = []
    indices = range(len(pictures))
    for _, frames in groupby(indices, lambda index: pictures.path(index).rpartition("/")[0]):
        positions = list(frames)
        clips.append(range(positions[0], positions[-1] + 1))
    return clips


def inner_triplets(clip: range) -> list[Triplet]:
    """Return the triplets of a clip whose middle frame has both neighbours."""
    return [Triplet(middle - 1, middle, middle + 1) for middle in clip[1:-1]]


def all_triplets(clip: range) -> list[Triplet]:
    """Return a triplet for each frame of a clip; at both ends, the frame itself is repeated."""
    return [Triplet(max(middle - 1, clip[0]), middle, min(middle + 1, clip[-1])) for middle in clip]


def open_triplets(
    data: ClipData, *, seed: int, notice: Callable[[str], None] = lambda _: None
) -> tuple[KeyedSet[TripletPatches], KeyedSet[NoisyTriplets] | None]:
    """Open patches of triplets for training and whole triplets for evaluation.

    Args:
        data: The settings.
        seed: The run's seed.
        notice: Called with notices for the user, such as which files were skipped.

    Returns:
        Both sets; the second is None if `eval_path` is `none`.

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
            f"no three of {counted(len(pictures), 'frame')} belong to the same clip",
            where=data.path,
            todo="Specify a folder of clips, each with at least three frames in addition to the "
            f"{data.holdout_frames} of data.holdout_frames.",
        )
    channels = cast("Channels", data.channels)
    frames = CleanPictures(pictures, channels, cache_bytes=data.cache_mib * 2**20)
    patches = TripletPatches(
        frames=frames,
        triplets=tuple(triplets),
        noise=data.noise,
        patch_size=data.patch_size,
        margin=data.margin,
        turns=data.turns,
        seed=seed,
    )
    train = triplet_set(patches, per_triplet=data.patches_per_image)
    if data.eval_path == "none":
        return train, None
    noisy = with_evaluation_noise(data, eval_pictures)
    eval_triplets = [triplet for clip in eval_clips for triplet in all_triplets(clip)]
    return train, whole_pictures_set(NoisyTriplets(noisy, eval_triplets))


def _are_same(first: Pictures, second: Pictures) -> bool:
    try:
        return len(first) == len(second) and first.read(0).origin == second.read(0).origin
    except CorruptRecord:
        return first.path(0) == second.path(0)
