"""The training and the evaluation set of a denoiser, from its settings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from jumar.data.denoising.clean_pictures import Channels, CleanPictures
from jumar.data.denoising.noise import Kind, NoiseSettings, storage_of
from jumar.data.denoising.noisy_pictures import NoisyPictures, Seeding, whole_pictures_set
from jumar.data.denoising.patch_set import Patches, patch_set
from jumar.data.images.picture_tree import Pictures, open_pictures
from jumar.data.images.sources import check_pair
from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.loading.loader_settings import LoaderSettings, eval_path_setting
from jumar.ground.errors import UserError
from jumar.settings import setting


@dataclass(frozen=True, kw_only=True)
class DenoisingData(LoaderSettings):
    """Where to find the clean images, and how to make noisy batches of them."""

    path: str = setting(
        "digits",
        "Clean images: a folder or zip with images at any depth, TFRecord shards, or a "
        "registered source.",
    )
    eval_path: str = eval_path_setting()
    channels: str = setting(
        "colour", "Use images in colour or in grey.", choices=("colour", "grey")
    )
    patch_size: int = setting(50, "Side of a training patch.", unit="px", minimum=1)
    patches_per_image: int = setting(64, "Patches per image and epoch.", minimum=1)
    scales: tuple[float, ...] = setting(
        (1.0,), "Scales of the images that patches are cut from.", minimum=0.01, maximum=1
    )
    turns: bool = setting(True, "Rotate and flip patches in all eight ways.")
    eval_batch_size: int = setting(
        1,
        "Evaluation batch size per rank; above 1 only if all images have the same size.",
        unit="images",
        minimum=1,
        changeable=True,
    )
    eval_levels: tuple[float, ...] = setting(
        (25.0,),
        "Noise levels to evaluate at: the standard deviation of gaussian noise (also where "
        "noise.kind is mixed), the mean photons of a white pixel of poisson noise, the "
        "analogue gain of camera noise.",
        minimum=0,
    )
    eval_seeding: str = setting(
        "index",
        "How the noise in evaluation is seeded: by an image's position, by its file name as for "
        "NLRN's scores, or as one sequence for all images.",
        choices=("index", "file_hash", "sequence"),
    )
    cache_mib: int = setting(
        1024,
        "Cache of decoded images in memory, shared by all workers of a rank.",
        unit="MiB",
        minimum=0,
    )
    noise: NoiseSettings = setting(NoiseSettings(), "The noise of training samples.")

    def check(self) -> None:
        """Reject empty lists."""
        for name in ("scales", "eval_levels"):
            if not getattr(self, name):
                raise UserError("needs at least one number", where=f"data.{name}")


def open_patches(
    data: DenoisingData, *, seed: int, notice: Callable[[str], None] = lambda _: None
) -> tuple[KeyedSet[Patches], KeyedSet[NoisyPictures] | None]:
    """Open patches for training and whole images for evaluation.

    Args:
        data: The settings.
        seed: The run's seed.
        notice: Called with notices for the user, such as which files were skipped.

    Returns:
        Both sets; the second is None if `eval_path` is `none`.

    Raises:
        UserError: There are no images at the path, or both sets are the same.
    """
    source = open_pictures(data.path, "train", notice=notice)
    patches = Patches(
        pictures=CleanPictures(
            source, _channels(data), scales=data.scales, cache_bytes=data.cache_mib * 2**20
        ),
        noise=data.noise,
        patch_size=data.patch_size,
        turns=data.turns,
        seed=seed,
    )
    train = patch_set(patches, per_picture=data.patches_per_image)
    if data.eval_path == "none":
        return train, None
    evaluation = open_pictures(data.eval_path or data.path, "eval", notice=notice)
    check_pair(source, evaluation)
    return train, whole_pictures_set(with_evaluation_noise(data, evaluation))


def with_evaluation_noise(data: DenoisingData, pictures: Pictures) -> NoisyPictures:
    """Return whole images with the evaluation noise of the settings."""
    return NoisyPictures(
        CleanPictures(pictures, _channels(data)),
        kind=evaluation_kind(data),
        levels=data.eval_levels,
        storage=storage_of(data.noise),
        seeding=cast("Seeding", data.eval_seeding),
    )


def evaluation_kind(data: DenoisingData) -> Kind:
    """Return the kind of noise in evaluation: as in training, but gaussian for a mixture."""
    return "gaussian" if data.noise.kind == "mixed" else cast("Kind", data.noise.kind)


def level_names(data: DenoisingData) -> Sequence[str]:
    """Return the names of the noise levels in tables and metrics, such as `sigma 25`."""
    quantity = {"gaussian": "sigma", "poisson": "photons", "camera": "gain"}[evaluation_kind(data)]
    return [f"{quantity} {level:g}" for level in data.eval_levels]


def _channels(data: DenoisingData) -> Channels:
    return cast("Channels", data.channels)
