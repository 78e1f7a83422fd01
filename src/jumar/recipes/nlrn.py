"""NLRN: denoising of grey images by a recurrent network with non-local operations.

Paper: D. Liu et al., "Non-Local Recurrent Network for Image Restoration",
https://arxiv.org/abs/1806.02919. Original: Ding-Liu/NLRN in TensorFlow 1.15; NLRN_ID1100 of
Ascend's ModelZoo is the same network.

Data: the 400 images of BSDS500's train and test parts; Set12 or BSD68 to score on. Without
`data.path`, the handwritten digits that come with scikit-learn.
Expected on Set12 at sigma 25: 30.80 dB (the paper, whose network also passes correlations from
state to state, unlike the published code and this recipe).

Choices where the sources disagree:

- 500,000 steps as in the code; ID1100's run has 30,000. The learning rate halves after the same
  fractions of the run (20, 40, 60, 80 and 90 %), also if a run is shorter.
- The loss covers the central 5x5 pixels of a patch, as in the code; `loss.center=0` uses all.
- Whole images are scored as in the original's evaluation script: patches of 43 px every 7 px,
  averaged; noise seeded by the file name; PSNR of rounded levels. During training, the original
  scores one patch in the middle of each image.
- The softmax stays in fp32 through the op list `nlrn`, as in the Ascend contest entry, which has no
  loss scale.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from torch import nn

from jumar.data.denoising.denoise_sets import DenoisingData
from jumar.data.denoising.noise import NoiseSettings
from jumar.ground.errors import UserError
from jumar.models.nlrn import NLRN, tf_names
from jumar.models.tf_layout import TfNames
from jumar.models.tiling import in_patches
from jumar.precision.settings import PrecisionSettings
from jumar.recipes.denoising import (
    DenoisingNetwork,
    DenoisingRecipe,
    DenoisingScore,
)
from jumar.recipes.registry import register
from jumar.settings import setting
from jumar.tasks.denoising import CentralSquaredError, Denoiser
from jumar.training.optimizers import Adam
from jumar.training.schedules import Cosine, Piecewise
from jumar.training.settings import CheckpointSettings, TrainingSettings


@dataclass(frozen=True, kw_only=True)
class NLRNModel(DenoisingNetwork):
    """The network of the original, and how it processes whole images."""

    steps: int = setting(12, "Recurrences with shared weights.", minimum=1)
    filters: int = setting(128, "Channels of the states.", minimum=1)
    embedded: int = setting(64, "Length of the compared vectors.", minimum=1)
    recompute: bool = setting(
        True,
        "Recompute each recurrence in the backward pass: needs the memory of one instead of all, "
        "takes about a third longer, and computes the same values.",
    )
    patch: int = setting(43, "Side of the patches in evaluation.", unit="px", minimum=1)
    stride: int = setting(
        7, "Distance of neighbouring patches in evaluation; larger is faster.", unit="px", minimum=1
    )
    patches: int = setting(16, "Patches processed at once in evaluation.", minimum=1)

    def check(self) -> None:
        """Reject strides that leave gaps between patches."""
        if self.stride > self.patch:
            raise UserError(
                f"patches of {self.patch} px every {self.stride} px leave gaps between them",
                where="model.stride",
                todo=f"Allowed: 1 to {self.patch}.",
            )

    def create(self, *, channels: int) -> nn.Module:
        """Build the network: noisy grey images in, clean ones out."""
        if channels != 1:
            raise ValueError("NLRN supports only grey images; set data.channels=grey")
        return NLRN(
            steps=self.steps,
            filters=self.filters,
            embedded=self.embedded,
            recompute=self.recompute,
        )

    def denoiser(self, network: nn.Module) -> Denoiser:
        """Return a function that denoises in overlapping patches and averages the results."""
        return partial(
            in_patches, network, patch=self.patch, stride=self.stride, batch=self.patches
        )

    def tf_names(self, network: nn.Module) -> TfNames:
        """Return the names in the original."""
        return tf_names(cast("NLRN", network))


@register("nlrn")
def nlrn() -> DenoisingRecipe:
    """NLRN as published: 12 steps of 128, patches of 43 px, sigma 25, 500,000 steps of 16.

    Run: jumar train nlrn --set data.path=BSDS500 --set data.eval_path=SET12
    """
    return DenoisingRecipe(
        model=NLRNModel(),
        data=DenoisingData(
            channels="grey",
            patch_size=43,
            patches_per_image=1,
            batch_size=16,
            eval_levels=(25.0,),
            eval_seeding="file_hash",
            noise=NoiseSettings(kind="gaussian", sigma=(25.0,), storage="float"),
        ),
        loss=CentralSquaredError(center=5),
        score=DenoisingScore(clip=True, rounding="nearest"),
        optimizer=Adam(learning_rate=1e-3),
        schedule=Piecewise(
            boundaries=("20%", "40%", "60%", "80%", "90%"),
            values=(1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125),
        ),
        training=TrainingSettings(
            duration="500000it",
            log_every="100it",
            evaluate_every="20000it",
            clip="norm",
            clip_limit=2.5,
        ),
        checkpoints=CheckpointSettings(every="20000it", keep=5),
        precision=PrecisionSettings(mode="allow_mix_precision", modify_mixlist="nlrn"),
    )


@register("nlrn-small")
def nlrn_small() -> DenoisingRecipe:
    """NLRN for a CPU: 4 steps of 64, patches of 32 px, the loss on whole patches.

    A 32 px patch has a third of the similarities of a 43 px patch, and a loss over all its pixels
    uses as many pixels as forty patches with a loss over the central 25. Whole images are scored
    with patches every 16 px. Nothing is recomputed in the backward pass.

    Run: jumar train nlrn-small --set data.path=BSDS500 --set data.eval_path=SET12
    """
    recipe = nlrn()
    return replace(
        recipe,
        model=NLRNModel(
            steps=4, filters=64, embedded=32, recompute=False, patch=32, stride=16, patches=32
        ),
        data=replace(recipe.data, patch_size=32, patches_per_image=64),
        loss=CentralSquaredError(center=0),
        schedule=Cosine(),
        training=replace(recipe.training, duration="4000it", log_every="50it", evaluate_every=""),
        checkpoints=CheckpointSettings(every="25%", keep=2),
    )
