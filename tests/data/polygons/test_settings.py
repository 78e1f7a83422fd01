"""What the settings are if nobody sets them, and their limits."""

from jumar.data.polygons import (
    augmentation,
    detection_data,
    written,
)
from tests.data.setting_limits import limits_of


def test_detector_settings_have_their_defaults_and_limits() -> None:
    assert limits_of(detection_data.DetectionData()) == {
        "path": ("", None, None, False),
        "labels": ("", None, None, False),
        "eval_path": ("", None, None, True),
        "eval_labels": ("", None, None, True),
        "image_size": (512, 32, None, False),
        "eval_longest": (1200, 32, None, False),
        "eval_scale": (1.0, 0.01, None, False),
        "eval_rounding": ("up", None, None, False),
        "eval_batch_size": (1, 1, None, True),
        "protocol": ("icdar2015", None, None, True),
        "least_word": (10.0, 0, None, False),
        "augmentation": (augmentation.TextAugmentation(), None, None, False),
    }
    assert limits_of(augmentation.TextAugmentation()) == {
        "scales": ((0.5, 1.0, 2.0, 3.0), 0.01, None, False),
        "background_share": (0.375, 0, 1, False),
        "crop_attempts": (50, 1, None, False),
        "least_side": (0.1, 0.01, 1, False),
        "rotation": (0.0, 0, 180, False),
        "brightness": (0.0, 0, None, False),
        "contrast": ((1.0, 1.0), 0, None, False),
        "saturation": ((1.0, 1.0), 0, None, False),
    }


def test_written_sets_have_default_sizes() -> None:
    assert written.Writing() == written.Writing(
        script="latin",
        width=640,
        height=480,
        words=(4, 24),
        text_height=(14, 60),
        rotation=25.0,
        fonts=(),
        photographs=None,
        seed=0,
    )
