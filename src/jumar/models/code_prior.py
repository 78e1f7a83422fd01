"""A trained VQ-VAE, and the PixelCNN that learns to generate its codes."""

import torch
from torch import Tensor, nn

from jumar.models import pixelcnn, vqvae
from jumar.models.code_sampling import sample_codes
from jumar.models.pixelcnn import PixelCNN
from jumar.models.tf_layout import TfNames, TfVariable
from jumar.models.vqvae import VQVAE


class CodePrior(nn.Module):
    """Both networks; only the prior is trained.

    The VQ-VAE's weights are part of the state, so that a checkpoint can generate images even if
    the run that trained the VQ-VAE no longer exists.

    Args:
        vqvae: Encoder, codebook and decoder; frozen here.
        prior: The prior over the codes of that codebook.
    """

    def __init__(self, vqvae: VQVAE, prior: PixelCNN) -> None:
        super().__init__()
        self.vqvae = vqvae.requires_grad_(False)
        self.prior = prior

    def forward(self, codes: Tensor, labels: Tensor | None) -> Tensor:
        """Logits [N, K, h, w] for each code, given the preceding codes.

        Args:
            codes: int64 [N, h, w].
            labels: int64 [N], if the prior has classes.
        """
        return self.prior(self.vqvae.vectors(codes), labels)

    @torch.no_grad()
    def codes(self, images: Tensor) -> Tensor:
        """The codes int64 [N, h, w] of images from 0 to 1, computed in float32."""
        # In mixed precision features shift by more than the distance between neighbouring codes,
        # and the prior would learn the wrong codes.
        with torch.autocast(images.device.type, enabled=False):
            return self.vqvae.nearest(self.vqvae.encode(images.float()))

    @torch.no_grad()
    def draw(
        self,
        *,
        rows: int,
        image_size: int,
        seed: int,
        first_row: int = 0,
        labels: Tensor | None = None,
        temperature: float = 1.0,
    ) -> Tensor:
        """Images [rows, channels, image_size, image_size] from 0 to 1; see `sample_codes`."""
        side = image_size // self.vqvae.shrinking
        codes = sample_codes(
            self.prior,
            self.vqvae.codebook,
            rows=rows,
            height=side,
            width=side,
            seed=seed,
            first_row=first_row,
            labels=labels,
            temperature=temperature,
        )
        return self.vqvae.decode(self.vqvae.vectors(codes))


def tf_names(model: CodePrior) -> TfNames:
    """The names in the original's two checkpoints, the VQ-VAE's and the prior's."""
    first, second = vqvae.tf_names(model.vqvae), pixelcnn.tf_names(model.prior)
    parts = (("vqvae", first), ("prior", second))
    return TfNames(
        variables=[
            TfVariable(tf_name=v.tf_name, name=f"{part}.{v.name}", layout=v.layout)
            for part, names in parts
            for v in names.variables
        ],
        averages="none",
        renamings=first.renamings,
        ignored=first.ignored,
    )
