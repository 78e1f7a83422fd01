"""Base class of a recipe's `model` section, the settings of its network."""

from dataclasses import dataclass

from torch import nn

from jumar.ground.errors import UserError
from jumar.models.tf_layout import TfNames


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """The settings of a network; each family of recipes adds a method that creates it."""

    def tf_names(self, network: nn.Module) -> TfNames:
        """Return the names of the network's weights in TensorFlow checkpoints.

        Raises:
            UserError: There is no TensorFlow original.
        """
        del network
        raise UserError("this network defines no TensorFlow names")

    def decays(self, name: str, parameter: nn.Parameter) -> bool:
        """Whether weight decay applies to a parameter of the network, by its name there."""
        del name, parameter
        return True
