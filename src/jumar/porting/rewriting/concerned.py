"""A quick test of whether a rule could apply to a script, by the words in its text."""

import re

from jumar.porting.options import PortOptions
from jumar.porting.script.source import SourceText

_WORDS = {
    "tensorflow": re.compile(
        r"tensorflow|\btf\b|keras|horovod|\bhvd\b|slim|npu_|CUDA|gelu"
        # A script that trains a model of another module may name neither library.
        r"|\.fit\(|fit_generator|train_on_batch"
        # Libraries that the environment of TensorFlow 1.15 has in newer releases only.
        r"|scipy|arraypad|sklearn\.(?:cross_validation|grid_search|externals)|skimage"
        r"|\bcv\b"
    ),
    "torch": re.compile(
        r"torch|cuda|CUDA|apex|nccl|NCCL|triton|amp|npu|HCCL|flash_attn|bitsandbytes|pynvml|cupy|nvidia-smi"
    ),
}
"""Files without any of these words are skipped: most files of a tree use neither library."""


def rules_may_apply(source: SourceText, options: PortOptions) -> bool:
    """Whether a script mentions anything that the rules port; others are not even parsed."""
    return _WORDS[options.source].search(source.text) is not None
