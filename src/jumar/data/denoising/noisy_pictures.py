"""Whole images with reproducible noise, for evaluating a denoiser.

The noise of an image does not depend on the run's seed, so scores of different runs are comparable.
The seeding determines with which published scores they are comparable:

- `index`: from the position of the image and of the noise level; for any kind of noise.
- `file_hash`: from the SHA-256 of the file's name, as in NLRN's evaluation, so that an image has
  the same noise whatever folder it is in. Gaussian only.
- `sequence`: one generator with seed 0 for all images in order, restarted for each level. Gaussian
  only. DnCNN's 30.45 dB on Set12, which the tests replay, was measured this way.

The last two draw from NumPy's legacy generator, whose output never changes.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from jumar.data.denoising.clean_pictures import CleanPictures, Pixels
from jumar.data.denoising.noise import Floats, Kind, Level, Storage, add_noise, stored
from jumar.data.loading.collate import Stacked
from jumar.data.loading.keyed_set import KeyedSet, SampleKind
from jumar.data.samples import Arrays, Batch, CorruptRecord, SampleKey
from jumar.ground.errors import UserError

Seeding = Literal["index", "file_hash", "sequence"]
Kinds = TypeVar("Kinds", bound=SampleKind[Any])

_EVALUATION_NOISE = 3
"""First entropy word; `jumar.data.loading.sampler` uses 1 and 2 for order and augmentation."""
_CAMERA_DIGITAL_GAIN = 2.0


class NoisyPictures:
    """Every image at every noise level: sample `l * pictures + p` is image p at level l.

    Args:
        pictures: The decoded images, at one scale.
        kind: The kind of noise.
        levels: Strengths; their meaning depends on the kind (`jumar.data.denoising.noise`).
        storage: Form of the noisy image.
        seeding: See the module's docstring.

    Raises:
        UserError: There is no level, or a level or the seeding does not match the kind.
    """

    def __init__(
        self,
        pictures: CleanPictures,
        *,
        kind: Kind,
        levels: Sequence[float],
        storage: Storage,
        seeding: Seeding,
    ) -> None:
        if not levels:
            raise UserError("needs at least one noise level", where="data.eval_levels")
        if kind == "poisson" and min(levels) < 1:
            raise UserError(
                f"{min(levels):g} photons per white pixel are too few for an image",
                where="data.eval_levels",
                todo="Specify levels of 1 photon or more.",
            )
        if seeding != "index" and kind != "gaussian":
            raise UserError(
                f"noise seeded by '{seeding}' must be gaussian, not {kind}",
                where="data.eval_seeding",
                todo="Set data.eval_seeding=index.",
            )
        self.pictures = pictures
        self.kind: Kind = kind
        self.levels = tuple(levels)
        self.storage: Storage = storage
        self.seeding: Seeding = seeding
        self._states: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self.pictures) * len(self.levels)

    @property
    def fingerprint(self) -> str:
        """The images' fingerprint; see `Fingerprinted`."""
        return self.pictures.pictures.fingerprint

    def open(self, item: int, _key: SampleKey) -> Pixels:
        """Read the clean image of a sample; see `SampleKind.open`."""
        return self.pictures.read(item % len(self.pictures))

    def map(self, clean: Pixels, item: int, _key: SampleKey) -> Arrays:
        """Return the image without and with noise; see `SampleKind.map`."""
        level, index = divmod(item, len(self.pictures))
        return whole_sample(clean, self.noisy(clean, index, level), level)

    def noisy(self, clean: Pixels, index: int, level_index: int) -> Pixels | Floats:
        """Return an image with its fixed noise.

        Args:
            clean: Its pixels.
            index: The position of the image or frame.
            level_index: The position of the noise level.
        """
        level = self.levels[level_index]
        if self.seeding == "index":
            random = np.random.default_rng((_EVALUATION_NOISE, index, level_index))
            gain = _CAMERA_DIGITAL_GAIN if self.kind == "camera" else 1.0
            return add_noise(clean, Level(self.kind, level, gain), random, self.storage)
        if self.seeding == "file_hash":
            legacy = np.random.RandomState(name_seed(self.pictures.pictures.path(index)))
        else:
            legacy = self._state_before(index)
        values = legacy.normal(0.0, level, clean.shape) + clean
        return stored(values.astype(np.float32), self.storage)

    def _state_before(self, index: int) -> np.random.RandomState:
        """Return the generator shared by all images, advanced to this one.

        Its state depends on the sizes of the earlier images, which are read once; nothing is drawn
        for an image that cannot be read.
        """
        random = np.random.RandomState(0)
        if self._states:
            random.set_state(self._states[-1])
        while len(self._states) <= index:
            previous = len(self._states) - 1
            if previous >= 0:
                random.normal(size=self._size(previous))
            self._states.append(random.get_state(legacy=False))
        random.set_state(self._states[index])
        return random

    def _size(self, index: int) -> int:
        try:
            return self.pictures.read(index).size
        except CorruptRecord:
            return 0


def whole_sample(clean: Pixels, noisy: NDArray[Any], level_index: int) -> Arrays:
    """Return an evaluation sample: the images, and the position of the noise level."""
    return {"clean": clean, "noisy": noisy, "level": np.asarray(level_index, dtype=np.int64)}


def whole_pictures_set(kind: Kinds) -> KeyedSet[Kinds]:
    """Whole images as batches: `clean`, uint8 [N, channels, height, width], `noisy` as in
    `patch_set`, and `level`, int64 [N], the position of the noise level.
    """
    return KeyedSet(kind=kind, collate=_collate_whole, training=False)


def _collate_whole(samples: Iterator[Arrays], _count: int) -> Batch:
    collected = list(samples)
    sizes = {sample["clean"].shape for sample in collected}
    if len(sizes) > 1:
        size_names = ", ".join(sorted(f"{size[1]} x {size[0]}" for size in sizes))
        raise UserError(
            f"images of different sizes do not fit into one batch: {size_names}",
            where="data.eval_batch_size",
            todo="Set data.eval_batch_size=1.",
        )
    return Stacked(what="images", fields="data.eval_batch_size", pictures=("clean", "noisy"))(
        iter(collected), len(collected)
    )


def name_seed(path: str) -> Any:
    """Return a file's seed in NLRN's evaluation: the SHA-256 of its name, as eight integers.

    Args:
        path: The path, with `/`; only the part after the last one matters.
    """
    digest = hashlib.sha256(path.rpartition("/")[2].encode("utf-8", "surrogateescape")).digest()
    return np.frombuffer(digest, dtype="<u4")
