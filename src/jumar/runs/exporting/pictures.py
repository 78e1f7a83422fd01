"""Networks with images as input or output: classifiers, denoisers, text detectors, VQ-VAEs."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

import torch
from torch import Tensor, nn

from jumar.models.resnet_v1 import STRIDE
from jumar.models.vqvae import VQVAE
from jumar.recipes.classification import ClassificationRecipe
from jumar.recipes.denoising import DenoisingRecipe
from jumar.recipes.east import EastRecipe
from jumar.recipes.psenet import PSENetRecipe
from jumar.recipes.text_detection import DetectionRecipe
from jumar.recipes.trained import Trained
from jumar.recipes.videnn import TemporalRecipe
from jumar.recipes.vqvae import VQVAERecipe
from jumar.runs.exporting.network import Axis, Exportable, Lengths, Port
from jumar.settings import to_json
from jumar.tasks.task import Task

BATCH = Axis(usual=2, other=3)
_DETECTOR_TOLERANCE = 1e-3
"""For upsampling with aligned corners, where rounding moves the sampling points."""


class _InFloat32(nn.Module):
    """A network with images as input, and its output converted to float32."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, image: Tensor) -> Tensor:
        return self.network(image).float()


def classifier(trained: Trained) -> Exportable:
    """Return the network from images to logits."""
    recipe = cast(ClassificationRecipe, trained.recipe)
    side, settings = recipe.data.image_size, recipe.data.preprocessing
    names = list(trained.outputs)
    classes = recipe.model.num_classes
    return Exportable(
        network=_InFloat32(trained.model),
        inputs=[_image(("batch", 3, side, side), "RGB, normalised as in `preprocessing`")],
        outputs=[
            Port(
                name="logits",
                shape=("batch", classes),
                meaning="softmax over the last axis gives the probabilities of the labels",
            )
        ],
        axes={"batch": BATCH},
        made_up=lambda lengths, random: (
            torch.randn(lengths["batch"], 3, side, side, generator=random),
        ),
        facts={
            "preprocessing": {
                "image_size": side,
                "channels": "RGB",
                "layout": "NCHW",
                "eval_view": settings.eval_view,
                "eval_fraction": settings.eval_fraction,
                "mean": list(settings.mean),
                "std": list(settings.std),
                "formula": "(level of 0 to 255 - mean) / std",
            },
            "labels": names or [f"class {number}" for number in range(classes)],
            "postprocessing": "softmax",
        },
        entrance=_model,
    )


def denoiser(trained: Trained) -> Exportable:
    """Return the network from noisy images to clean ones; from three frames to the middle one."""
    recipe = cast(DenoisingRecipe, trained.recipe)
    colours = 3 if recipe.data.channels == "colour" else 1
    frames = 3 if isinstance(recipe, TemporalRecipe) else 1
    settings = to_json(recipe.model)
    tiling_names = ("tile", "patch", "stride")
    meaning = f"{'RGB' if colours == 3 else 'grey'}, 0 to 1, noisy"
    if frames == 3:
        meaning += "; three consecutive frames, of which the middle one is denoised"
    shape = ("batch", colours * frames, "height", "width")
    return Exportable(
        network=_InFloat32(trained.model),
        inputs=[_image(shape, meaning)],
        outputs=[
            Port(
                name="clean",
                shape=("batch", colours, "height", "width"),
                meaning="the image without noise; clip it to 0 to 1",
            )
        ],
        axes={
            "batch": BATCH,
            "height": Axis(usual=40, other=33),
            "width": Axis(usual=32, other=50),
        },
        made_up=_pixels(colours * frames, 1.0),
        facts={
            "preprocessing": {"layout": "NCHW", "formula": "level of 0 to 255 / 255"},
            "postprocessing": {
                "clip": [0, 1],
                "whole_pictures": {
                    name: settings[name] for name in tiling_names if name in settings
                },
            },
        },
        entrance=_model,
    )


def detector(trained: Trained) -> Exportable:
    """Return the network from images to maps; finding words in them is left to the user."""
    recipe = cast(DetectionRecipe, trained.recipe)
    data = recipe.data
    maps = {"shape": ("height/4", "width/4")}
    if isinstance(recipe, EastRecipe):
        outputs = [
            Port(name="score", shape=("batch", 1, *maps["shape"]), meaning="probability of text"),
            Port(
                name="geometry",
                shape=("batch", 5, *maps["shape"]),
                meaning="distances in pixels of the input to the top, right, bottom and left side "
                "of the box, and its angle",
            ),
        ]
    else:
        outputs = [
            Port(
                name="kernels",
                shape=("batch", _num_kernels(trained.model), *maps["shape"]),
                meaning="probabilities of the kernels, the smallest first, the whole text last",
            )
        ]
    reading = asdict(cast("EastRecipe | PSENetRecipe", recipe).reading)
    return Exportable(
        network=trained.model,
        inputs=[_image(("batch", 3, "height", "width"), "RGB, levels of 0 to 255")],
        outputs=outputs,
        axes={
            "batch": BATCH,
            "height": _detector_axis(usual=96, other=64),
            "width": _detector_axis(usual=128, other=160),
        },
        made_up=_pixels(3, 255.0),
        facts={
            "preprocessing": {
                "layout": "NCHW",
                "mean": "subtracted within the network",
                "longest_side": data.eval_longest,
                "scale": data.eval_scale,
                "sides": f"multiples of {STRIDE}, rounded {data.eval_rounding}",
            },
            "postprocessing": {"map_stride": 4, **reading},
        },
        entrance=_model,
        tolerance=_DETECTOR_TOLERANCE,
    )


def _detector_axis(*, usual: int, other: int) -> Axis:
    limits = {"min_length": STRIDE, "max_length": 32 * STRIDE * 8, "multiple": STRIDE}
    return Axis(usual=usual, other=other, **limits)


class _Half(nn.Module):
    def __init__(self, vqvae: VQVAE) -> None:
        super().__init__()
        self.vqvae = vqvae


class _Encoder(_Half):
    def forward(self, image: Tensor) -> Tensor:
        return self.vqvae.nearest(self.vqvae.encode(image))


class _Decoder(_Half):
    def forward(self, codes: Tensor) -> Tensor:
        return self.vqvae.decode(self.vqvae.vectors(codes))


def encoder(trained: Trained) -> Exportable:
    """Return a VQ-VAE's encoder, from images to codes."""
    recipe, vqvae = cast(VQVAERecipe, trained.recipe), cast(VQVAE, trained.model)
    side = recipe.data.image_size
    cells = side // vqvae.shrinking
    colours = vqvae.channels
    return Exportable(
        network=_Encoder(vqvae),
        part="encoder",
        inputs=[
            _image(("batch", colours, side, side), f"{'RGB' if colours == 3 else 'grey'}, 0 to 1")
        ],
        outputs=[
            Port(
                name="codes",
                dtype=torch.int64,
                shape=("batch", cells, cells),
                meaning="indices of the nearest vectors of the codebook",
            )
        ],
        axes={"batch": BATCH},
        made_up=lambda lengths, random: (
            torch.rand(lengths["batch"], colours, side, side, generator=random),
        ),
        facts={
            "preprocessing": {
                "image_size": side,
                "layout": "NCHW",
                "formula": "level of 0 to 255 / 255",
            },
            "codes": len(vqvae.codebook),
        },
        prepared=_without_decoder,
        entrance=_model,
    )


def decoder(trained: Trained) -> Exportable:
    """Return a VQ-VAE's decoder, from codes to images."""
    recipe, vqvae = cast(VQVAERecipe, trained.recipe), cast(VQVAE, trained.model)
    cells, codes = recipe.data.image_size // vqvae.shrinking, len(vqvae.codebook)
    open_side = Axis(usual=cells, other=cells + 1)

    def made_up(lengths: Lengths, random: torch.Generator) -> tuple[Tensor, ...]:
        shape = (lengths["batch"], lengths["height"], lengths["width"])
        return (torch.randint(0, codes, shape, generator=random),)

    factor = vqvae.shrinking
    return Exportable(
        network=_Decoder(vqvae),
        part="decoder",
        inputs=[
            Port(
                name="codes",
                dtype=torch.int64,
                shape=("batch", "height", "width"),
                meaning=f"indices of vectors of the codebook, 0 to {codes - 1}",
            )
        ],
        outputs=[
            Port(
                name="image",
                shape=("batch", vqvae.channels, f"height*{factor}", f"width*{factor}"),
                meaning=f"{'RGB' if vqvae.channels == 3 else 'grey'}, 0 to 1",
            )
        ],
        axes={"batch": BATCH, "height": open_side, "width": open_side},
        made_up=made_up,
        drawn="random codes",
        prepared=_without_encoder,
        facts={"codes": codes, "postprocessing": "levels are 255 * image, rounded"},
    )


def _image(shape: tuple[int | str, ...], meaning: str) -> Port:
    return Port(name="image", shape=shape, meaning=meaning)


def _pixels(channels: int, highest: float) -> Any:
    """Return a function that makes random images with levels from 0 to `highest`."""

    def made_up(lengths: Mapping[str, int], random: torch.Generator) -> tuple[Tensor, ...]:
        shape = (lengths["batch"], channels, lengths["height"], lengths["width"])
        return (torch.rand(shape, generator=random) * highest,)

    return made_up


def _without_encoder(network: nn.Module) -> None:
    del cast(_Decoder, network).vqvae.encoder


def _without_decoder(network: nn.Module) -> None:
    del cast(_Encoder, network).vqvae.decoder


def _model(task: Task) -> nn.Module:
    return task.model


def _num_kernels(model: nn.Module) -> int:
    return cast(Any, model).head.conv.out_channels
