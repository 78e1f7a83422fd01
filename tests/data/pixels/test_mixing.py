from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.pixels.mixing import (
    BOX,
    LABEL,
    OPACITY,
    SHARE,
    CutMix,
    Mix,
    MixingSettings,
    Mixup,
    MixupOrCutMix,
    NoMixing,
    PairMixer,
    mixed,
)
from jumar.data.samples import SampleKey
from jumar.ground.errors import UserError
from jumar.settings import describe

KINDS = [Mixup(alpha=1.0), CutMix(), MixupOrCutMix()]
SIDE = 12


def pictures(count: int) -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    shape = (count, 3, SIDE, SIDE)
    return {
        "image": torch.randint(0, 256, shape, dtype=torch.uint8, generator=random),
        "label": torch.arange(count),
    }


def keys(count: int) -> list[SampleKey]:
    return [SampleKey(index % 3, 7 * index) for index in range(count)]


def mix(settings: MixingSettings, count: int = 8) -> dict[str, torch.Tensor]:
    return dict(PairMixer(settings=settings, seed=2)(pictures(count), keys(count)))


@pytest.mark.parametrize("settings", KINDS)
def test_share_of_the_own_label_is_the_share_of_the_own_image(
    settings: MixingSettings,
) -> None:
    batch = mix(settings, 64)
    own = torch.zeros(64, 3, SIDE, SIDE)
    own[::2] = 1.0  # every image of ones has a partner of zeros
    left = mixed(own, batch).mean(dim=(1, 2, 3))
    expected = torch.where(torch.arange(64) % 2 == 0, batch[SHARE], 1 - batch[SHARE])
    assert torch.allclose(left, expected, atol=1e-6)
    assert batch[LABEL].tolist() == [index ^ 1 for index in range(64)]
    assert len(set(batch[SHARE].tolist())) > 10


def test_cutmix_copies_pixels_of_the_partner_and_keeps_the_others() -> None:
    batch = mix(CutMix(), 32)
    images = batch["image"].float()
    result = mixed(images, batch)
    for row in range(32):
        top, left, bottom, right = batch[BOX][row].tolist()
        inside = torch.zeros(SIDE, SIDE, dtype=torch.bool)
        inside[top:bottom, left:right] = True
        assert torch.equal(result[row][:, inside], images[row ^ 1][:, inside])
        assert torch.equal(result[row][:, ~inside], images[row][:, ~inside])


@pytest.mark.parametrize("settings", KINDS)
@given(cut=st.sampled_from([2, 4, 6]))
def test_partial_batches_are_mixed_like_the_whole(settings: MixingSettings, cut: int) -> None:
    whole = mix(settings)
    mixer = PairMixer(settings=settings, seed=2)
    parts = [
        mixer({name: value[rows] for name, value in pictures(8).items()}, keys(8)[rows])
        for rows in (slice(0, cut), slice(cut, 8))
    ]
    for name, value in whole.items():
        assert torch.equal(torch.cat([part[name] for part in parts]), value)
    images = torch.cat([mixed(part["image"].float(), part) for part in parts])
    assert torch.equal(images, mixed(whole["image"].float(), whole))


def test_other_keys_and_seeds_mix_differently() -> None:
    shares = mix(Mixup(alpha=1.0))[SHARE]
    other_seed = PairMixer(settings=Mixup(alpha=1.0), seed=3)(pictures(8), keys(8))[SHARE]
    later = [SampleKey(key.epoch + 1, key.index) for key in keys(8)]
    other_epoch = PairMixer(settings=Mixup(alpha=1.0), seed=2)(pictures(8), later)[SHARE]
    assert not torch.isclose(shares, other_seed).any()
    assert not torch.isclose(shares, other_epoch).any()


def test_unmixed_pairs_keep_their_bits() -> None:
    batch = mix(CutMix(probability=0.0))
    images = batch["image"].float() / 7
    assert torch.equal(mixed(images, batch), images)
    assert batch[SHARE].tolist() == [1.0] * 8


def test_cutmix_areas_and_mixup_shares_follow_a_beta_distribution() -> None:
    random = np.random.default_rng(1)
    shares = [Mixup(alpha=0.2).drawn(random, 8, 8) for _ in range(4000)]
    opacity = np.array([each.opacity for each in shares if each])
    # Beta(a, a) has mean 1/2 and variance 1 / (4 (2a + 1)).
    assert opacity.mean() == pytest.approx(0.5, abs=0.03)
    assert opacity.var() == pytest.approx(1 / (4 * 1.4), abs=0.01)
    boxes = [CutMix().drawn(random, 1000, 1000) for _ in range(4000)]
    shares = np.array([each.own_share(1000, 1000) for each in boxes if each])
    # With alpha 1 the area is uniform before the edges cut it: E of the cut side is s - s^2 / 4.
    assert shares.mean() == pytest.approx(1 - (1 / 2 - 2 * (2 / 5) / 4 + (1 / 3) / 16), abs=0.02)


def test_channels_last_stays_channels_last() -> None:
    batch = mix(MixupOrCutMix())
    images = batch["image"].float().contiguous(memory_format=torch.channels_last)
    assert mixed(images, batch).is_contiguous(memory_format=torch.channels_last)


def test_image_without_a_partner_is_refused() -> None:
    with pytest.raises(UserError, match="in pairs, and 3 is odd"):
        PairMixer(settings=CutMix(), seed=1)(pictures(3), keys(3))


def test_batch_without_mixing_is_returned_unchanged() -> None:
    images = torch.rand(3, 3, 4, 4)
    assert mixed(images, {"image": images}) is images
    assert OPACITY not in pictures(2)


def test_settings_have_their_defaults_and_bounds() -> None:
    rows = [
        [(row.path, row.value, row.allowed) for row in describe(settings)]
        for settings in (Mixup(), CutMix(), MixupOrCutMix())
    ]
    probability = ("probability", 1.0, "0 to 1")
    assert rows == [
        [probability, ("alpha", 0.2, "0.01 or more")],
        [probability, ("alpha", 1.0, "0.01 or more")],
        [
            probability,
            ("mixup_alpha", 0.8, "0.01 or more"),
            ("cutmix_alpha", 1.0, "0.01 or more"),
            ("cutmix_share", 0.5, "0 to 1"),
        ],
    ]


class Drawn:
    """A generator whose numbers are known, and which notes what it was asked for."""

    def __init__(self, beta: float, *integers: int, share: float = 0.0) -> None:
        self.numbers = list(integers)
        self.drawn = beta
        self.share = share
        self.asked: list[float] = []

    def random(self) -> float:
        return self.share

    def beta(self, a: float, b: float) -> float:
        self.asked += [a, b]
        return self.drawn

    def integers(self, below: int) -> int:
        self.asked.append(below)
        return self.numbers.pop(0)


@pytest.mark.parametrize(
    ("beta", "centre", "box"),
    [
        # The box has 0.8 of both sides: 8 of 10 rows, 16 of 20 columns.
        (0.36, (5, 10), (1, 2, 9, 18)),
        (0.36, (2, 15), (0, 7, 6, 20)),
        (0.36, (9, 0), (5, 0, 10, 8)),
        (0.51, (4, 9), (1, 2, 7, 16)),
        (1.0, (4, 9), (4, 9, 4, 9)),
        (0.0, (5, 10), (0, 0, 10, 20)),
    ],
)
def test_cutmix_box_is_centred_and_clipped_at_the_edges(
    beta: float, centre: tuple[int, int], box: tuple[int, int, int, int]
) -> None:
    random: Any = Drawn(beta, *centre)
    assert CutMix(alpha=0.7).drawn(random, 10, 20) == Mix(box, 1.0)
    assert random.asked == [0.7, 0.7, 10, 20]


def test_mixup_covers_the_whole_image_and_the_method_is_chosen_by_share() -> None:
    random: Any = Drawn(0.3)
    assert Mixup(alpha=0.4).drawn(random, 10, 20) == Mix((0, 0, 10, 20), 0.3)
    assert random.asked == [0.4, 0.4]
    either = MixupOrCutMix(mixup_alpha=0.4, cutmix_alpha=0.7, cutmix_share=0.25)
    for share, alpha in ((0.2499, 0.7), (0.25, 0.4)):
        random = Drawn(0.36, 5, 10, share=share)
        assert either.drawn(random, 10, 20) is not None
        assert random.asked[:2] == [alpha, alpha]
    for probability, is_mixed in ((0.25, False), (0.2501, True)):
        random = Drawn(0.3, share=0.25)
        assert (Mixup(probability=probability).drawn(random, 1, 1) is not None) == is_mixed
    assert NoMixing().drawn(random, 1, 1) is None


def test_own_share_is_one_minus_the_partners() -> None:
    assert Mix((1, 2, 4, 7), 0.5).own_share(10, 20) == pytest.approx(1 - 0.5 * 3 * 5 / 200)
    assert Mix((0, 0, 10, 20), 0.25).own_share(10, 20) == 0.75


def test_pair_is_mixed_by_the_seed_and_the_keys_of_both() -> None:
    batch = mix(Mixup(alpha=1.0), 4)
    shares = []
    for one, other in (((0, 0), (1, 7)), ((2, 14), (0, 21))):
        random = np.random.default_rng((7, 2, *one, *other))
        random.random()
        shares += [1 - random.beta(1.0, 1.0)] * 2
    assert batch[SHARE].tolist() == pytest.approx(shares)
    assert batch[OPACITY].tolist() == pytest.approx([1 - share for share in shares])
    assert batch[BOX].tolist() == [[0, 0, SIDE, SIDE]] * 4
    assert [batch[name].dtype for name in (LABEL, SHARE, BOX, OPACITY)] == [
        *(torch.int64, torch.float32, torch.int64, torch.float32),
    ]
    bare = mix(Mixup(probability=0.0), 2)
    assert bare[BOX].tolist() == [[0, 0, 0, 0]] * 2
    assert bare[OPACITY].tolist() == [0.0, 0.0]


def test_error_for_an_image_without_a_partner_says_what_to_set() -> None:
    with pytest.raises(UserError) as caught:
        PairMixer(settings=CutMix(), seed=1)(pictures(5), keys(5))
    assert (caught.value.what, caught.value.where, caught.value.todo) == (
        "images are mixed in pairs, and 5 is odd",
        "data.batch_size",
        "Choose an even number, on every rank.",
    )
