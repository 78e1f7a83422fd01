"""The interface of recipes whose networks generate images, as used by `jumar generate`."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from jumar.ground.errors import UserError
from jumar.recipes.trained import Trained
from jumar.tasks.sampling import BATCH


@dataclass(frozen=True, kw_only=True)
class DrawingRequest:
    """What determines the images besides the weights and their numbers.

    Attributes:
        seed: A different seed gives different images.
        truncation: Largest magnitude of a latent number in standard deviations; None for the value
            used in training.
        batch: Images generated at once; affects the images by rounding alone.
    """

    seed: int = 1
    truncation: float | None = None
    batch: int = BATCH


class Artist(ABC):
    """A trained network that generates images, each identified by its number.

    Attributes:
        manner: What else determines the images, for the printed summary, such as `truncation 2`;
            may be empty.
    """

    manner: str = ""

    @abstractmethod
    def draw(self, first: int, count: int) -> Tensor:
        """Images from number `first` on, uint8 [count, 3 or 1, height, width] on the CPU.

        An image depends on its number and the request. Which others are drawn with it only matters
        for rounding, which on some processors depends on `count`.
        """

    def lines(self, count: int, steps: int) -> Tensor:
        """Interpolations from image 0 to 1, from 2 to 3 and so on.

        Args:
            count: Number of lines.
            steps: Images per line, at least 2.

        Returns:
            uint8 [count * steps, 3 or 1, height, width] on the CPU, line by line.

        Raises:
            UserError: The network cannot interpolate.
        """
        del count, steps
        raise UserError(
            "this network cannot interpolate between images",
            where="--interpolate",
            todo="Omit it; interpolation needs a generator with latent vectors, such as biggan128.",
        )


class DrawsPictures(ABC):
    """A recipe whose trained network generates images; a second base class besides `Recipe`."""

    @abstractmethod
    def open_artist(self, trained: Trained, request: DrawingRequest) -> Artist:
        """Create the artist for a trained network of this recipe.

        Args:
            trained: The trained network of a run of this recipe.
            request: What determines the images.

        Raises:
            UserError: The network cannot do what is requested.
        """
