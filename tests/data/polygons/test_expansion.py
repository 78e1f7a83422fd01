"""Words grow as from a queue, pixel by pixel, and as in the original."""

import json
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.data.polygons.expansion import expanded


def queued(kernels: np.ndarray, least_area: int) -> np.ndarray:
    """The same in plain steps: components by flood fill, then one queue a kernel."""
    _, rows, columns = kernels.shape
    labels = np.zeros((rows, columns), np.int32)
    number = 0
    for start in np.argwhere(kernels[0]).tolist():
        if labels[tuple(start)]:
            continue
        number += 1
        members, stack = [], [tuple(start)]
        labels[tuple(start)] = number
        while stack:
            y, x = stack.pop()
            members.append((y, x))
            for near in ((y, x - 1), (y, x + 1), (y - 1, x), (y + 1, x)):
                inside = 0 <= near[0] < rows and 0 <= near[1] < columns
                if inside and kernels[0][near] and not labels[near]:
                    labels[near] = number
                    stack.append(near)
        if len(members) < least_area:
            for member in members:
                labels[member] = -1
    labels[labels < 0] = 0
    queue = deque((y, x) for y, x in np.argwhere(labels).tolist())
    for kernel in kernels[1:]:
        later: deque[tuple[int, int]] = deque()
        while queue:
            y, x = queue.popleft()
            grew = False
            for near in ((y, x - 1), (y, x + 1), (y - 1, x), (y + 1, x)):
                inside = 0 <= near[0] < rows and 0 <= near[1] < columns
                if inside and kernel[near] and not labels[near]:
                    labels[near] = labels[y, x]
                    queue.append(near)
                    grew = True
            if not grew:
                later.append((y, x))
        queue = later
    return labels


@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.integers(1, 4))
def test_pixels_go_to_the_first_kernel_that_reaches_them(
    seed: int, nested: bool, least_area: int
) -> None:
    random = np.random.default_rng(seed)
    shape = (int(random.integers(1, 7)), *random.integers(1, 24, 2).tolist())
    if nested:
        height = random.random(shape[1:])
        limits = np.sort(random.random(shape[0]))
        kernels = height[None] < limits[:, None, None]
    else:
        kernels = random.random(shape) < random.uniform(0.2, 0.9)
    np.testing.assert_array_equal(
        expanded(kernels, least_area=least_area), queued(kernels, least_area)
    )


def test_touching_blocks_are_separated_by_their_kernels() -> None:
    random = np.random.default_rng(5)
    kernels = np.zeros((6, 60, 90), bool)
    for _ in range(40):
        y, x = random.integers(0, 50), random.integers(0, 80)
        for ring in range(6):
            kernels[
                5 - ring, max(0, y - 5 + ring) : y + 8 - ring, max(0, x - 6 + ring) : x + 9 - ring
            ] = 1
    np.testing.assert_array_equal(expanded(kernels, least_area=1), queued(kernels, 1))


def test_expansion_equals_the_original(parity: Path) -> None:
    original = np.load(parity / "psenet.npz")
    maps = original["in/post_maps_uint8"].astype(np.float32) / 255
    labels = expanded((maps > 0.9).transpose(2, 0, 1), least_area=10)
    np.testing.assert_array_equal(labels, original["r/post/labels"])
    assert json.loads(original["meta"].tobytes())["case"]


@pytest.mark.parametrize("shape", [(6, 8, 9), (1, 8, 9)])
def test_empty_and_full_kernels_are_expanded(shape: tuple[int, int, int]) -> None:
    assert not expanded(np.zeros(shape, bool)).any()
    assert (expanded(np.ones(shape, bool)) == 1).all()
