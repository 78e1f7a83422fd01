"""What every network's settings, the `model` section of a recipe, have in common."""

from dataclasses import dataclass

from torch import nn

from jumar.ground.errors import UserError
from jumar.models.tf_layout import TfNames


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """A network's own settings; each family of recipes adds how the network is created."""

    def tf_names(self, network: nn.Module) -> TfNames:
        """What the weights of `create`'s network are called in TensorFlow checkpoints.

        Raises:
            UserError: There is no TensorFlow original.
        """
        del network
        raise UserError("this network has no list of TensorFlow names")

    def decays(self, name: str, parameter: nn.Parameter) -> bool:
        """Whether weight decay applies to a parameter of the network, by its name there."""
        del name, parameter
        return True
