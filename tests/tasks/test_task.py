"""What holds for all tasks: their headlines, the settings of their losses, records that stay."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch

from jumar.data.samples import Batch
from jumar.tasks.adversarial_losses import AdversarialLoss, PenalizedLoss
from jumar.tasks.classification import ClassificationObjective, ClassificationTask
from jumar.tasks.code_prior import CodePriorTask, PriorObjective
from jumar.tasks.denoising import DenoisingLoss, DenoisingObjective, DenoisingTask
from jumar.tasks.detection_errors import ErrorSheets
from jumar.tasks.detection_losses import BoxLoss, KernelLoss
from jumar.tasks.encoder_objective import EncoderObjective
from jumar.tasks.generation import (
    DiscriminatorObjective,
    GenerationTask,
    GeneratorObjective,
)
from jumar.tasks.keywords import KeywordObjective, KeywordTask
from jumar.tasks.pretraining import PretrainingObjective, PretrainingTask
from jumar.tasks.reading import ReadingObjective, ReadingTask
from jumar.tasks.reconstruction import ReconstructionObjective, ReconstructionTask
from jumar.tasks.sentences import SentenceObjective, SentenceTask
from jumar.tasks.tagging import TaggingObjective, TaggingTask
from jumar.tasks.task import Headline, Objective, Task
from jumar.tasks.text_detection import (
    BoxObjective,
    BoxReader,
    DetectionObjective,
    KernelObjective,
    KernelReader,
    TextDetectionTask,
)

LOSS = ("loss",)


@pytest.mark.parametrize(
    ("task", "name", "headline", "unit", "higher_is_better", "gathered"),
    [
        (ClassificationTask, "classification", "top1", "%", True, ()),
        (CodePriorTask, "code prior", "nll", "nats per image", False, ()),
        (DenoisingTask, "denoising", "psnr", "dB", True, ()),
        (GenerationTask, "generation", "swd", "", False, ()),
        (KeywordTask, "keywords", "accuracy", "%", True, ()),
        (PretrainingTask, "pretraining", "masked_lm_accuracy", "%", True, ()),
        (ReadingTask, "reading", "f1", "%", True, ("answers",)),
        (ReconstructionTask, "reconstruction", "mse", "", False, ()),
        (SentenceTask, "sentences", "accuracy", "%", True, ()),
        (TaggingTask, "tagging", "f1", "%", True, ()),
        (TextDetectionTask, "text_detection", "hmean", "%", True, ("counts",)),
    ],
)
def test_checkpoints_are_ranked_by_the_headline_of_their_task(
    task: type[Task],
    name: str,
    headline: str,
    unit: str,
    higher_is_better: bool,
    gathered: tuple[str, ...],
) -> None:
    assert task.name == name
    expected = Headline(name=headline, unit=unit, higher_is_better=higher_is_better)
    assert task.headline == expected
    assert tuple(task.gathered) == gathered


@pytest.mark.parametrize(
    ("objective", "name", "minimized"),
    [
        (ClassificationObjective, "classification", LOSS),
        (PriorObjective, "prior", LOSS),
        (DenoisingObjective, "denoising", LOSS),
        (DiscriminatorObjective, "discriminator", LOSS),
        (GeneratorObjective, "generator", LOSS),
        (KeywordObjective, "keywords", LOSS),
        (PretrainingObjective, "pretraining", ("masked_lm_loss", "next_sentence_loss")),
        (ReadingObjective, "reading", LOSS),
        (ReconstructionObjective, "reconstruction", LOSS),
        (SentenceObjective, "sentences", LOSS),
        (TaggingObjective, "tagging", LOSS),
        (KernelObjective, "detection", ("text", "kernels")),
        (BoxObjective, "detection", ("score", "geometry")),
    ],
)
def test_each_objective_minimises_its_own_terms(
    objective: type[Objective], name: str, minimized: tuple[str, ...]
) -> None:
    assert (objective.name, tuple(objective.minimized)) == (name, minimized)


Row = tuple[Any, str, tuple[str, ...], float | None, float | None]
ADVERSARIAL: dict[str, Row] = {
    "orthogonal": (0.0, "", (), 0.0, None),
    "n_critic": (2, "steps", (), 1, None),
    "truncation": (2.0, "standard deviations", (), 0.01, None),
    "augmentation": ((), "", ("color", "translation", "cutout"), None, None),
}
PENALIZED = {**ADVERSARIAL, "penalty": (10.0, "", (), 0.0, None)}
KERNELS: dict[str, Row] = {"text_weight": (0.7, "", (), 0, 1)}


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        (
            AdversarialLoss,
            {
                "hinge": ADVERSARIAL,
                "gan": ADVERSARIAL,
                "lsgan": ADVERSARIAL,
                "wgan-gp": PENALIZED,
                "wgan-lp": PENALIZED,
                "dragan": PENALIZED,
            },
        ),
        (DenoisingLoss, {"l2_sum_per_batch": {}, "mse_center": {"center": (0, "px", (), 0, None)}}),
        (
            KernelLoss,
            {"dice": KERNELS, "dice_ohem": {**KERNELS, "negatives": (3, "", (), 0, None)}},
        ),
        (
            BoxLoss,
            {
                "dice": {
                    "score_weight": (0.01, "", (), 0, None),
                    "angle_weight": (20.0, "", (), 0, None),
                },
                "balanced": {
                    "score_weight": (1.0, "", (), 0, None),
                    "angle_weight": (10.0, "", (), 0, None),
                },
            },
        ),
    ],
)
def test_loss_defaults_match_the_originals_and_papers(
    family: Any, expected: dict[str, dict[str, Row]]
) -> None:
    result = {
        kind: {
            each.name: (
                each.default,
                each.metadata["unit"],
                each.metadata["choices"],
                each.metadata["minimum"],
                each.metadata["maximum"],
            )
            for each in fields(cls)
        }
        for kind, cls in family.kinds.items()
    }
    assert result == expected


def test_loss_families_and_tasks_require_all_methods() -> None:
    class Unfinished(Task):
        pass

    class Undefined(Objective):
        pass

    halves: list[Any] = [AdversarialLoss, PenalizedLoss, DenoisingLoss, KernelLoss, BoxLoss]
    halves += [DetectionObjective, EncoderObjective, Unfinished, Undefined]
    missing = {cls.__name__: sorted(cls.__abstractmethods__) for cls in halves}
    assert missing == {
        "AdversarialLoss": ["fake", "generated", "real"],
        "PenalizedLoss": ["fake", "generated", "real"],
        "DenoisingLoss": ["total"],
        "KernelLoss": ["terms"],
        "BoxLoss": ["terms"],
        "DetectionObjective": ["sums"],
        "EncoderObjective": ["sums"],
        "Unfinished": ["evaluate_batch", "summarize"],
        "Undefined": ["sums"],
    }
    for cls in halves:
        with pytest.raises(TypeError, match="abstract"):
            cls()


def reader(cls: type[KernelReader] | type[BoxReader]) -> Any:
    return cls(**{each.name: 0 for each in fields(cls)})


def test_objects_holding_networks_or_images_compare_by_identity() -> None:
    for make in (ErrorSheets, lambda: reader(KernelReader), lambda: reader(BoxReader)):
        one, other = make(), make()
        assert one != other
        assert one == one
        assert len({one, other}) == 2


class Plain(Objective):
    """An objective with nothing but what it must have."""

    def sums(self, batch: Batch) -> dict[str, torch.Tensor]:
        return {"loss": batch["x"].sum()}


class Least(Task):
    """The same of a task."""

    def evaluate_batch(self, batch: Batch) -> dict[str, torch.Tensor]:
        return dict(batch)

    def summarize(self, sums: Any) -> dict[str, float]:
        return {name: float(np.sum(value)) for name, value in sums.items()}


def test_objective_defaults_to_every_step_full_decay_and_division_by_samples() -> None:
    objective = Plain()
    batch = {"x": torch.tensor([1.0, 2.0])}
    assert [objective.is_due(step) for step in (0, 1, 7)] == [True] * 3
    assert objective.decays("bias", torch.nn.Parameter(torch.zeros(1)))
    assert objective.weights(batch) == {}
    assert objective(batch) == {"loss": torch.tensor(3.0)}


def test_task_shows_and_names_nothing_by_default() -> None:
    task = Least()
    assert task.averaged is None
    assert task.outputs == task.gathered == ()
    assert task.score_tables({}) == task.illustrate() == ()
