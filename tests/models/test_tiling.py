"""Large images in pieces: exact tiles, averaged patches."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.models.tiling import in_patches, in_tiles, patch_starts
from jumar.models.videnn import DEPTH, SpatialCNN, Temp3CNN


@pytest.fixture(scope="module")
def deep() -> SpatialCNN:
    """A full-depth network of small width whose every pixel counts."""
    torch.manual_seed(3)
    return SpatialCNN(width=4).eval().double()


@settings(max_examples=15)
@given(
    height=st.integers(1, 90),
    width=st.integers(1, 90),
    tile=st.integers(20, 60),
    frames=st.integers(1, 2),
)
def test_tiles_equal_the_whole_image(height: int, width: int, tile: int, frames: int) -> None:
    torch.manual_seed(3)
    network = Temp3CNN(width=2).eval().double()
    pictures = torch.rand(frames, 9, height, width).double()
    with torch.no_grad():
        result = in_tiles(network, pictures, tile=tile, radius=DEPTH)
        torch.testing.assert_close(result, network(pictures), rtol=1e-11, atol=1e-12)


def test_radius_below_the_receptive_field_differs_from_the_whole(deep: SpatialCNN) -> None:
    pictures = torch.rand(1, 3, 70, 30).double()
    with torch.no_grad():
        result = in_tiles(deep, pictures, tile=35, radius=DEPTH - 1)
        assert not torch.allclose(result, deep(pictures), rtol=1e-11, atol=1e-13)


def test_tiles_are_at_most_tile_plus_twice_the_radius() -> None:
    sizes: list[tuple[int, ...]] = []

    def network(pictures: torch.Tensor) -> torch.Tensor:
        sizes.append(tuple(pictures.shape[2:]))
        return pictures

    pictures = torch.rand(1, 3, 500, 333)
    assert torch.equal(in_tiles(network, pictures, tile=64, radius=20), pictures)
    assert max(max(size) for size in sizes) == 64 + 2 * 20


@settings(max_examples=30)
@given(
    height=st.integers(1, 30),
    width=st.integers(1, 30),
    patch=st.integers(1, 12),
    stride=st.integers(1, 12),
    batch=st.integers(1, 40),
)
def test_patches_through_an_identity_network_give_the_image(
    height: int, width: int, patch: int, stride: int, batch: int
) -> None:
    stride = min(stride, patch)
    pictures = torch.rand(2, 1, height, width)
    result = in_patches(lambda p: p, pictures, patch=patch, stride=stride, batch=batch)
    torch.testing.assert_close(result, pictures)


def test_patches_are_placed_as_in_the_original() -> None:
    # 43 px every 7 px, as its evaluation lists them, on the two sizes of Set12.
    assert patch_starts(256, 43, 7) == [*range(0, 213, 7), 213]
    assert len(patch_starts(512, 43, 7)) == 68
    assert patch_starts(43, 43, 7) == [0]
    assert patch_starts(50, 43, 7) == [0, 7]


def test_overlapping_patches_are_averaged_with_equal_weight() -> None:
    pictures = torch.zeros(1, 1, 1, 5)
    shares = torch.tensor([1.0, 2.0, 3.0])
    result = in_patches(lambda p: p + shares, pictures, patch=3, stride=2, batch=1)
    assert result.flatten().tolist() == [1.0, 2.0, 2.0, 2.0, 3.0]


def test_stride_must_not_leave_gaps() -> None:
    pictures = torch.rand(1, 1, 4, 4)
    for stride in (0, 4):
        with pytest.raises(ValueError, match="leave gaps") as error:
            in_patches(lambda p: p, pictures, patch=3, stride=stride, batch=1)
        assert str(error.value) == f"patches of 3 px every {stride} px leave gaps"
    for stride in (1, 3):
        result = in_patches(lambda p: p, pictures, patch=3, stride=stride, batch=1)
        torch.testing.assert_close(result, pictures)
    assert in_patches(lambda p: p, pictures[:0], patch=3, stride=1, batch=1).shape == (0, 1, 4, 4)


def test_images_up_to_a_tile_are_processed_whole_and_others_in_rows_of_tiles() -> None:
    seen: list[tuple[int, ...]] = []

    def network(pictures: torch.Tensor) -> torch.Tensor:
        seen.append(tuple(pictures.shape[2:]))
        return 2 * pictures[:, :1]

    for height, width in ((8, 8), (9, 8), (8, 17)):
        pictures = torch.rand(2, 3, height, width)
        result = in_tiles(network, pictures, tile=8, radius=2)
        assert torch.equal(result, 2 * pictures[:, :1])
    # To each side as far as there is an image.
    assert seen == [(8, 8), (9, 8), (3, 8), (8, 10), (8, 11), (8, 3)]


def test_patches_are_processed_in_batches_in_reading_order_of_each_image() -> None:
    sizes: list[int] = []
    firsts: list[float] = []

    def network(patches: torch.Tensor) -> torch.Tensor:
        sizes.append(len(patches))
        firsts.extend(patches[:, 0, 0, 0].tolist())
        return patches

    pictures = torch.arange(2 * 3 * 5, dtype=torch.float32).view(2, 1, 3, 5)
    in_patches(network, pictures, patch=2, stride=2, batch=5)
    assert sizes == [5, 5, 2]
    one = [0.0, 2, 3, 5, 7, 8]
    assert firsts == [*one, *(value + 15 for value in one)]
