"""The kinds of optimizer, which use torch's fused kernels if the device has them.

Torch's own optimizers are used where they compute the same as TensorFlow's; the others are in
`tensorflow.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import optim
from torch.optim import Optimizer

from jumar.devices.registry import device_kind
from jumar.ground.errors import UserError
from jumar.settings import setting
from jumar.training.optimizers.optimizer import OptimizerSettings, Trained
from jumar.training.optimizers.tensorflow import TfAdam, TfLamb, TfRmsProp

_ADAM = {"exp_avg": "/Adam", "exp_avg_sq": "/Adam_1"}
_BERT = {"exp_avg": "/adam_m", "exp_avg_sq": "/adam_v"}


@dataclass(frozen=True, kw_only=True)
class WithFusedKernel(OptimizerSettings):
    """A kind with a fused update kernel.

    Attributes:
        kernel: The kernel's name in torch, with its overload.
    """

    kernel: ClassVar[str]

    fused: str = setting(
        "auto",
        "Update with one fused kernel; auto: where the device has it.",
        choices=("auto", "true", "false"),
    )

    def is_fused(self, device_type: str) -> bool:
        """Whether the update on a device uses the kernel.

        Raises:
            UserError: The kernel is requested, but the device lacks it.
        """
        # Ask the dispatcher, because torch's list of devices with fused kernels includes every
        # registered backend, whether or not it has the kernel.
        exists = device_kind(device_type).has_kernel(self.kernel)
        if self.fused == "true" and not exists:
            raise UserError(
                f"there is no fused kernel for '{self.kind}' on {device_type}",
                where="optimizer.fused",
                todo="Use optimizer.fused=auto, which updates lists of tensors at once instead.",
            )
        return exists and self.fused != "false"


@dataclass(frozen=True, kw_only=True)
class Sgd(WithFusedKernel, kind="sgd"):
    """tf.train.GradientDescentOptimizer."""

    kernel: ClassVar[str] = "_fused_sgd_"

    def build(self, trained: Trained) -> Optimizer:
        """See `OptimizerSettings.build`."""
        fused = self.is_fused(trained.device_type)
        return optim.SGD(trained.groups, lr=self.learning_rate, fused=fused, foreach=not fused)


@dataclass(frozen=True, kw_only=True)
class Momentum(WithFusedKernel, kind="momentum"):
    """tf.train.MomentumOptimizer."""

    slots: ClassVar[Mapping[str, str]] = {"momentum_buffer": "/Momentum"}
    kernel: ClassVar[str] = "_fused_sgd_"

    momentum: float = setting(0.9, "Decay of the accumulated steps.", minimum=0.0, maximum=1.0)
    nesterov: bool = setting(False, "Nesterov's form of momentum.")

    def check(self) -> None:
        """Reject Nesterov's form without momentum."""
        super().check()
        if self.nesterov and self.momentum == 0.0:
            raise UserError(
                "Nesterov's form requires a momentum above 0",
                where="optimizer.momentum",
                todo="For instance: optimizer.momentum=0.9, or optimizer.nesterov=false",
            )

    def build(self, trained: Trained) -> Optimizer:
        """See `OptimizerSettings.build`."""
        fused = self.is_fused(trained.device_type)
        optimizer = optim.SGD(
            trained.groups,
            lr=self.learning_rate,
            momentum=self.momentum,
            nesterov=self.nesterov,
            fused=fused,
            foreach=not fused,
        )
        # Torch would allocate the buffers in the first step for the kernel to fill. If the kernel
        # skipped that step because of an overflow, they would stay uninitialised.
        for parameter in trained.order if self.momentum else ():
            optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(
                parameter, memory_format=torch.preserve_format
            )
        return optimizer


@dataclass(frozen=True, kw_only=True)
class _Averaging(OptimizerSettings):
    """Optimizers that track averages of gradients and of their squares."""

    beta1: float = setting(
        0.9, "Decay of the average of gradients.", minimum=0.0, maximum=0.9999999
    )
    beta2: float = setting(
        0.999, "Decay of the average of squared gradients.", minimum=0.0, maximum=0.9999999
    )
    epsilon: float = setting(1e-8, "Keeps the step from dividing by zero.", minimum=0.0)

    @property
    def betas(self) -> tuple[float, float]:
        """Both decays."""
        return self.beta1, self.beta2


@dataclass(frozen=True, kw_only=True)
class Adam(_Averaging, WithFusedKernel, kind="adam"):
    """tf.train.AdamOptimizer (Kingma and Ba, arXiv 1412.6980)."""

    slots: ClassVar[Mapping[str, str]] = _ADAM
    kernel: ClassVar[str] = "_fused_adam_.tensor_lr"

    bias_correction: str = setting(
        "step",
        "Correction for averages that start at zero: by the number of updates, or none.",
        choices=("step", "none"),
    )

    def build(self, trained: Trained) -> Optimizer:
        """See `OptimizerSettings.build`."""
        return TfAdam(
            trained.groups,
            lr=self.learning_rate,
            betas=self.betas,
            epsilon=self.epsilon,
            corrected=self.bias_correction == "step",
            decoupled=self.decoupled,
            fused=self.is_fused(trained.device_type),
        )


@dataclass(frozen=True, kw_only=True)
class AdamW(Adam, kind="adamw"):
    """torch.optim.AdamW; without bias correction, the BERT scripts' AdamWeightDecayOptimizer."""

    slots: ClassVar[Mapping[str, str]] = _BERT
    kernel: ClassVar[str] = "_fused_adamw_"
    decoupled = True

    def build(self, trained: Trained) -> Optimizer:
        """See `OptimizerSettings.build`."""
        if self.bias_correction == "none":
            return super().build(trained)
        fused = self.is_fused(trained.device_type)
        return optim.AdamW(
            trained.groups,
            lr=self.learning_rate,
            betas=self.betas,
            eps=self.epsilon,
            fused=fused,
            foreach=not fused,
            # Keeps the count of updates on the device, where an update can be undone.
            capturable=not fused and not device_kind(trained.device_type).reads_at_once,
        )


@dataclass(frozen=True, kw_only=True)
class Lamb(_Averaging, kind="lamb"):
    """LAMB (You et al., arXiv 1904.00962) as the Ascend BERT scripts compute it."""

    slots: ClassVar[Mapping[str, str]] = _BERT
    decoupled = True

    bias_correction: str = setting(
        "step",
        "Correction for averages that start at zero: by the number of updates, none, or by the "
        "number of the variable (Ascend's).",
        choices=("step", "none", "variable"),
    )

    def build(self, trained: Trained) -> Optimizer:
        """See `OptimizerSettings.build`."""
        by_variable = self.bias_correction == "variable"
        return TfLamb(
            trained.groups,
            lr=self.learning_rate,
            betas=self.betas,
            epsilon=self.epsilon,
            corrected=self.bias_correction == "step",
            exponents={p: n for n, p in enumerate(trained.order, start=1)} if by_variable else {},
        )


@dataclass(frozen=True, kw_only=True)
class RmsProp(OptimizerSettings, kind="rmsprop"):
    """tf.train.RMSPropOptimizer, not centred."""

    slots: ClassVar[Mapping[str, str]] = {"square_avg": "/RMSProp", "momentum_buffer": "/RMSProp_1"}

    beta2: float = setting(
        0.999, "Decay of the average of squared gradients.", minimum=0.0, maximum=0.9999999
    )
    momentum: float = setting(0.9, "Decay of the accumulated steps.", minimum=0.0, maximum=1.0)
    epsilon: float = setting(1e-8, "Keeps the step from dividing by zero.", minimum=0.0)

    def build(self, trained: Trained) -> Optimizer:
        """See `OptimizerSettings.build`."""
        return TfRmsProp(
            trained.groups,
            lr=self.learning_rate,
            decay=self.beta2,
            momentum=self.momentum,
            epsilon=self.epsilon,
        )


@dataclass(frozen=True, kw_only=True)
class Adagrad(WithFusedKernel, kind="adagrad"):
    """tf.train.AdagradOptimizer."""

    slots: ClassVar[Mapping[str, str]] = {"sum": "/Adagrad"}
    kernel: ClassVar[str] = "_fused_adagrad_"

    initial_accumulator: float = setting(
        0.1, "Initial value of the sum of squared gradients.", minimum=1e-30
    )

    def build(self, trained: Trained) -> Optimizer:
        """See `OptimizerSettings.build`."""
        fused = self.is_fused(trained.device_type)
        return optim.Adagrad(
            trained.groups,
            lr=self.learning_rate,
            initial_accumulator_value=self.initial_accumulator,
            eps=0.0,
            fused=fused,
            foreach=not fused,
        )
