"""The networks at the sizes at which they are measured, with data written on the spot."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from on_accelerator.measuring import Context
from on_accelerator.written_data import clips, instances, pictures, words_in_pictures

SMALL_BERT = (
    "model.num_layers=1",
    "model.hidden_size=64",
    "model.num_heads=2",
    "model.intermediate_size=128",
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A recipe at one size.

    Attributes:
        name: Unique among all.
        recipe: The recipe's name.
        batch: Samples a step.
        data: Writes its data.
        whole: Further settings.
        small: Those of a small measurement, which come last.
        small_batch: Samples a step of it.
        seconds: Estimate for a measurement in three modes.
    """

    name: str
    recipe: str
    batch: int
    data: Callable[[Context], Path] = pictures
    whole: Sequence[str] = ()
    small: Sequence[str] = ()
    small_batch: int = 2
    seconds: float = 40

    def settings(self, context: Context) -> list[str]:
        """All but the precision mode."""
        data = self.data(context)
        pretrained = (data / "vocab.txt").is_file()
        return [
            f"data.path={data / '*.tfrecord' if pretrained else data}",
            *([f"model.vocabulary={data / 'vocab.txt'}"] if pretrained else []),
            f"data.batch_size={self.samples(context)}",
            *self.whole,
            *(self.small if context.small else ()),
        ]

    def title(self, context: Context) -> str:
        """Its name in the tables."""
        return context.pick(self.name, f"{self.name}, made small")

    def samples(self, context: Context) -> int:
        """Samples a step."""
        return context.pick(self.batch, self.small_batch)


def _instances(length: int) -> Callable[[Context], Path]:
    return lambda context: instances(context, length)


_IMAGES = ("data.label_offset=0", "model.num_classes=1000")
CLASSIFIERS = (
    Case(
        name="ResNeXt-50, 224 px",
        recipe="resnext50",
        batch=256,
        whole=_IMAGES,
        small=("data.image_size=32",),
    ),
    Case(
        name="AlexNet, 224 px",
        recipe="alexnet",
        batch=256,
        whole=_IMAGES,
        small=("data.image_size=64",),
    ),
)
PRETRAINING = (
    Case(
        name="BERT-base, 128",
        recipe="bert-base",
        batch=128,
        data=_instances(128),
        small=SMALL_BERT,
    ),
    Case(
        name="BERT-base, 512",
        recipe="bert-base",
        batch=32,
        data=_instances(512),
        small=SMALL_BERT,
    ),
    Case(
        name="NEZHA-base, 128",
        recipe="nezha-base",
        batch=128,
        data=_instances(128),
        small=SMALL_BERT,
    ),
    Case(
        name="NEZHA-base, 512",
        recipe="nezha-base",
        batch=32,
        data=_instances(512),
        small=SMALL_BERT,
    ),
)
_SMALL_GAN = ("model.width=8",)
OTHERS = (
    Case(name="BigGAN-128, width 96, 32", recipe="biggan128", batch=32, small=_SMALL_GAN),
    Case(name="BigGAN-128, width 96, 64", recipe="biggan128", batch=64, small=_SMALL_GAN),
    Case(
        name="ViDeNN spatial, 50 px",
        recipe="videnn-spatial",
        batch=128,
        small=("model.width=8", "model.depth=3", "data.patch_size=16"),
    ),
    Case(
        name="NLRN, 43 px",
        recipe="nlrn",
        batch=16,
        small=("model.filters=8", "model.embedded=4", "model.steps=2", "data.patch_size=16"),
    ),
    Case(name="DS-CNN S", recipe="ds-cnn-s", batch=100, data=clips, small_batch=4),
    Case(
        name="VQ-VAE, 128 px",
        recipe="vqvae",
        batch=64,
        small=("data.image_size=32", "model.width=8"),
    ),
    Case(
        name="PSENet, 640 px",
        recipe="psenet",
        batch=8,
        data=words_in_pictures,
        whole=("data.image_size=640",),
        small=("data.image_size=64", "model.width=16", "model.backbone=resnet18"),
    ),
    Case(
        name="EAST, 512 px",
        recipe="east",
        batch=14,
        data=words_in_pictures,
        small=("data.image_size=64", "model.backbone=resnet18"),
    ),
)
QUICKEST = OTHERS[4]
"""For small measurements of what any network shows."""
