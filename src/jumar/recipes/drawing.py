"""The interface of recipes whose networks generate images, as used by `jumar generate`."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from jumar.ground.errors import UserError
from jumar.recipes.trained import Trained
from jumar.tasks.sampling import BATCH


@dataclass(frozen=True, kw_only=True)
class DrawingRequest:
    """The options that determine images, besides the weights and the images' numbers.

    Attributes:
        seed: Seed of the random numbers.
        truncation: Maximum magnitude of a latent value in standard deviations; None for the maximum
            used in training.
        batch: Number of images generated at once; affects the images only through rounding.
    """

    seed: int = 1
    truncation: float | None = None
    batch: int = BATCH


class Artist(ABC):
    """A trained network that generates images, each identified by its number.

    Attributes:
        manner: Further options in words for the printed summary, such as `truncation 2`; may be
            empty.
    """

    manner: str = ""

    @abstractmethod
    def draw(self, first: int, count: int) -> Tensor:
        """Draw images from number `first` on, uint8 [count, 3 or 1, height, width] on the CPU.

        An image depends only on its number and the request, apart from rounding, which on some
        processors depends on `count`.
        """

    def lines(self, count: int, steps: int) -> Tensor:
        """Interpolate from image 0 to 1, from 2 to 3 and so on.

        Args:
            count: Number of interpolations, each of which is a line of images.
            steps: Number of images per line, at least 2.

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
    """A second base class, besides `Recipe`, for recipes whose networks generate images."""

    @abstractmethod
    def open_artist(self, trained: Trained, request: DrawingRequest) -> Artist:
        """Create the artist for a trained network of this recipe.

        Args:
            trained: The trained network of a run of this recipe.
            request: The options that determine the images.

        Raises:
            UserError: The network does not support the request.
        """
