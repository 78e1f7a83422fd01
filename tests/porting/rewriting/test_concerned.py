"""Which scripts are looked at."""

import pytest

from jumar.porting.options import PortOptions
from jumar.porting.rewriting.concerned import rules_may_apply
from jumar.porting.script.source import SourceText


@pytest.mark.parametrize(
    ("text", "tensorflow", "torch"),
    [
        *(("import numpy", False, False), ("tf.add(x)", True, False), ("tfx", False, False)),
        *(("import torch", False, True), ("model.fit(x)", True, False), ("npu_x", True, True)),
        *(("hvd.init()", True, False), ("nvidia-smi", False, True), ("CUDA", True, True)),
        *(("import cv", True, False), ("import cv2", False, False), ("model.fits", False, False)),
    ],
)
def test_script_is_examined_if_it_mentions_its_library(
    text: str, tensorflow: bool, torch: bool
) -> None:
    source = SourceText(text)
    assert rules_may_apply(source, PortOptions()) is tensorflow
    assert rules_may_apply(source, PortOptions(source="torch")) is torch
