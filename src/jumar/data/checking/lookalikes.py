"""Images with the same content in another encoding or size.

Two images look alike if none of their 16 x 16 grey means differs by more than a few levels.
Re-encoding as JPEG and scaling change these means by less; in another photograph of the same scene,
some means usually differ by more. Images without contrast are left out: all empty pages look alike.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jumar.data.checking.pictures import LOOK_SIDE

MAX_DIFFERENCE = 4
"""Maximum difference of each mean, in levels of 0 to 255."""
MAX_MEAN_DIFFERENCE = 1.0
"""Maximum average difference of the means, in levels."""
MIN_CONTRAST = 8.0
"""Standard deviation of the means, in levels, below which an image is not compared."""
_BLOCKS = 4
MAX_NEIGHBOURS = 32
"""Maximum number of images that each is compared with; all pairs of many look-alikes would not fit
into memory."""


class Alike(NamedTuple):
    """Images that look alike.

    Attributes:
        pairs: Indices of images that look alike, [pairs, 2].
        crowded: Images with more than `MAX_NEIGHBOURS` candidates, of which only the nearest
            were compared, in ascending order.
    """

    pairs: NDArray[np.int64]
    crowded: NDArray[np.int64]


def alike(looks: NDArray[np.uint8], aspects: NDArray[np.float64]) -> Alike:
    """Return the pairs of images that look alike.

    Of images with identical means and shapes, each is paired with the first only.

    Args:
        looks: Grey means of the images, [images, 256].
        aspects: Width divided by height of each image, which differs by less than 2 % in a pair.
    """
    from scipy.spatial import KDTree  # slow to import, and only images need it

    first: dict[bytes, int] = {}
    exact_pairs: list[tuple[int, int]] = []
    for index in np.flatnonzero(looks.std(axis=1) >= MIN_CONTRAST).tolist():
        first_index = first.setdefault(looks[index].tobytes() + aspects[index].tobytes(), index)
        if first_index != index:
            exact_pairs.append((first_index, index))
    rows = np.array([*first.values()], np.int64)
    same_looks = np.array(exact_pairs, np.int64).reshape(-1, 2)
    if len(rows) < 2:
        return Alike(same_looks, np.empty(0, np.int64))
    side = LOOK_SIDE // _BLOCKS
    shape = (len(rows), _BLOCKS, side, _BLOCKS, side)
    blocks = looks[rows].reshape(shape).mean(axis=(2, 4)).reshape(len(rows), -1)
    # Block means differ by no more than their pixels do, so no pair is missed.
    count = min(MAX_NEIGHBOURS + 2, len(rows))  # the image itself, and one to detect a crowd
    bound = MAX_DIFFERENCE + 1e-6  # the bound itself is excluded
    query_result = KDTree(blocks).query(blocks, count, p=np.inf, distance_upper_bound=bound)
    neighbours = np.asarray(query_result[1], np.int64)
    is_neighbour = neighbours < len(rows)
    crowded = rows[is_neighbour.sum(axis=1) > MAX_NEIGHBOURS + 1]
    row, column = np.nonzero(is_neighbour)
    pairs = np.unique(np.sort(np.column_stack([row, neighbours[row, column]]), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    blocks_of_pairs = np.array_split(pairs, 1 + len(pairs) // 100_000)
    confirmed = [_confirmed(rows[block], looks, aspects) for block in blocks_of_pairs]
    return Alike(np.concatenate([same_looks, *confirmed]), crowded)


def _confirmed(
    pairs: NDArray[np.int64], looks: NDArray[np.uint8], aspects: NDArray[np.float64]
) -> NDArray[np.int64]:
    first, second = looks[pairs[:, 0]].astype(np.int16), looks[pairs[:, 1]].astype(np.int16)
    differences = np.abs(first - second)
    ratios = aspects[pairs[:, 0]] / aspects[pairs[:, 1]]
    is_alike = (differences.max(axis=1) <= MAX_DIFFERENCE) & (
        differences.mean(axis=1) <= MAX_MEAN_DIFFERENCE
    )
    return pairs[is_alike & (np.abs(np.log(ratios)) < 0.02)]


def groups_of(pairs: NDArray[np.int64], count: int) -> Sequence[Sequence[int]]:
    """Return the connected components of the pairs, each in ascending order.

    Args:
        pairs: Indices of items, [pairs, 2].
        count: Number of items.
    """
    from scipy.sparse import coo_matrix  # see `alike`
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(pairs), np.bool_)
    graph = coo_matrix((ones, (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    _, group_of = connected_components(graph, directed=False)
    groups: dict[int, list[int]] = {}
    for index in np.unique(pairs).tolist():
        groups.setdefault(int(group_of[index]), []).append(index)
    return list(groups.values())
