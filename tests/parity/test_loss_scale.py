"""Loss scale and counters after every step, as the managers of npu_bridge had them."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from jumar.ground.errors import UserError
from jumar.precision.loss_scale import ExponentialLossScale, FixedLossScale
from jumar.settings import checked
from tests.parity.fixture import ParityCase


@pytest.fixture(scope="module")
def case(parity: Path) -> ParityCase:
    return ParityCase(parity / "loss_scale.npz")


def test_exponential_manager_passes_through_the_same_states(case: ParityCase) -> None:
    runs = 0
    for number, config in enumerate(case.config["exponential"]):
        for sequence in case.meta["inputs"]:
            manager = ExponentialLossScale(**config).create("cpu")
            scales: list[float] = []
            counters: list[list[int]] = []
            finite = case.input(sequence)
            for is_finite in finite:
                manager.update(torch.tensor(float(not is_finite)))
                scales.append(manager.scale.item())
                counters.append([int(manager.good.item()), int(manager.bad.item())])
            key = f"exponential{number}/{sequence}"
            expected = case.arrays[f"r/{key}/scale"]
            assert np.array_equal(np.asarray(scales, np.float32), expected), key
            assert np.array_equal(np.asarray(counters), case.arrays[f"r/{key}/good_bad"]), key
            assert manager.skipped.item() == int((finite == 0).sum()), key
            runs += 1
    assert runs == len(case.config["exponential"]) * len(case.meta["inputs"]) > 0


def test_fixed_manager_keeps_its_scale_or_refuses_one_below_1(case: ParityCase) -> None:
    for asked, at_start, later in case.arrays["r/fixed"]:
        if math.isnan(at_start):
            with pytest.raises(UserError, match="1 or more"):
                checked(FixedLossScale(init_loss_scale=asked)).create("cpu")
            continue
        manager = checked(FixedLossScale(init_loss_scale=asked)).create("cpu")
        assert manager.scale.item() == at_start
        for found_bad in (0.0, 1.0, 1.0, 1.0):
            manager.update(torch.tensor(found_bad))
        assert manager.scale.item() == later
        assert (manager.good.item(), manager.bad.item()) == (0, 0)
