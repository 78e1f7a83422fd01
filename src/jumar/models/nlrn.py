"""NLRN: a recurrent denoising network whose states attend to the whole patch.

Paper: D. Liu et al., "Non-Local Recurrent Network for Image Restoration", arXiv 1806.02919.
Original: Ding-Liu/NLRN in TensorFlow 1.15 (NLRN_ID1100 of Ascend's ModelZoo is the same). As in
that code, and unlike in the paper, correlations are not passed on from state to state, and a
position attends to all positions of the patch instead of a window around it.
"""

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from jumar.models.export_mode import in_export_mode
from jumar.models.initializers import glorot_uniform_
from jumar.models.tf_layout import (
    TfNames,
    TfVariable,
    adam_state,
    batch_norm_variables,
    convolution_variables,
    numbered,
)

STEPS = 12
FILTERS = 128
EMBEDDED = 64
BATCH_NORM_EPSILON = 1e-3
BATCH_NORM_MOMENTUM = 0.01
NORMS_PER_STEP = 3
SIMILARITIES_IN_CACHE = 2**20
"""Limit on a CPU: the operands of the 4 MB softmax and of the product after it are then in the
cache, which makes the non-local part of 43x43 patches twice as fast, also in training."""
SIMILARITIES_IN_MEMORY = 2**27
"""Limit on other devices: 512 MB in fp32, for few but large operations."""


class StepNorm(nn.BatchNorm2d):
    """A batch norm whose forward can be repeated without counting the batch twice.

    Activation checkpointing repeats a step's forward pass during the backward pass. With `repeated`
    set, the batch is normalised as before, and the moving statistics do not change.
    """

    repeated = False

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if not self.repeated:
            return super().forward(input)
        assert self.running_mean is not None
        assert self.running_var is not None
        # Copies, not None: checkpointing requires as many saved tensors as the first time.
        return functional.batch_norm(
            input,
            self.running_mean.clone(),
            self.running_var.clone(),
            self.weight,
            self.bias,
            training=True,
            momentum=self.momentum or 0.0,
            eps=self.eps,
        )


class NonLocal(nn.Module):
    """Each position becomes itself plus a mean of all positions, weighted by similarity.

    Similarity is the softmax over `theta(x) . phi(x)`, without the division by the root of the
    length that attention has elsewhere.

    Args:
        channels: Channels of input and output.
        embedded: Length of the compared vectors.
        similarities: Number of similarities to compute at a time; 0 to choose it by device.
    """

    def __init__(self, channels: int, embedded: int, *, similarities: int = 0) -> None:
        super().__init__()
        self.theta = nn.Conv2d(channels, embedded, 1)
        self.phi = nn.Conv2d(channels, embedded, 1)
        self.g = nn.Conv2d(channels, channels, 1)
        self.similarities = similarities

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        theta = self.theta(x).flatten(2).transpose(1, 2)
        phi = self.phi(x).flatten(2)
        g = self.g(x).flatten(2).transpose(1, 2)
        if in_export_mode():
            mean = _means(theta, phi, g)
        else:
            positions = theta.shape[1]
            limit = self.similarities or (
                SIMILARITIES_IN_CACHE if x.device.type == "cpu" else SIMILARITIES_IN_MEMORY
            )
            images = max(limit // positions**2, 1)
            rows = min(max(limit // (images * positions), 1), positions)
            groups = zip(theta.split(images), phi.split(images), g.split(images), strict=True)
            mean = torch.cat([_means(*group, rows) for group in groups])
        return x + mean.transpose(1, 2).unflatten(2, x.shape[2:])


def _means(theta: torch.Tensor, phi: torch.Tensor, g: torch.Tensor, rows: int = 0) -> torch.Tensor:
    """The means [images, positions, channels], computing `rows` similarities at a time; 0: all."""
    # The softmax is a separate op, so that an op list can keep it in fp32.
    parts = [
        torch.matmul(torch.softmax(torch.matmul(part, phi), dim=-1), g)
        for part in (theta.split(rows, dim=1) if rows else [theta])
    ]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


class Recurrence(nn.Module):
    """The layers shared by all steps: non-local, then two convolutions."""

    def __init__(self, filters: int, embedded: int, *, similarities: int) -> None:
        super().__init__()
        self.non_local = NonLocal(filters, embedded, similarities=similarities)
        self.conv_a = nn.Conv2d(filters, filters, 3, padding=1)
        self.conv_b = nn.Conv2d(filters, filters, 3, padding=1)

    def forward(
        self, x: torch.Tensor, first: torch.Tensor, norms: Sequence[nn.Module]
    ) -> torch.Tensor:
        """The next state, from a state, the first features, and the step's own norms."""
        x = self.non_local(functional.relu_(norms[0](x)))
        x = self.conv_a(norms[1](x))
        x = self.conv_b(functional.relu_(norms[2](x)))
        return x + first


class NLRN(nn.Module):
    """Denoises grey images [N, 1, height, width] from 0 to 1 of any size.

    The cost grows with the square of the number of pixels: large images are processed in patches.

    Args:
        steps: Recurrences with shared weights and separate batch norms; the original has 12.
        filters: Channels of the states; the original has 128.
        embedded: Length of the compared vectors; the original has 64.
        recompute: Keep only the states of a training step and recompute everything between them in
            the backward pass: the memory of one recurrence instead of all, for a third more time.
            The results are the same. Compiled code ignores this, as the compiler decides itself.
        similarities: Number of similarities to compute at a time; 0 to choose it by device.
    """

    def __init__(
        self,
        *,
        steps: int = STEPS,
        filters: int = FILTERS,
        embedded: int = EMBEDDED,
        recompute: bool = True,
        similarities: int = 0,
    ) -> None:
        super().__init__()
        self.recompute = recompute
        self.norm_in = _norm(1)
        self.conv_in = nn.Conv2d(1, filters, 3, padding=1)
        self.recurrence = Recurrence(filters, embedded, similarities=similarities)
        self.norms = nn.ModuleList(
            nn.ModuleList(_norm(filters) for _ in range(NORMS_PER_STEP)) for _ in range(steps)
        )
        self.norm_out = _norm(filters)
        self.conv_out = nn.Conv2d(filters, 1, 3, padding=1)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights as the original does.

        Glorot uniform with biases at zero; the kernel of `g` is zero, so that the non-local part
        starts as the identity.
        """
        glorot_uniform_(self)
        nn.init.zeros_(self.recurrence.non_local.g.weight)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        first = self.conv_in(self.norm_in(images))
        x = first
        for norms in self.norms:
            x = self._step(x, first, list(norms.children()))
        x = functional.relu_(self.norm_out(x))
        return self.conv_out(x) + images

    def _step(
        self, x: torch.Tensor, first: torch.Tensor, norms: Sequence[nn.Module]
    ) -> torch.Tensor:
        recomputes = self.recompute and self.training and torch.is_grad_enabled()
        # The compiler decides by itself what to recompute, and does not support `context_fn`.
        if not recomputes or torch.compiler.is_compiling():
            return self.recurrence(x, first, norms)
        state: torch.Tensor = checkpoint(  # pyright: ignore[reportUnknownVariableType]
            self.recurrence,
            x,
            first,
            norms,
            use_reentrant=False,
            # Nothing in a step is random.
            preserve_rng_state=False,
            context_fn=partial(_contexts, norms),
        )
        return state


def tf_names(model: NLRN) -> TfNames:
    """The names of the weights in the original's checkpoints."""
    return TfNames(
        variables=tf_variables(model),
        averages="none",
        optimizers=(adam_state(),),
        ignored=[r"/Adam(_1)?$", r"^beta[12]_power$", r"^global_step$"],
    )


def tf_variables(model: NLRN) -> list[TfVariable]:
    """The variables of the original in graph order: 166 with 12 steps.

    The shared layers are where the first step created them, between its batch norms.
    """
    variables = [
        *batch_norm_variables("batch_normalization", "norm_in"),
        *convolution_variables("conv1", "conv_in", bias=True),
    ]
    shared = {
        0: [(f"non_local_{part}", f"non_local.{part}") for part in ("theta", "phi", "g")],
        1: [("RB1_a", "conv_a")],
        2: [("RB1_b", "conv_b")],
    }
    for step in range(len(model.norms)):
        for index in range(NORMS_PER_STEP):
            number = step * NORMS_PER_STEP + index
            scope = numbered("rnn/batch_normalization", number)
            variables += batch_norm_variables(scope, f"norms.{step}.{index}")
            for tf_part, module in shared[index] if step == 0 else ():
                variables += convolution_variables(
                    f"rnn/{tf_part}", f"recurrence.{module}", bias=True
                )
    return [
        *variables,
        *batch_norm_variables("batch_normalization_1", "norm_out"),
        *convolution_variables("conv_end", "conv_out", bias=True),
    ]


def _norm(channels: int) -> StepNorm:
    return StepNorm(channels, eps=BATCH_NORM_EPSILON, momentum=BATCH_NORM_MOMENTUM)


def _contexts(
    norms: Sequence[nn.Module],
) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Contexts for the forward pass, and for its repetition in the backward pass."""
    return nullcontext(), _repeating(norms)


@contextmanager
def _repeating(norms: Sequence[nn.Module]) -> Generator[None]:
    step_norms = [norm for norm in norms if isinstance(norm, StepNorm)]
    for norm in step_norms:
        norm.repeated = True
    try:
        yield
    finally:
        for norm in step_norms:
            norm.repeated = False
