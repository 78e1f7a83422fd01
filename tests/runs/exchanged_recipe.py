"""Small recipes with TensorFlow names, for `--import`: averages beside, and swapped in part."""

from dataclasses import dataclass, replace
from typing import Literal, cast

from torch import nn

from jumar.data.images.image_set import ImageData
from jumar.data.pixels.preprocessing import plain_preprocessing
from jumar.models.tf_layout import (
    TfCounting,
    TfNames,
    TfOptimizer,
    adam_state,
    batch_norm_variables,
    convolution_variables,
    dense_variables,
    momentum_state,
)
from jumar.recipes.classification import ClassificationRecipe, Network
from jumar.recipes.registry import register
from jumar.settings import setting
from jumar.training.optimizers import Adam
from jumar.training.schedules import Constant
from jumar.training.settings import TrainingSettings

SLOTS: dict[str, tuple[TfOptimizer, ...]] = {
    "none": (),
    "momentum": (momentum_state(),),
    "adam": (adam_state(),),
    "scoped": (adam_state(scope="train"),),
}
COUNTINGS = {"scoped": TfCounting(global_step=2, first_number=1)}


@dataclass(frozen=True, kw_only=True)
class ExchangedNetwork(Network):
    """A convolution, batch norm and a dense layer."""

    averages: str = setting("beside", "where the original keeps averages")
    averaged: str = setting("", "of which variables")
    slots: str = setting("none", "which optimizer the original keeps the state of")

    def create(self, *, num_classes: int, image_size: int) -> nn.Module:
        net = nn.Sequential()
        net.add_module("conv", nn.Conv2d(3, 4, 3, stride=2))
        net.add_module("norm", nn.BatchNorm2d(4))
        net.add_module("pool", nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten()))
        net.add_module("classifier", nn.Linear(16, num_classes))
        return net

    def tf_names(self, network: nn.Module) -> TfNames:
        return TfNames(
            variables=[
                *convolution_variables("net/conv2d", "conv", bias=True),
                *batch_norm_variables("net/batch_normalization", "norm"),
                *dense_variables("head/dense", "classifier"),
            ],
            averages=cast(Literal["beside", "swapped"], self.averages),
            averaged=self.averaged,
            optimizers=SLOTS[self.slots],
            counting=COUNTINGS.get(self.slots, TfCounting()),
        )


@register("exchanged")
def exchanged() -> ClassificationRecipe:
    """Averages beside."""
    return ClassificationRecipe(
        model=ExchangedNetwork(num_classes=10),
        data=ImageData(
            image_size=16,
            batch_size=4,
            eval_batch_size=64,
            workers=0,
            preprocessing=plain_preprocessing(),
        ),
        schedule=Constant(),
        training=TrainingSettings(duration="2it", evaluate_every="", ema_decay=0.5),
    )


@register("exchanged-swapped")
def exchanged_swapped() -> ClassificationRecipe:
    """Averages of a part of the network, in the place of its weights."""
    one = exchanged()
    return replace(one, model=replace(one.model, averages="swapped", averaged="^net/"))


@register("exchanged-adam")
def exchanged_adam() -> ClassificationRecipe:
    """The original saves the state of its Adam."""
    one = exchanged()
    rule = Adam(learning_rate=0.01)
    return replace(one, model=replace(one.model, slots="adam"), optimizer=rule)


@register("exchanged-momentum")
def exchanged_momentum() -> ClassificationRecipe:
    """The original saves the state of its momentum."""
    one = exchanged()
    return replace(one, model=replace(one.model, slots="momentum"))
