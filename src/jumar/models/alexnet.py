"""AlexNet as the Ascend ModelZoo trained it in TensorFlow 1.15.

Original: Ascend/ModelZoo-TensorFlow, AlexNet_ID0072. Unlike torchvision's network of the same
name, it has 96 filters in the first layer, dropout after the dense layers instead of before, no
adaptive pooling, and a ReLU on the logits.
"""

import math
from functools import partial
from typing import Literal

import torch
from torch import nn

from jumar.models.initializers import fill_layers_
from jumar.models.keyed_dropout import KeyedDropout
from jumar.models.tf_layout import (
    DenseKernelAfterFlatten,
    TfVariable,
    convolution_variables,
    dense_variables,
    numbered,
)

Initialization = Literal["he_uniform", "xavier", "he_uniform_custom"]

SMALLEST_IMAGE = 63
"""Smallest side in pixels for which the last pooling has a window."""

FEATURE_CHANNELS = 256

_INITIALIZERS = {
    "he_uniform": partial(nn.init.kaiming_uniform_, nonlinearity="relu"),
    "xavier": nn.init.xavier_uniform_,
    "he_uniform_custom": partial(nn.init.kaiming_uniform_, a=math.sqrt(5)),
}


class AlexNet(nn.Module):
    """AlexNet; 61,266,088 parameters with 1000 classes at 224 px.

    Takes images [N, 3, image_size, image_size] and returns logits [N, num_classes].

    Args:
        num_classes: Length of the logits.
        image_size: Pixels per side, at least 63; determines the size of the first dense layer.
        dropout: Probability of dropping a feature after each hidden dense layer. The original's
            probability of keeping one is 0.65. The trainer must set the batch's position before
            each forward pass in training; see `jumar.models.keyed_dropout`.
        logits_relu: Whether the logits go through a ReLU, as in the original.
        initialization: Weights uniform within sqrt(6 / fan_in) ("he_uniform", the original's
            default), Glorot's sqrt(6 / (fan_in + fan_out)) ("xavier") or sqrt(1 / fan_in)
            ("he_uniform_custom", MindSpore's default). Biases start at zero.

    Raises:
        ValueError: The image is too small, or the initialisation unknown.
    """

    def __init__(
        self,
        *,
        num_classes: int,
        image_size: int = 224,
        dropout: float = 0.35,
        logits_relu: bool = True,
        initialization: Initialization = "he_uniform",
    ) -> None:
        super().__init__()
        if image_size < SMALLEST_IMAGE:
            raise ValueError(
                f"AlexNet needs images of at least {SMALLEST_IMAGE} px per side, not {image_size}"
            )
        if initialization not in _INITIALIZERS:
            names = ", ".join(_INITIALIZERS)
            raise ValueError(f"unknown initialization '{initialization}'; known: {names}")
        self.image_size = image_size
        self.logits_relu = logits_relu
        self.feature_size = _feature_size(image_size)
        self.conv1 = nn.Conv2d(3, 96, 11, stride=4, padding=2)
        self.conv2 = nn.Conv2d(96, 192, 5, padding=2)
        self.conv3 = nn.Conv2d(192, 384, 3, padding=1)
        self.conv4 = nn.Conv2d(384, 256, 3, padding=1)
        self.conv5 = nn.Conv2d(256, FEATURE_CHANNELS, 3, padding=1)
        self.pool = nn.MaxPool2d(3, stride=2)
        self.dense1 = nn.Linear(FEATURE_CHANNELS * self.feature_size**2, 4096)
        self.dropout1 = KeyedDropout(dropout)
        self.dense2 = nn.Linear(4096, 4096)
        self.dropout2 = KeyedDropout(dropout)
        self.classifier = nn.Linear(4096, num_classes)
        self.relu = nn.ReLU(inplace=True)
        self.reset_parameters(initialization)

    def layer_order(self) -> list[str]:
        """The prefixes of the layers' parameters, from the input to the output."""
        return ["conv1", "conv2", "conv3", "conv4", "conv5", "dense1", "dense2", "classifier"]

    def reset_parameters(self, initialization: Initialization) -> None:
        """Draw the weights and set the biases to zero, as TensorFlow's layers do."""
        fill_layers_(self, _INITIALIZERS[initialization])

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if images.shape[-2:] != (self.image_size, self.image_size):
            raise ValueError(
                f"this AlexNet was built for images of {self.image_size} px per side, not "
                f"{tuple(images.shape[-2:])}; pass image_size"
            )
        x = self.pool(self.relu(self.conv1(images)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.relu(self.conv3(x))
        x = self.relu(self.conv4(x))
        x = self.pool(self.relu(self.conv5(x)))
        x = self.dropout1(self.relu(self.dense1(x.flatten(1))))
        x = self.dropout2(self.relu(self.dense2(x)))
        logits = self.classifier(x)
        return self.relu(logits) if self.logits_relu else logits


def decays(name: str, parameter: nn.Parameter) -> bool:
    """Whether weight decay applies to a parameter: always, even to biases."""
    del name, parameter
    return True


def tf_variables(model: AlexNet) -> list[TfVariable]:
    """The 16 variables of the original in graph order, with their names here."""
    flatten_layout = DenseKernelAfterFlatten(
        height=model.feature_size, width=model.feature_size, channels=FEATURE_CHANNELS
    )
    variables: list[TfVariable] = []
    for number in range(5):
        tf_name = numbered("conv2d", number)
        variables += convolution_variables(tf_name, f"conv{number + 1}", bias=True)
    return [
        *variables,
        *dense_variables("dense", "dense1", layout=flatten_layout),
        *dense_variables("dense_1", "dense2"),
        *dense_variables("dense_2", "classifier"),
    ]


def _feature_size(image_size: int) -> int:
    """Pixels per side of the feature map before the dense layers."""
    size = (image_size + 4 - 11) // 4 + 1
    for _ in range(3):
        size = (size - 3) // 2 + 1
    return size
