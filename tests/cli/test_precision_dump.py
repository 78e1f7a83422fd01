"""`jumar precision dump`: steps of recipes, runs and scripts."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jumar.precision.dumps.dump import Call, Dump
from jumar.precision.dumps.ours import find_dumps, read_dump
from tests.cli.in_process import SMALL_RECIPE, here, settings, train

IMPORTED = ("--import", "tests.cli.small_recipe", "--device", "cpu")
SCRIPT = """
import sys
import torch
from layers import make

torch.manual_seed(int(sys.argv[1]))
net = make()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(int(sys.argv[2])):
    optimizer.zero_grad()
    net(torch.randn(4, 3)).square().mean().backward()
    optimizer.step()
print(__name__, sys.argv[0], f"{net[0].weight.sum().item():.9f}")
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of six steps with a checkpoint at step 3."""
    folder = tmp_path_factory.mktemp("finished")
    lengths = settings(training__duration="6it", checkpoints__every="3it")
    train("--run-dir", "r", *lengths, cwd=folder)
    return folder


def calls_of(dump: Dump) -> list[Call]:
    """All but the sums of the log lines, which begin with the process."""
    return [call for call in dump.calls if (call.kind, call.phase) != ("op", "update")]


def test_dumped_step_is_the_trained_one_from_any_checkpoint(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished / "r", tmp_path / "r")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    lengths = settings(training__duration="6it")
    options = ("--level", "tensors", "--steps", "4,5", "--to")
    from_start = here("precision", "dump", *SMALL_RECIPE, *lengths, *options, "d/a", cwd=tmp_path)
    assert "training from step 0 to step 5" in from_start.out
    resumed = here("precision", "dump", "r", *IMPORTED, *options, "d/b", cwd=tmp_path)
    assert "training from step 3 to step 5" in resumed.out
    for step in ("step-00000004", "step-00000005"):
        a, b = (read_dump(tmp_path / "d" / each / step) for each in "ab")
        assert calls_of(a) == calls_of(b)
        assert len(calls_of(a)) > 30
    assert a.facts["seed"] == "1"
    unchanged = {path: path.read_bytes() for path in (tmp_path / "r").rglob("*") if path.is_file()}
    assert unchanged == before


def test_optimizer_fields_that_the_checkpoint_overrules_are_named(
    finished: Path, tmp_path: Path
) -> None:
    rate = settings(optimizer__learning_rate=0.5)
    options = ("precision", "dump", finished / "r", *IMPORTED, "--level", "modules", *rate)
    momentum = settings(optimizer__momentum=0.5)
    resumed = here(*options, *momentum, "--steps", "4", cwd=tmp_path).out
    assert "values of optimizer.momentum are used, not those of --set" in resumed
    assert "learning_rate" not in resumed
    assert "are used" not in here(*options, *momentum, "--steps", "0", cwd=tmp_path).out


def test_layers_and_parameters_have_the_networks_names(tmp_path: Path) -> None:
    here("precision", "dump", *SMALL_RECIPE, cwd=tmp_path)
    dump = read_dump(tmp_path / "dumps" / "small-1")
    assert dump.step == 0
    ops = {(call.op, call.layer, call.phase) for call in dump.calls if call.kind == "op"}
    assert ("aten.convolution.default", "body.0", "forward") in ops
    assert ("aten.convolution_backward.default", "body.0", "backward") in ops
    assert ("aten.addmm.default", "classifier", "forward") in ops
    parameters = {call.op for call in dump.calls if call.kind == "parameter"}
    assert {"body.0.weight", "body.1.bias", "classifier.weight"} <= parameters


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["small", *IMPORTED, "--steps", "2"], "step 2 is beyond the end: the run has 2 steps"),
        (["small", *IMPORTED, "--steps", "-1"], "'-1' is not a list of steps"),
        (["small", *IMPORTED, "--level", "ops"], "unknown level 'ops' Known: modules"),
        (["small", *IMPORTED, "--layers", "boddy.*"], "'boddy.*' matches nothing in the step"),
        (["small", *IMPORTED, "--level", "tensors", "--max-gib", "1e-6"], "nothing was written"),
        (["small", *IMPORTED, "--to", "file/x"], "file is not a folder"),
        (["smal", *IMPORTED], "unknown recipe 'smal'"),
        ([], "one recipe or run is needed, not 0"),
        (["--script", "absent.py"], "absent.py: there is no such file"),
        (
            ["--script", "t.py", "--set", "a=1"],
            "--set, --import and --device do not apply to a script",
        ),
    ],
)
def test_user_errors_are_a_single_message(tmp_path: Path, options: list[str], message: str) -> None:
    (tmp_path / "file").write_text("")
    done = here("precision", "dump", *options, cwd=tmp_path, code=2)
    assert message in done.message
    assert not list(tmp_path.rglob("dump.json"))
    assert not list(tmp_path.rglob("rank-*"))


def python(*arguments: str | Path, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script in a folder with a module of its own, which Python would find beside it."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    (folder / "layers.py").write_text(
        "from torch import nn\ndef make(): return nn.Sequential(nn.Linear(3, 2))\n"
    )
    return folder / "train.py"


def dump_script(script: Path, *arguments: str, steps: str, code: int = 0) -> tuple[str, str]:
    command = ("-m", "jumar", "precision", "dump", "--script", script, "--steps", steps)
    done = python(*command, "--to", "d", "--", *arguments, cwd=script.parents[1], code=code)
    return done.stdout, done.stderr


def test_script_runs_as_it_does_without_the_dump(script: Path) -> None:
    bare = python(script, "7", "3", cwd=script.parents[1])
    out, err = dump_script(script, "7", "3", steps="0,2")
    assert out == bare.stdout
    assert "dumped step 2" in err
    places = find_dumps(script.parents[1] / "d")
    assert [place.step for place in places] == [0, 2]
    parameters = {
        (call.op, call.layer)
        for call in read_dump(places[0].folder).calls
        if call.phase == "update"
    }
    assert parameters == {("0.weight", "0"), ("0.bias", "0")}


def test_script_that_ends_too_early_is_an_error_and_keeps_its_output(script: Path) -> None:
    out, err = dump_script(script, "7", "3", steps="1,8", code=2)
    assert out.startswith("__main__")
    assert "jumar: steps: the training ended before step 8, after 3 steps" in err
    assert [place.step for place in find_dumps(script.parents[1] / "d")] == [1]


def test_script_exceptions_and_exits_pass_through(script: Path) -> None:
    script.write_text("def f():\n    raise KeyError('mine')\nf()\n")
    _, err = dump_script(script, steps="0", code=1)
    assert err == python(script, cwd=script.parents[1], code=1).stderr
    script.write_text("import sys\nsys.exit(5)\n")
    assert dump_script(script, steps="0", code=5) == ("", "")


def test_empty_dump_leaves_no_folder(tmp_path: Path) -> None:
    layers = ("--layers", "none", "--to", "dumps")
    here("precision", "dump", "small", *IMPORTED, *layers, cwd=tmp_path, code=2)
    assert not (tmp_path / "dumps").exists()
