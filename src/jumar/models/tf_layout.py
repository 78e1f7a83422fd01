"""Variables of a TensorFlow original, their names here, and how their layout changes.

TensorFlow keeps convolution kernels as [height, width, in, out] and dense kernels as [in, out];
torch keeps [out, in, height, width] and [out, in]. Every layout below has both directions, so
that one list of variables serves the import, the export and the parity tests.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

Array = NDArray[Any]


class Layout(ABC):
    """A change of axes with its inverse; it never changes a value."""

    @abstractmethod
    def to_torch(self, array: Array) -> Array:
        """Convert from TensorFlow's order of axes to torch's."""

    @abstractmethod
    def to_tensorflow(self, array: Array) -> Array:
        """Convert from torch's order of axes to TensorFlow's."""


@dataclass(frozen=True)
class Unchanged(Layout):
    """No change, for biases and batch-norm variables, whose only axis is the channels."""

    def to_torch(self, array: Array) -> Array:
        return array

    def to_tensorflow(self, array: Array) -> Array:
        return array


@dataclass(frozen=True)
class ConvolutionKernel(Layout):
    """A convolution's kernel, grouped or not.

    It is [height, width, in, out] in TensorFlow and [out, in, height, width] in torch.
    """

    def to_torch(self, array: Array) -> Array:
        return array.transpose(3, 2, 0, 1)

    def to_tensorflow(self, array: Array) -> Array:
        return array.transpose(2, 3, 1, 0)


@dataclass(frozen=True)
class DenseKernel(Layout):
    """A dense kernel: [in, out] in TensorFlow, [out, in] in torch."""

    def to_torch(self, array: Array) -> Array:
        return array.transpose(1, 0)

    def to_tensorflow(self, array: Array) -> Array:
        return array.transpose(1, 0)


@dataclass(frozen=True, kw_only=True)
class DenseKernelAfterFlatten(Layout):
    """The first dense kernel after a feature map.

    TensorFlow flattens a map in the order (height, width, channels) and torch in the order
    (channels, height, width), so the rows of the kernel are reordered as well.
    """

    height: int
    width: int
    channels: int

    def to_torch(self, array: Array) -> Array:
        rows = array.reshape(self.height, self.width, self.channels, -1)
        return rows.transpose(3, 2, 0, 1).reshape(rows.shape[3], -1)

    def to_tensorflow(self, array: Array) -> Array:
        columns = array.reshape(-1, self.channels, self.height, self.width)
        return columns.transpose(2, 3, 1, 0).reshape(-1, columns.shape[0])


@dataclass(frozen=True, kw_only=True)
class TfVariable:
    """One variable of the TensorFlow original.

    Attributes:
        tf_name: Its name in the TensorFlow graph and checkpoint.
        name: Its name in the `state_dict` of the network here.
        layout: How its axes change.
    """

    tf_name: str
    name: str
    layout: Layout

    def to_torch(self, array: Array) -> torch.Tensor:
        """The value for the `state_dict`, as a separate tensor on the CPU."""
        return torch.from_numpy(np.array(self.layout.to_torch(array), order="C"))

    def to_tensorflow(self, tensor: torch.Tensor) -> Array:
        """The value in TensorFlow's layout; bfloat16, which numpy lacks, becomes float32."""
        values = tensor.detach().cpu()
        if values.dtype == torch.bfloat16:
            values = values.float()
        return np.array(self.layout.to_tensorflow(values.numpy()), order="C")


@dataclass(frozen=True, kw_only=True)
class TfOptimizer:
    """Where the original's checkpoints store an optimizer's state.

    Attributes:
        kind: The optimizer, by its name in recipes.
        slots: The state of each trained variable: maps the name in an optimizer's state here
            (`exp_avg`) to the suffix that TensorFlow appends to the variable's name (`/Adam`).
        powers: Names of two scalars, beta1 and beta2 to the power of one more than the number of
            updates; None if the optimizer has none.
        trains: Regular expression (`re.search`) of the `tf_name`s that it trains; empty for all.
    """

    kind: str
    slots: Mapping[str, str]
    powers: tuple[str, str] | None = None
    trains: str = ""


def adam_state(
    name: str = "Adam", *, number: int = 0, trains: str = "", scope: str = ""
) -> TfOptimizer:
    """The state of `tf.train.AdamOptimizer`.

    Args:
        name: The optimizer's name, if it is not the default.
        number: Number of Adam optimizers created earlier in the same graph.
        trains: See `TfOptimizer`.
        scope: The name scope in which the original calls `minimize`: the powers are in it, the
            slots are not.
    """
    suffix = f"_{number}" if number else ""
    prefix = f"{scope}/" if scope else ""
    return TfOptimizer(
        kind="adam",
        slots={"exp_avg": f"/{name}", "exp_avg_sq": f"/{name}_1"},
        powers=(f"{prefix}beta1_power{suffix}", f"{prefix}beta2_power{suffix}"),
        trains=trains,
    )


def momentum_state() -> TfOptimizer:
    """The state of `tf.train.MomentumOptimizer`."""
    return TfOptimizer(kind="momentum", slots={"momentum_buffer": "/Momentum"})


@dataclass(frozen=True, kw_only=True)
class TfCounting:
    """How the original counts training steps, if not one by one from zero.

    Attributes:
        global_step: How much a step adds to the variable `global_step`.
        first_number: The number that its saver would append to the file's name before the first
            step; some loops count from 1.
    """

    global_step: int = 1
    first_number: int = 0


@dataclass(frozen=True, kw_only=True)
class TfNames:
    """The names of a network's weights in the checkpoints of its TensorFlow original.

    Attributes:
        variables: The variables in the original's graph order, including untrained ones
            (statistics, the `u` of a spectral norm).
        averages: Where a checkpoint keeps the moving averages of the trained variables:
            `beside` under `<name>/ExponentialMovingAverage`; `swapped` under `<name>` itself,
            with the raw value under `<name>/ExponentialMovingAverage`, as written by
            `ExponentialMovingAverage`'s swapping saver; `none` if there are none.
        averaged: Regular expression (`re.search`) of the `tf_name`s that have an average, if not
            every trained variable has one: in a GAN often only the generator's do. Only used for
            export; an import finds the averages in the file.
        renamings: Patterns of names in other files of the same network, as (regular expression,
            replacement) from the file's name to `tf_name`. They are applied one after another
            (`re.sub`) to a name that is not one of `variables`, until it is.
        ignored: Regular expressions (`re.search`) of names that do not belong to the network, such
            as copies of the graph or extra counters. The import already knows optimizer slots and
            the global step (`weights/matching.py`).
        optimizers: The optimizer state in its checkpoints; empty if the original saves
            weights only.
        counting: How it counts steps.
    """

    variables: Sequence[TfVariable]
    averages: Literal["none", "beside", "swapped"] = "beside"
    averaged: str = ""
    renamings: Sequence[tuple[str, str]] = ()
    ignored: Sequence[str] = ()
    optimizers: Sequence[TfOptimizer] = ()
    counting: TfCounting = TfCounting()

    def optimizer_of(self, variable: TfVariable) -> TfOptimizer | None:
        """The optimizer that trains a variable, if there is one and the variable is trained."""
        return next(
            (
                optimizer
                for optimizer in self.optimizers
                if re.search(optimizer.trains, variable.tf_name)
            ),
            None,
        )


def unchanged(tf_name: str, name: str) -> TfVariable:
    """A variable with the same axes in both, such as a bias."""
    return TfVariable(tf_name=tf_name, name=name, layout=Unchanged())


def numbered(tf_name: str, number: int) -> str:
    """The name of the layer with this number, from 0, among those that TensorFlow names alike."""
    return f"{tf_name}_{number}" if number else tf_name


def convolution_kernel(tf_name: str, name: str) -> TfVariable:
    """A convolution's kernel; that of a transposed one changes its axes in the same way."""
    return TfVariable(tf_name=tf_name, name=name, layout=ConvolutionKernel())


def convolution_variables(
    tf_name: str, name: str, *, bias: bool, parts: tuple[str, str] = ("kernel", "bias")
) -> list[TfVariable]:
    """The variables of a convolution.

    Args:
        tf_name: The original's scope.
        name: The layer's path here.
        bias: Whether there is a bias.
        parts: The original's names of kernel and bias; by default those of `tf.layers.conv2d`.
    """
    variables = [convolution_kernel(f"{tf_name}/{parts[0]}", f"{name}.weight")]
    if bias:
        variables.append(unchanged(f"{tf_name}/{parts[1]}", f"{name}.bias"))
    return variables


def dense_variables(tf_name: str, name: str, *, layout: Layout | None = None) -> list[TfVariable]:
    """The variables of a dense layer created by `tf.layers.dense`."""
    return [
        TfVariable(
            tf_name=f"{tf_name}/kernel", name=f"{name}.weight", layout=layout or DenseKernel()
        ),
        unchanged(f"{tf_name}/bias", f"{name}.bias"),
    ]


def batch_norm_variables(tf_name: str, name: str) -> list[TfVariable]:
    """The variables of a batch norm with scale, statistics last."""
    parts = {
        "gamma": "weight",
        "beta": "bias",
        "moving_mean": "running_mean",
        "moving_variance": "running_var",
    }
    return [unchanged(f"{tf_name}/{tf_part}", f"{name}.{part}") for tf_part, part in parts.items()]
