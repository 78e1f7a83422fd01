"""PSENet against the numbers of liuheng92/tensorflow_PSENet in TensorFlow 1.15.

Both ways of computing the 1x1 convolutions are replayed: with channels_last they are matrix
products on a CPU.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from jumar.models.psenet import PSENet, tf_variables
from jumar.tasks.detection_losses import BatchDice, linear_dice
from tests.parity.detectors import (
    MEMORY_FORMATS,
    Results,
    as_images,
    check_variables,
    evaluated,
    loss_targets,
    to_nhwc,
    trained,
)
from tests.parity.fixture import ParityCase


@pytest.fixture(scope="module")
def case(parity: Path) -> ParityCase:
    return ParityCase(parity / "psenet.npz")


def targets(case: ParityCase) -> tuple[torch.Tensor, torch.Tensor]:
    """Kernels and mask of the fixture's loss, [2, 6, 64, 64] and [2, 64, 64]."""
    kernels = loss_targets(case.arrays["r/labels/kernels"].reshape(256, 256, 6))
    mask = loss_targets(case.arrays["r/labels/training_mask"].reshape(256, 256, 1))
    return kernels, mask[:, 0]


def loss(maps: torch.Tensor, kernels: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.stack(list(BatchDice().terms(maps, kernels, mask).values())).sum() / len(maps)


@pytest.fixture(scope="module", params=list(MEMORY_FORMATS))
def results(case: ParityCase, request: pytest.FixtureRequest) -> Results:
    """Everything about the network and its loss, computed here in one memory format."""
    model = PSENet().to(memory_format=MEMORY_FORMATS[request.param])
    variables = tf_variables(model)
    maps, ours = evaluated(case, model, variables)
    ours["eval/maps"] = to_nhwc(maps)
    kernels, mask = targets(case)
    predicted = as_images(case.input("pred_maps")).requires_grad_()
    total = loss(predicted, kernels, mask)
    ours["loss/total"] = total.detach().numpy()
    ours["loss/grad_maps"] = to_nhwc(torch.autograd.grad(total, predicted)[0])
    near = (0.7 * kernels + 0.3 * predicted.detach()).clamp(0, 1)
    ours["loss/total_near"] = loss(near, kernels, mask).numpy()
    ours["loss/dice_per_map_without_ohem"] = np.array(
        [
            1 - linear_dice(predicted[:, n], kernels[:, n], mask).item()
            for n in range(predicted.shape[1])
        ]
    )
    side = case.config["train_size"][0] // 4
    part = (..., slice(side), slice(side))
    ours |= trained(
        case,
        model,
        variables,
        lambda maps: ({"maps": maps}, loss(maps, kernels[part], mask[part])),
    )
    return ours


def test_every_result_matches_the_original_within_tolerance(
    case: ParityCase, results: Results
) -> None:
    wanted = {key for key in case.meta["results"] if key.startswith(("eval/", "loss/", "train/"))}
    assert set(results) == wanted
    for key in sorted(wanted):
        assert case.check(key, results[key]), f"{key} is noise"


def test_variables_match_the_original_in_order(case: ParityCase) -> None:
    with torch.device("meta"):
        model = PSENet()
    check_variables(case, model, tf_variables(model))
