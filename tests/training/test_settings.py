"""What a run does where its recipe says nothing, and which values are accepted."""

from dataclasses import replace

import pytest

from jumar.ground.errors import UserError
from jumar.training.settings import (
    CheckpointSettings,
    EarlyStoppingSettings,
    Optimization,
    ThreadSettings,
    TrainingSettings,
    TransferSettings,
)
from tests.components import accepted
from tests.training.small_tasks import small_plan


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            TrainingSettings,
            {
                "duration": ("90ep", None, None, True),
                "log_every": ("100it", None, None, True),
                "device_load_every_s": (5.0, 0.0, None, True),
                "evaluate_every": ("1ep", None, None, True),
                "micro_batch_size": (0, 0, None, True),
                "sums": ("fast", None, None, False),
                "clip": ("none", None, None, False),
                "clip_limit": (1.0, 0.0, None, False),
                "log_gradient_norm": (False, None, None, True),
                "ema_decay": (0.0, 0, 1, False),
                "ema_warm_up": (True, None, None, False),
                "channels_last": (True, None, None, False),
                "compile": (False, None, None, True),
                "deterministic": (False, None, None, False),
                "explain_overflow": (False, None, None, True),
            },
        ),
        (
            CheckpointSettings,
            {
                "every": ("1ep", None, None, False),
                "keep": (5, 1, None, False),
                "keep_best": (True, None, None, False),
            },
        ),
        (
            EarlyStoppingSettings,
            {"patience": (0, 0, None, False), "min_delta": (0.0, 0.0, None, False)},
        ),
        (
            ThreadSettings,
            {"intra_op": (0, 0, None, False), "inter_op": (0, 0, None, False)},
        ),
        (
            TransferSettings,
            {
                "start_from": ("", None, None, True),
                "restore_exclude": ((), None, None, True),
                "use_ema": (True, None, None, True),
                "freeze": ((), None, None, False),
                "freeze_batch_norms": (False, None, None, False),
                "unfreeze_at": ("", None, None, False),
            },
        ),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_fields_have_defaults_limits_and_resume_rules(
    settings: type, expected: dict[str, tuple[object, ...]]
) -> None:
    assert accepted(settings) == expected


def test_objective_without_an_optimizer_is_refused_listing_those_with_one() -> None:
    plan = small_plan(objectives=("discriminator", "generator"))
    assert isinstance(plan.optimization_of("generator"), Optimization)
    with pytest.raises(UserError) as refused:
        plan.optimization_of("points")
    assert str(refused.value) == (
        "the recipe 'points' defines no optimizer for the objective 'points'\n"
        "  Its `optimization()` names: discriminator, generator."
    )
    with pytest.raises(UserError, match="names: none"):
        replace(plan, optimization={}).optimization_of("points")
