"""What `port_check_originals.py` needs to know of an original."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

Generator = np.random.Generator


@dataclass(frozen=True, kw_only=True)
class Case:
    """An original: the data it needs, and how it is started.

    `prepare` is a script of the original's own that makes its data from ours. `package` is the
    folder that the checkout has to lie in, where its files import each other by that name.
    """

    make_data: Callable[[Path, Generator], None]
    command: str
    steps: int
    prepare: str = ""
    package: str = ""


def picture(path: Path, size: int, generator: Generator, *, mode: str = "RGB") -> None:
    """A picture of coloured noise, coarse enough to survive JPEG."""
    shape = (size // 4, size // 4, 3) if mode == "RGB" else (size // 4, size // 4)
    noise = Image.fromarray(generator.integers(0, 256, shape, dtype=np.uint8))
    path.parent.mkdir(parents=True, exist_ok=True)
    noise.resize((size, size)).save(path)
