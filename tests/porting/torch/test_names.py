"""The names of torch_npu in ported PyTorch scripts, checked against the real package."""

import ast
import json

import pytest
from scripts.write_rules_page import read_examples

from jumar.porting.options import PortOptions
from jumar.porting.rewriting.registry import all_rules
from jumar.porting.torch.names import (
    NEWER_NAMES,
    NPU_NAMES,
    RENAMED,
    SUBMODULES,
    TENSOR_TYPES,
    npu_counterpart,
)
from tests.npu_standin.extract_names import TABLE

RELEASES = json.loads(TABLE.read_text())
OLD, NEW = (set(modules["torch_npu.npu"]) for modules in RELEASES.values())
MADE_IN_CPP = TENSOR_TYPES
"""Not bound by a Python file of the wheel, which is all that the table was read from."""


def test_every_table_name_exists_in_both_releases() -> None:
    assert NPU_NAMES <= OLD & NEW
    assert set(RENAMED.values()) <= OLD & NEW
    assert SUBMODULES <= OLD & NEW


def test_newer_names_exist_only_in_the_newer_release() -> None:
    assert NEWER_NAMES <= NEW - OLD


def test_every_public_name_of_both_releases_is_listed() -> None:
    torch_cuda = pytest.importorskip("torch.cuda")
    both = {name for name in torch_cuda.__all__ if name in OLD & NEW}
    assert both <= NPU_NAMES | TENSOR_TYPES


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("", ""),
        ("is_available", "is_available"),
        ("amp.GradScaler", "amp.GradScaler"),
        ("amp.autocast_mode.autocast", "amp.autocast_mode.autocast"),
        ("amp.no_such_thing", None),
        ("CUDAGraph", "NPUGraph"),
        ("CUDAGraph.capture_begin", "NPUGraph.capture_begin"),
        ("nvtx.range_push", None),
        ("FloatTensor", "FloatTensor"),
        ("ipc_collect", "ipc_collect"),
        ("cudart", None),
    ],
)
def test_names_below_torch_cuda_have_their_counterpart(name: str, wanted: str | None) -> None:
    assert npu_counterpart(name) == wanted


def test_ported_examples_use_only_known_names() -> None:
    known = OLD | NEW | MADE_IN_CPP
    for rule in all_rules():
        for example in read_examples(rule).examples:
            if example.options.source == PortOptions(source="torch").source:
                assert names_below_npu(example.after) <= known, rule.id


def names_below_npu(text: str) -> set[str]:
    return {
        node.attr
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "npu"
    }
