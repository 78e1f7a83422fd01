"""ViDeNN: blind denoising of images and video, trained in two stages.

Paper: M. Claus and J. van Gemert, "ViDeNN: Deep Blind Video Denoising",
https://arxiv.org/abs/1904.10898. Original: clausmichele/ViDeNN in TensorFlow 1.15; the spatial
network is also ViDeNN_ID1146 of Ascend's ModelZoo.

Data: photographs for `videnn-spatial` (the originals used 70 % of the 4,744 images of the Waterloo
Exploration Database), folders of frames for `videnn-temporal`; without `data.path`, the handwritten
digits that come with scikit-learn. Patches and noise are generated during training.
Expected: the Ascend contest reports 33.71 dB for the spatial network after 500 epochs with the
loss scale (goal: 33.66 dB). The images are not documented; the value fits CBSD68 at sigma 15.

Choices where the sources disagree:

- Batch size 32, as for ID1146 and the temporal network; upstream trains the spatial one with 64.
- The learning rate is constant, 0.001. Upstream creates a table that drops to a tenth from epoch 3
  on, but uses its first entry at every step.
- 480 patches per image and epoch: upstream's published steps (25,056 of 64 per epoch, from 3,320
  images). Each epoch draws new ones; see `jumar.data.denoising.patch_set` for other differences.
- PSNR is the mean over whole images of the output, clipped but not rounded. Upstream truncates
  to bytes during training, and neither clips nor rounds in `--phase test`.
- `model.bgr` is on: the original reads images with OpenCV, so its weights expect blue first.
  For a network trained from scratch, this makes no difference.
- The published `ckpt_awgn` (spatial) and `ckpt_videnn` (temporal) have a bias in the last
  convolution, which the published code lacks and ignores; `model.output_bias=true` includes it.
- The temporal network receives the spatial network's output in floats; upstream writes it to PNG
  files first. Training ends after ten epochs, before the learning rate would drop at epoch 30.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, TypeVar, cast

import torch
from torch import Tensor, nn

from jumar.data.denoising.denoise_sets import DenoisingData
from jumar.data.denoising.frame_triplets import ClipData, open_triplets
from jumar.ground.errors import UserError
from jumar.models.tf_layout import TfNames
from jumar.models.tiling import in_tiles
from jumar.models.videnn import SpatialCNN, Temp3CNN, ViDeNN, joint_tf_names, tf_names
from jumar.precision.loss_scale import ExponentialLossScale
from jumar.precision.settings import PrecisionSettings
from jumar.recipes.denoising import DenoisingNetwork, DenoisingRecipe
from jumar.recipes.registry import register
from jumar.recipes.stored import open_first_stage
from jumar.settings import setting
from jumar.tasks.denoising import Denoiser
from jumar.tasks.task import Task
from jumar.training.checkpoint import load_weights
from jumar.training.checkpoint_retention import find_checkpoint
from jumar.training.optimizers import Adam
from jumar.training.schedules import Constant, Piecewise
from jumar.training.settings import CheckpointSettings, TrainingSettings
from jumar.training.state import load_exactly

N = TypeVar("N", SpatialCNN, Temp3CNN)


@dataclass(frozen=True, kw_only=True)
class ViDeNNModel(DenoisingNetwork):
    """The settings that both networks have in common."""

    depth: int = setting(20, "Number of convolutions.", minimum=3)
    width: int = setting(64, "Hidden channels; twice as many after the first layer.", minimum=1)
    bgr: bool = setting(
        True, "Weights expect blue, green, red, like the original's; images are RGB."
    )
    output_bias: bool = setting(False, "A bias in the last convolution.")
    tile: int = setting(
        512,
        "Side of the tiles into which larger images are split; does not change the result.",
        unit="px",
        minimum=1,
    )

    def build(self, network: type[N], *, channels: int, output_bias: bool) -> N:
        """Build one of the networks."""
        return network(
            channels=channels,
            bgr=self.bgr and channels == 3,
            output_bias=output_bias,
            depth=self.depth,
            width=self.width,
        )

    def tiled(self, network: nn.Module, *, networks: int = 1) -> Denoiser:
        """Return a function that applies a network to images of any size in tiles.

        Args:
            network: The network, in evaluation mode.
            networks: Number of chained networks of this depth in it.
        """
        return partial(in_tiles, network, tile=self.tile, radius=networks * self.depth)


@dataclass(frozen=True, kw_only=True)
class SpatialModel(ViDeNNModel):
    """The network for single frames."""

    def create(self, *, channels: int) -> nn.Module:
        """Build the network: noisy images in, clean ones out."""
        return self.build(SpatialCNN, channels=channels, output_bias=self.output_bias)

    def denoiser(self, network: nn.Module) -> Denoiser:
        """Return a function that denoises in tiles."""
        return self.tiled(network)

    def tf_names(self, network: nn.Module) -> TfNames:
        """Return the names in the checkpoints of upstream and of ID1146."""
        return tf_names(cast("SpatialCNN", network))


@dataclass(frozen=True, kw_only=True)
class TemporalModel(ViDeNNModel):
    """Both networks, of which only the one for three frames is trained."""

    spatial_output_bias: bool = setting(
        False, "A bias in the last convolution of the spatial network."
    )

    def create(self, *, channels: int) -> nn.Module:
        """Build the network: three noisy frames in, the clean middle one out."""
        return self.create_both(channels=channels, margin=0)

    def create_both(self, *, channels: int, margin: int) -> ViDeNN:
        """Build both networks; see `ViDeNN` for the margin."""
        spatial = self.build(SpatialCNN, channels=channels, output_bias=self.spatial_output_bias)
        temporal = self.build(Temp3CNN, channels=channels, output_bias=self.output_bias)
        return ViDeNN(spatial, temporal, margin=margin)

    def denoiser(self, network: nn.Module) -> Denoiser:
        """Return a function that denoises triplets of whole frames in tiles."""
        return self.tiled(network, networks=2)

    def tf_names(self, network: nn.Module) -> TfNames:
        """Return the names in upstream's checkpoints with both networks."""
        videnn = cast("ViDeNN", network)
        return joint_tf_names(
            videnn.spatial, videnn.temporal, spatial_prefix="spatial.", temporal_prefix="temporal."
        )


@dataclass(frozen=True, kw_only=True)
class TemporalRecipe(DenoisingRecipe):
    """The second stage: the network for three frames, on the trained spatial network's output."""

    first_stage_field: ClassVar[str] = "spatial_run"

    model: TemporalModel = setting(TemporalModel(), "Both networks.")
    data: ClipData = setting(ClipData(), "The clips and their noise.")
    spatial_run: str = setting(
        "",
        "A finished run of the spatial network (its best checkpoint is used).",
        unit="path",
        changeable=True,
    )

    def build_task(self, notice: Callable[[str], None]) -> Task:
        """Open the clips, build both networks and load the spatial network's weights."""
        train, evaluation = open_triplets(self.data, seed=self.seed, notice=notice)
        network = self._both(margin=self.data.margin)
        notice(f"spatial network: {self._load_spatial(network.spatial)}")
        return self.task_of(network, train, evaluation, trained=network.temporal)

    def build_model(self) -> nn.Module:
        """Build both networks, as in a checkpoint of the second stage."""
        return self._both(margin=0)

    def denoise_frames(self, model: nn.Module, frames: Iterator[Tensor]) -> Iterator[Tensor]:
        """Denoise the frames of a clip, each with its neighbours, keeping three in memory.

        As in the original, the first frame replaces its missing predecessor, and the last frame its
        missing successor.
        """
        videnn = cast("ViDeNN", model)
        spatial, temporal = self.model.tiled(videnn.spatial), self.model.tiled(videnn.temporal)
        window: list[Tensor] = []
        for frame in frames:
            denoised = spatial(frame)
            window = [*window, denoised] if window else [denoised, denoised]
            if len(window) == 3:
                yield temporal(torch.cat(window, dim=1))
                del window[0]
        if window:
            yield temporal(torch.cat([*window, window[-1]], dim=1))

    def frames_before(self) -> int:
        """Return 1: each frame needs its predecessor."""
        return 1

    def _both(self, *, margin: int) -> ViDeNN:
        try:
            return self.model.create_both(
                channels=3 if self.data.channels == "colour" else 1, margin=margin
            )
        except ValueError as error:
            raise UserError(str(error), where="model") from None

    def _load_spatial(self, spatial: SpatialCNN) -> str:
        if not self.spatial_run:
            raise UserError(
                "the second stage needs the spatial network of a finished run",
                where="spatial_run",
                todo="Train one with 'jumar train videnn-spatial', then add --set spatial_run=RUN.",
            )
        name, recipe, run = open_first_stage(self.spatial_run, field="spatial_run")
        if not (isinstance(recipe, DenoisingRecipe) and isinstance(recipe.model, SpatialModel)):
            raise UserError(
                f"this is a run of '{name}', not of ViDeNN's spatial network",
                where=f"spatial_run={self.spatial_run}",
                todo="Use a run of videnn-spatial.",
            )
        if run is None:
            return "as stored in this run"
        has_score = run.headline() is not None
        checkpoint = find_checkpoint(
            run.checkpoints, "best" if has_score else "last", ("psnr", True) if has_score else None
        )
        path = checkpoint.model_file(ema=checkpoint.has_ema)
        todo = "Repeat that run's model.depth, model.width and data.channels with --set."
        load_exactly(spatial, load_weights(path), str(path), todo=todo)
        return str(path)


@register("videnn-spatial")
def videnn_spatial() -> DenoisingRecipe:
    """ViDeNN's network for single images: sigma 0 to 50, batch 32, Adam 0.001, 50 epochs.

    Without a loss scale; `videnn-spatial-loss-scale` uses the contest's. To compare PSNR with and
    without it: jumar sweep videnn-spatial-loss-scale --vary precision.loss_scale=none,exponential

    Run: jumar train videnn-spatial --set data.path=PHOTOS --set data.eval_path=CBSD68
    """
    return DenoisingRecipe(
        model=SpatialModel(),
        data=DenoisingData(
            patch_size=50,
            patches_per_image=480,
            scales=(1.0, 0.8),
            batch_size=32,
            eval_levels=(15.0, 25.0, 50.0),
        ),
        optimizer=Adam(learning_rate=1e-3),
        schedule=Constant(),
        training=TrainingSettings(duration="50ep", log_every="100it"),
        checkpoints=CheckpointSettings(every="1ep", keep=5),
        precision=PrecisionSettings(mode="allow_mix_precision"),
    )


@register("videnn-spatial-loss-scale")
def videnn_spatial_loss_scale() -> DenoisingRecipe:
    """The contest's spatial network: exponential loss scale from 2**32, 500 epochs.

    The scale doubles after 1000 finite steps and halves after two overflows.

    Run: jumar train videnn-spatial-loss-scale --set data.path=PHOTOS --set data.eval_path=CBSD68
    """
    recipe = videnn_spatial()
    scale = ExponentialLossScale(init_loss_scale=2.0**32, decr_ratio=0.5)
    return replace(
        recipe,
        training=replace(recipe.training, duration="500ep", evaluate_every="10ep"),
        precision=replace(recipe.precision, loss_scale=scale),
    )


@register("videnn-temporal")
def videnn_temporal() -> TemporalRecipe:
    """ViDeNN's network for three frames, on a trained spatial one: batch 32, Adam 0.0001.

    Noisy patches are 20 px larger on each side than clean patches, so that the spatial network
    denoises them like parts of whole frames.

    Run: jumar train videnn-temporal --set spatial_run=RUN --set data.path=CLIPS
    """
    return TemporalRecipe(
        model=TemporalModel(),
        data=ClipData(patch_size=50, margin=20, patches_per_image=64, batch_size=32),
        optimizer=Adam(learning_rate=1e-4),
        schedule=Piecewise(boundaries=("30ep",), values=(1.0, 0.1)),
        training=TrainingSettings(duration="10ep", log_every="100it"),
        checkpoints=CheckpointSettings(every="1ep", keep=5),
        precision=PrecisionSettings(mode="allow_mix_precision"),
    )
