"""Base class for the objectives of all networks with BERT's encoder."""

from typing import Generic, TypeVar

from torch import Tensor, nn

from jumar.data.samples import Batch
from jumar.tasks.task import Objective

Network = TypeVar("Network", bound=nn.Module)


class EncoderObjective(Objective, Generic[Network]):
    """An objective that trains a whole network, with weight decay as in the originals.

    Args:
        network: The encoder with its head.
    """

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.trained = self.network = network

    def logits(self, batch: Batch) -> Tensor:
        """Return the network's float32 output for a batch, as long as the longest sample."""
        return self.network(batch["input_ids"], batch["segment_ids"], batch["input_mask"]).float()

    def decays(self, name: str, parameter: nn.Parameter) -> bool:
        """Exclude biases and layer norms by name, as in the originals' optimizers."""
        del parameter
        return "LayerNorm" not in name and not name.endswith("bias")
