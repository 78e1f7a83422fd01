"""EAST against the numbers of a TensorFlow 1.15 implementation (numbers only: its code is GPL).

Both ways of computing the 1x1 convolutions are replayed: with channels_last they are matrix
products on a CPU.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import ndimage

from jumar.models.east import East, EastMaps, tf_variables
from jumar.tasks.detection_losses import DiceAndBoxes, linear_dice
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

POINTS = ("loss/grad_geometry_points", "loss/grad_geometry_values")
"""The gradient of the geometry: every third pixel that has one as [image, row, column], and the
values there."""


@pytest.fixture(scope="module")
def case(parity: Path) -> ParityCase:
    return ParityCase(parity / "east.npz")


def targets(case: ParityCase) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Score, geometry and mask of the fixture's loss; [2, 64, 64], the geometry [2, 5, 64, 64]."""
    score = loss_targets(case.arrays["r/labels/score"].reshape(256, 256, 1))
    mask = loss_targets(case.arrays["r/labels/training_mask"].reshape(256, 256, 1))
    return score[:, 0], loss_targets(original_geometry(case)), mask[:, 0]


def original_geometry(case: ParityCase) -> NDArray[np.float64]:
    """All of the original's geometry [256, 256, 5], of which 1500 pixels are stored.

    Within a word the angle is constant and the distances grow by one with each pixel along the
    word's axes. The words are the connected parts of the score map.
    """
    words, count = ndimage.label(case.arrays["r/labels/score"].reshape(256, 256))
    places = case.arrays["r/labels/geometry_points"].reshape(-1, 2).astype(np.int64)
    values = case.arrays["r/labels/geometry_values"].reshape(-1, 5).astype(np.float64)
    geometry = np.zeros((256, 256, 5))
    for word in range(1, count + 1):
        stored = words[tuple(places.T)] == word
        angle = np.median(values[stored, 4])
        assert np.abs(values[stored, 4] - angle).max() < 1e-6, "not one word"

        def offsets(pixels: NDArray[np.int64], angle: float = angle) -> NDArray[np.float64]:
            """Distances to the edges, but for a constant each."""
            y, x = pixels.T
            along = x * np.cos(angle) - y * np.sin(angle)
            across = x * np.sin(angle) + y * np.cos(angle)
            return np.stack([across, -along, -across, along], axis=1)

        constants = values[stored, :4] - offsets(places[stored])
        assert np.ptp(constants, axis=0).max() < 1e-3, "not one word"
        pixels = np.argwhere(words == word)
        geometry[tuple(pixels.T)] = np.c_[
            offsets(pixels) + constants.mean(axis=0), np.full(len(pixels), angle)
        ]
    return geometry


def loss(
    predicted: EastMaps, score: torch.Tensor, boxes: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    terms = DiceAndBoxes().terms(predicted.score[:, 0], predicted.geometry, score, boxes, mask)
    return torch.stack(list(terms.values())).sum() / len(score)


@pytest.fixture(scope="module", params=list(MEMORY_FORMATS))
def results(case: ParityCase, request: pytest.FixtureRequest) -> Results:
    """Everything about the network and its loss, computed here in one memory format."""
    model = East().to(memory_format=MEMORY_FORMATS[request.param])
    variables = tf_variables(model)
    detection, ours = evaluated(case, model, variables)
    ours["eval/score"] = to_nhwc(detection.score)
    ours["eval/geometry"] = to_nhwc(detection.geometry)
    score, boxes, mask = targets(case)
    predicted = EastMaps(
        score=as_images(case.input("pred_score")).requires_grad_(),
        geometry=torch.cat(
            [as_images(case.input("pred_distances")), as_images(case.input("pred_angle"))], dim=1
        ).requires_grad_(),
    )
    total = loss(predicted, score, boxes, mask)
    of_score, of_geometry = torch.autograd.grad(total, predicted)
    ours["loss/total"] = total.detach().numpy()
    dice = linear_dice(predicted.score[:, 0], score, mask)
    ours["loss/dice"] = 1 - dice.detach().numpy()
    ours["loss/grad_score"] = to_nhwc(of_score)
    gradient = to_nhwc(of_geometry)
    ours[POINTS[0]] = np.argwhere(gradient.any(axis=-1))[::3]
    ours[POINTS[1]] = gradient[tuple(ours[POINTS[0]].T)]
    near = EastMaps(
        score=0.7 * score[:, None] + 0.3 * predicted.score.detach(),
        geometry=0.9 * boxes + 0.1 * predicted.geometry.detach(),
    )
    ours["loss/total_near"] = loss(near, score, boxes, mask).numpy()
    side = case.config["train_size"][0] // 4
    part = (..., slice(side), slice(side))
    ours |= trained(
        case,
        model,
        variables,
        lambda out: (out._asdict(), loss(out, score[part], boxes[part], mask[part])),
    )
    return ours


def test_every_result_matches_the_original_within_tolerance(
    case: ParityCase, results: Results
) -> None:
    wanted = {key for key in case.meta["results"] if key.startswith(("eval/", "loss/", "train/"))}
    assert set(results) == wanted
    noise = {key for key in sorted(wanted) if not case.check(key, results[key])}
    betas = ("resnet_v1_50/conv1", "resnet_v1_50/block4/unit_3/bottleneck_v1/conv3")
    assert noise == {f"train/grad/{scope}/BatchNorm/beta" for scope in betas}
    for key in noise:
        kernel = results[key.replace("BatchNorm/beta", "weights")]
        assert np.abs(results[key]).max() < 1e-4 * np.abs(kernel).max(), key


def test_variables_match_the_original_in_order(case: ParityCase) -> None:
    with torch.device("meta"):
        model = East()
    check_variables(case, model, tf_variables(model))
