"""What a recipe promises whose networks draw pictures: all that `jumar generate` knows of it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from jumar.ground.errors import UserError
from jumar.recipes.trained import Trained
from jumar.tasks.sampling import BATCH


@dataclass(frozen=True, kw_only=True)
class DrawingWish:
    """What decides the pictures beside the weights and their numbers.

    Attributes:
        seed: Another one gives other pictures.
        truncation: Largest magnitude of a latent number in standard deviations; None for that of
            the training.
        batch: Pictures made at once; changes no picture.
    """

    seed: int = 1
    truncation: float | None = None
    batch: int = BATCH


class Artist(ABC):
    """A trained network that draws pictures by their numbers.

    Attributes:
        manner: What more decides its pictures, for the line that a person reads, such as
            `truncation 2`; may be empty.
    """

    manner: str = ""

    @abstractmethod
    def draw(self, first: int, count: int) -> Tensor:
        """The pictures number `first` and after, uint8 [count, 3 or 1, height, width] on the CPU.

        A picture depends on its number and the wish, not on which others are drawn with it.
        """

    def lines(self, count: int, steps: int) -> Tensor:
        """Pictures on the ways from picture 0 to 1, from 2 to 3 and so on.

        Args:
            count: Lines.
            steps: Pictures a line, at least 2.

        Returns:
            uint8 [count * steps, 3 or 1, height, width] on the CPU, line by line.

        Raises:
            UserError: The network's pictures have none between them.
        """
        del count, steps
        raise UserError(
            "this network cannot interpolate between pictures",
            where="--interpolate",
            todo="Omit it; interpolation needs a generator with latent vectors, such as biggan128.",
        )


class DrawsPictures(ABC):
    """A recipe whose trained network draws pictures; stands beside `Recipe` among the bases."""

    @abstractmethod
    def open_artist(self, trained: Trained, wish: DrawingWish) -> Artist:
        """The artist that a trained network of this recipe is.

        Args:
            trained: A run of this recipe.
            wish: What decides the pictures.

        Raises:
            UserError: The network cannot do what is wished.
        """
