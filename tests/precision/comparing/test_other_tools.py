"""A step that msprobe dumped pairs with our own dump of it, down to the parameters' gradients."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jumar.precision.comparing.compare import compare_dumps
from jumar.precision.dumps.dump import Dump
from jumar.precision.dumps.opening import open_dump

DEBUGGER = """
class PrecisionDebugger:
    def __init__(self, **options): pass
    def start(self, model): pass
    def stop(self): pass
    def step(self): pass
"""
"""The sample's script drives msprobe, which is not to dump now."""


@pytest.fixture(scope="module")
def ours(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Dump:
    """Our dump of the step of which the samples are msprobe's."""
    folder = tmp_path_factory.mktemp("ours")
    (folder / "msprobe").mkdir()
    (folder / "msprobe/__init__.py").touch()
    (folder / "msprobe/pytorch.py").write_text(DEBUGGER)
    script = shared / "data/dumps/own/generator/train_tiny.py"
    command = [sys.executable, "-m", "jumar", "precision", "dump", "--script", str(script)]
    command += ["--steps", "0", "--to", str(folder / "dump"), "--", "--config", "none"]
    paths = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"PYTHONPATH": paths})
    return open_dump(folder / "dump")


@pytest.fixture
def golden(shared: Path) -> Path:
    return shared / "data/dumps/own/tf_fp32/golden/statistics_mix"


def test_all_parameters_and_layers_pair_without_offenders(ours: Dump, golden: Path) -> None:
    theirs = open_dump(golden)
    for before, after in ((theirs, ours), (ours, theirs)):
        compared = compare_dumps(before, after)
        paired = [call.pair for call in compared.calls]
        for kind in ("parameter", "module"):
            number = sum(call.kind == kind for call in theirs.calls)
            assert sum(pair.before.kind == kind for pair in paired) == number
        assert all(pair.before.layer == pair.after.layer for pair in paired)
        gradients = [
            row
            for call in compared.calls
            for row in call.rows
            if row.value.role == "gradient" and row.difference is not None
        ]
        assert len(gradients) == 29
        assert all(row.difference and row.difference.lower < 1e-5 for row in gradients)
        assert not compared.offenders
        assert compared.flagged == 0
        assert any("Gradients of layers' inputs" in notice for notice in compared.notices)


def test_operands_pair_even_in_another_order(ours: Dump, golden: Path) -> None:
    compared = compare_dumps(open_dump(golden), ours)
    (linear,) = [
        call
        for call in compared.calls
        if (call.call.op, call.call.layer) == ("Functional.linear", "blocks.0.attn.out")
    ]
    # Data and weight have the same number of elements.
    shapes = [(row.value.name, row.partner.name) for row in linear.rows if row.ratio is None]
    assert sorted(shapes) == [("0", "1"), ("1", "2"), ("2", "0")]
    assert linear.ratio < 1


def test_fault_in_a_parameters_gradient_is_named_first(
    ours: Dump, golden: Path, tmp_path: Path
) -> None:
    shutil.copytree(golden, tmp_path / "faulty")
    (path,) = tmp_path.rglob("dump.json")
    path.parent.chmod(0o755)
    path.chmod(0o644)
    content = json.loads(path.read_text())
    (gradient,) = content["data"]["Module.blocks.1.fc1.Linear.parameters_grad.0"]["weight"]
    gradient |= {name: 0.35 * gradient[name] for name in ("Max", "Min", "Mean", "Norm")}
    path.write_text(json.dumps(content))
    compared = compare_dumps(ours, open_dump(tmp_path / "faulty"))
    assert [call.name for call in compared.offenders] == [
        "blocks.1.fc1: blocks.1.fc1.weight update"
    ]
