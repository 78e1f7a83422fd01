"""Adds noise of known strength to clean images, on the host.

There are several kinds of noise; the strength of each is one number, its level:

- `gaussian`: normally distributed, independently for every pixel and channel. The level is the
  standard deviation on the scale 0 to 255.
- `poisson`: photon counts. The level is the mean number of photons in a white pixel, so a lower
  level means more noise.
- `camera`: the sensor model of ViDeNN (M. Claus and J. van Gemert, arXiv 1904.10898). The level
  is the analogue gain A; the digital gain is D. For a brightness s of 0 to 1 the standard
  deviation is sqrt(A D s / 7480 + D^2 (A 1.25e-4 + 1.11e-4)^2): photon noise with a full well of
  7480 electrons, and the sensor's dark noise.
- `mixed`: either `gaussian` or `camera` for each sample, as described for the weights
  `ckpt_videnn` (`ckpt_videnn-g` was trained on `gaussian` alone). Neither the proportions nor the
  gains of that mixture are published; here the proportions are equal.

Differences from the original's `realistic_noise`, which its scripts do not call: there, the photon
term is divided by s instead of multiplied, so that black pixels get infinite noise; and each image
is stretched to the full range afterwards, so that clean and noisy images differ in contrast.

A noisy image is stored as

- `uint8`: clipped to 0..255 and truncated, like ViDeNN's training data (on average, this is half a
  level too dark, which its network learns to undo);
- `float`: float32 from 0 to 1, neither clipped nor rounded, like NLRN's and DnCNN's.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from jumar.ground.errors import UserError
from jumar.settings import setting

Kind = Literal["gaussian", "poisson", "camera"]
Storage = Literal["uint8", "float"]
Floats = NDArray[np.float32]

_FULL_WELL = 7480
_DARK_PER_GAIN, _DARK = 1.25e-4, 1.11e-4


class Level(NamedTuple):
    """The kind and strength of noise."""

    kind: Kind
    value: float
    digital_gain: float = 1.0


@dataclass(frozen=True, kw_only=True)
class NoiseSettings:
    """The noise of training samples; a range of one number means that number."""

    kind: str = setting(
        "gaussian",
        "Kind of noise; mixed is gaussian or camera, each for half of the samples.",
        choices=("gaussian", "poisson", "camera", "mixed"),
    )
    sigma: tuple[float, ...] = setting(
        (0.0, 50.0),
        "Standard deviation of gaussian noise: one number, or the lowest and the highest.",
        unit="levels of 255",
        minimum=0,
        only_with={"kind": ("gaussian", "mixed")},
    )
    photons: tuple[float, ...] = setting(
        (10.0, 1000.0),
        "Mean photons of a white pixel for poisson noise: one number, or lowest and highest.",
        minimum=1,
        maximum=1e6,
        only_with={"kind": ("poisson",)},
    )
    analog_gain: tuple[float, ...] = setting(
        (1.0, 64.0),
        "Analogue gain for camera noise: one number, or lowest and highest.",
        minimum=0,
        only_with={"kind": ("camera", "mixed")},
    )
    digital_gain: tuple[float, ...] = setting(
        (1.0, 4.0),
        "Digital gain for camera noise: one number, or lowest and highest.",
        minimum=0,
        only_with={"kind": ("camera", "mixed")},
    )
    storage: str = setting(
        "uint8",
        "uint8: clipped to 0..255 and truncated, as in ViDeNN; float: neither, as in NLRN.",
        choices=("uint8", "float"),
    )

    def check(self) -> None:
        """Reject values that are not a range."""
        for name in ("sigma", "photons", "analog_gain", "digital_gain"):
            values: tuple[float, ...] = getattr(self, name)
            if len(values) not in (1, 2) or values[0] > values[-1]:
                raise UserError(
                    f"'data.noise.{name}' needs one number, or a lower and an upper one, not "
                    f"{', '.join(map(str, values)) or 'none'}",
                    todo=f"For instance: data.noise.{name}=15 or data.noise.{name}=0,50",
                )


def draw_level(noise: NoiseSettings, random: np.random.Generator) -> Level:
    """Draw the noise of one sample, uniformly within the ranges of the settings.

    Args:
        noise: The settings.
        random: The sample's random generator.
    """
    kind = noise.kind
    if kind == "mixed":
        kind = "camera" if random.random() < 0.5 else "gaussian"
    if kind == "gaussian":
        return Level("gaussian", _draw_between(noise.sigma, random))
    if kind == "poisson":
        return Level("poisson", _draw_between(noise.photons, random))
    gain = _draw_between(noise.analog_gain, random)
    return Level("camera", gain, _draw_between(noise.digital_gain, random))


def add_noise(
    clean: NDArray[np.uint8], level: Level, random: np.random.Generator, storage: Storage
) -> NDArray[np.uint8] | Floats:
    """Return a noisy copy of an image.

    Args:
        clean: The image, with levels 0 to 255 and any shape.
        level: Kind and strength.
        random: The random generator for the noise; drawing a float32 takes about 15 ns.
        storage: `uint8`, clipped and truncated, or `float` from 0 to 1, neither.

    Returns:
        An image of the same shape, uint8 or float32.
    """
    if level.kind == "poisson":
        counts = random.poisson(clean * np.float64(level.value / 255))
        return stored(counts.astype(np.float32) * np.float32(255 / level.value), storage)
    values = random.standard_normal(clean.shape, dtype=np.float32)
    if level.kind == "gaussian":
        values *= np.float32(level.value)
    else:
        values *= _camera_deviations(level)[clean]
    values += clean
    return stored(values, storage)


def stored(values: Floats, storage: Storage) -> NDArray[np.uint8] | Floats:
    """Convert noisy values on the scale 0 to 255 to the form stored in a sample.

    Args:
        values: The values, which are overwritten.
        storage: See the module's docstring.
    """
    if storage == "uint8":
        np.clip(values, 0, 255, out=values)
        return values.astype(np.uint8)
    values *= np.float32(1 / 255)
    return values


def storage_of(noise: NoiseSettings) -> Storage:
    """Return the storage of the settings as a literal type, which its choices guarantee."""
    return cast("Storage", noise.storage)


def _camera_deviations(level: Level) -> Floats:
    """Return the standard deviation for each of the 256 levels, on the scale 0 to 255."""
    brightness = np.arange(256) / 255
    photons = level.value * level.digital_gain * brightness / _FULL_WELL
    dark = (level.digital_gain * (level.value * _DARK_PER_GAIN + _DARK)) ** 2
    return (255 * np.sqrt(photons + dark)).astype(np.float32)


def _draw_between(limits: tuple[float, ...], random: np.random.Generator) -> float:
    return limits[0] if len(limits) == 1 else float(random.uniform(limits[0], limits[1]))
