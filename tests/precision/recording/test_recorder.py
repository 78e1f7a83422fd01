"""The whole record of a small step, and who names its layers."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from jumar.ground.errors import UserError
from jumar.observer import DATA
from jumar.precision.dumps.dump import Call, Dump
from jumar.precision.dumps.ours import find_dumps, read_dump
from jumar.precision.recording import dumping
from jumar.precision.recording.calls import Calls
from jumar.precision.recording.contents import Contents
from jumar.precision.recording.dumping import Dumping
from jumar.precision.recording.layers import Layers
from jumar.precision.recording.modules import tensors_in
from jumar.precision.recording.observing import DumpObserver
from jumar.precision.recording.ops import OpRecorder
from jumar.precision.recording.recorder import RecordSettings, StepRecorder
from jumar.precision.recording.scripts import run_script
from jumar.precision.recording.statistics import Meter
from jumar.precision.recording.updates import on_update


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
        self.head = nn.Linear(4, 2, bias=False)

    def forward(self, values: Tensor) -> Tensor:
        return self.head(self.body(values))


def row(call: Call) -> tuple[Any, ...]:
    values = " ".join(
        f"{value.role} {value.name} {'x'.join(map(str, value.shape))}," for value in call.values
    )
    return call.kind, call.op, call.layer, call.number, call.phase, values.rstrip(",")


def recorded(settings: RecordSettings, *, modules: Any = None) -> Dump:
    """One step, without a file."""
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    recorder = StepRecorder(None, settings, rank=2, modules=modules and modules(net))
    recorder.begin(7)
    loss = net(torch.ones(5, 3)).sum()
    loss.backward()
    dump = recorder.take(optimizer)
    assert not recorder.is_recording
    assert recorder.is_empty
    return dump


LAYERS: list[tuple[Any, ...]] = [
    ("module", "Linear", "body.0", 0, "forward", "input 0 5x3, output 0 5x4"),
    ("module", "Tanh", "body.1", 0, "forward", "input 0 5x4, output 0 5x4"),
    ("module", "Sequential", "body", 0, "forward", "input 0 5x3, output 0 5x4"),
    ("module", "Linear", "head", 0, "forward", "input 0 5x4, output 0 5x2"),
    ("module", "Net", "", 0, "forward", "input 0 5x3, output 0 5x2"),
    ("module", "Net", "", 0, "backward", "input 0 5x2"),
    ("module", "Linear", "head", 0, "backward", "input 0 5x2, output 0 5x4"),
    ("module", "Sequential", "body", 0, "backward", "input 0 5x4"),
    ("module", "Tanh", "body.1", 0, "backward", "input 0 5x4, output 0 5x4"),
    ("module", "Linear", "body.0", 0, "backward", "input 0 5x4"),
    ("parameter", "body.0.weight", "body.0", 0, "update", "parameter 0 4x3, gradient 0 4x3"),
    ("parameter", "body.0.bias", "body.0", 0, "update", "parameter 0 4, gradient 0 4"),
    ("parameter", "head.weight", "head", 0, "update", "parameter 0 2x4, gradient 0 2x4"),
]


def test_layers_are_recorded_inside_out_and_backward_outside_in() -> None:
    dump = recorded(RecordSettings(level="modules"))
    assert [row(call) for call in dump.calls] == LAYERS
    assert (dump.step, dump.rank, dump.framework) == (7, 2, "pytorch")
    assert dump.facts == {"torch": torch.__version__, "level": "modules"}
    assert dump.notices == ["No optimizer made an update in this step."]


def test_ops_are_recorded_in_the_layer_that_runs_them() -> None:
    dump = recorded(RecordSettings(parameters=False, sample=3), modules=lambda net: {"h": net.head})
    ones, *ops = [row(call)[1:] for call in dump.calls if call.kind == "op"]
    assert ones == ("aten.ones.default", "", 0, "forward", "output 0 5x3")
    # Only the head has a name; the backward of all else comes after it.
    assert ops == [
        (
            "aten.addmm.default",
            "",
            0,
            "forward",
            "input 0 4, input 1 5x3, input 2 3x4, output 0 5x4",
        ),
        ("aten.tanh.default", "", 0, "forward", "input 0 5x4, output 0 5x4"),
        ("aten.mm.default", "h", 0, "forward", "input 0 5x4, input 1 4x2, output 0 5x2"),
        ("aten.sum.default", "", 0, "forward", "input 0 5x2, output 0 "),
        ("aten.ones_like.default", "", 0, "forward", "input 0 , output 0 "),
        ("aten.mm.default", "h", 0, "backward", "input 0 2x5, input 1 5x4, output 0 2x4"),
        ("aten.mm.default", "h", 1, "backward", "input 0 5x2, input 1 2x4, output 0 5x4"),
        ("aten.tanh_backward.default", "", 0, "backward", "input 0 5x4, input 1 5x4, output 0 5x4"),
        ("aten.mm.default", "", 0, "backward", "input 0 4x5, input 1 5x3, output 0 4x3"),
        ("aten.sum.dim_IntList", "", 0, "backward", "input 0 5x4, output 0 1x4"),
    ]
    assert dump.facts["sample"] == "3"
    assert dump.notices == []
    sums = [call for call in dump.calls if call.op == "aten.sum.dim_IntList"]
    assert sums[0].arguments == {"dim": "[0]", "keepdim": "True"}


@pytest.mark.parametrize(
    ("settings", "what", "where", "todo"),
    [
        ({"max_gib": 0.0}, "0 GiB is not above 0", "--max-gib", ""),
        ({"sample": -1}, "-1 is not a number of elements", "--sample", "Allowed: 0 or more."),
        (
            {"ops": ["x"], "level": "modules"},
            "the level 'modules' records no ops",
            "--ops",
            "Omit one of them, or choose --level statistics.",
        ),
    ],
)
def test_invalid_settings_are_refused(
    settings: dict[str, Any], what: str, where: str, todo: str
) -> None:
    with pytest.raises(UserError) as error:
        StepRecorder(None, RecordSettings(**settings))
    assert (error.value.what, error.value.where, error.value.todo) == (what, where, todo)
    RecordSettings(max_gib=0.5, sample=0).check()
    assert RecordSettings() == RecordSettings(
        level="statistics",
        counts=True,
        parameters=True,
        ops=(),
        layers=(),
        max_gib=10.0,
        sample=0,
        digests=False,
    )


def test_more_tensors_than_allowed_are_an_error_and_nothing_is_written(tmp_path: Path) -> None:
    def dump(elements: int) -> None:
        with Dumping(
            tmp_path / str(elements),
            steps=[0],
            settings=RecordSettings(level="tensors", max_gib=800 / 2**30),
        ):
            torch.ones(elements).abs()

    dump(100)
    with pytest.raises(UserError) as error:
        dump(101)
    assert (error.value.what, error.value.where) == (
        "the tensors of step 0 need 808 B, which exceeds the limit of 800 B; nothing was written",
        "--max-gib",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["100"]


def test_folder_with_a_dump_of_this_rank_is_refused(tmp_path: Path) -> None:
    with Dumping(tmp_path, steps=[0], settings=RecordSettings()):
        torch.ones(3).abs()
    with pytest.raises(UserError) as error:
        StepRecorder(tmp_path, RecordSettings())
    assert str(error.value) == (
        f"{tmp_path}: already contains 1 dump, for instance of step 0\n"
        "  Choose another folder, or delete that one."
    )
    StepRecorder(tmp_path, RecordSettings(), rank=1)


def train(net: nn.Module, dump: Dumping | None, steps: int, *, explicit: bool = False) -> None:
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(steps):
        net(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        if explicit and dump is not None:
            dump.step()


def test_every_dump_is_reported_with_step_and_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    messages: list[str] = []
    with Dumping(tmp_path, steps=[1, 0], settings=RecordSettings(), say=messages.append) as dump:
        train(nn.Linear(3, 2), dump, 3)
    places = [tmp_path / f"step-0000000{step}" / "rank-0" for step in (0, 1)]
    assert messages == [f"jumar: dumped step {at}: {place}" for at, place in enumerate(places)]
    with Dumping(tmp_path / "x", steps=[2], settings=RecordSettings()) as dump:
        train(nn.Linear(3, 2), dump, 3, explicit=True)
    (place,) = find_dumps(tmp_path / "x")
    assert place.step == 2
    assert capsys.readouterr().err == f"jumar: dumped step 2: {place.folder}\n"


@pytest.mark.parametrize(
    ("steps", "what"), [([], "there is no step to dump"), ([3, -2], "there is no step -2")]
)
def test_nonexistent_steps_are_refused(tmp_path: Path, steps: list[int], what: str) -> None:
    with pytest.raises(UserError) as error:
        Dumping(tmp_path, steps=steps, settings=RecordSettings())
    assert (error.value.what, error.value.where, error.value.todo) == (
        *(what, "steps", "Steps are counted from 0."),
    )


def test_steps_never_reached_are_named(tmp_path: Path) -> None:
    dump = Dumping(tmp_path / "x", steps=[5, 3], settings=RecordSettings())
    with pytest.raises(UserError) as error, dump:
        train(nn.Linear(3, 2), dump, 1)
    assert (error.value.what, error.value.where) == (
        "the training ended before step 3, after 1 step",
        "steps",
    )
    assert not (tmp_path / "x").exists()


def test_rank_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, rank in (("3", 3), ("-1", 0), ("x", 0), (None, 0)):
        monkeypatch.delenv("RANK", raising=False)
        if text is not None:
            monkeypatch.setenv("RANK", text)
        assert dumping._rank() == rank


class Wrapper(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.module = inner

    def forward(self, values: Tensor) -> Tensor:
        return self.module(values)


class DataParallel(Wrapper):
    pass


def paths(layers: Layers, *nets: nn.Module) -> list[list[str]]:
    """The stack of paths whenever a layer runs."""
    seen: list[list[str]] = []
    handles = []
    with layers.followed():
        for net in nets:
            for each in net.modules():
                if not list(each.children()):
                    handles.append(
                        each.register_forward_pre_hook(lambda *_: seen.append([*layers.stack]))
                    )
            net(torch.ones(1, 3))
    for handle in handles:
        handle.remove()
    assert layers.stack == []
    return seen


def test_outermost_module_names_its_children() -> None:
    plain = [["", "body", "body.0"], ["", "body", "body.1"], ["", "head"]]
    assert paths(Layers(), Net()) == plain
    assert paths(Layers(), DataParallel(Net())) == plain
    assert paths(Layers(), Wrapper(nn.Tanh())) == [["", "module"]]
    # A second network with the same paths has its class before them.
    layers = Layers()
    two = paths(layers, Net(), Net())
    assert two[:3] == plain
    assert two[3:] == [
        ["Net", "Net.body", "Net.body.0"],
        ["Net", "Net.body", "Net.body.1"],
        ["Net", "Net.head"],
    ]
    net = Net()
    known = Layers({"x": net.body, "y": net.head})
    assert paths(known, net) == [["x"], ["x"], ["y"]]
    assert known.parameter_of(net.head.weight) == ("y", "y.weight")
    assert known.parameter_of(next(net.body[0].parameters())) is None
    assert Layers({"": net.head}).parameter_of(net.head.weight) == ("", "weight")


def test_ops_between_backward_and_next_forward_belong_to_the_update() -> None:
    layers = Layers({"net": nn.Tanh()})
    assert layers.current() == ("forward", "")
    weight = torch.ones(3, requires_grad=True)
    seen: list[tuple[str, str]] = []
    hidden = weight * 2
    hidden.register_hook(lambda _: seen.append(layers.current()))
    hidden.sum().backward()
    assert [phase for phase, _ in seen] == ["backward"]
    assert layers.current() == ("update", "")
    layers.enter("net")
    assert layers.current() == ("forward", "net")
    hidden = weight * 2
    hidden.register_hook(lambda _: seen.append(layers.current()))
    hidden.sum().backward()
    layers.begin()
    assert layers.current() == ("forward", "")
    assert seen[1:] == [("backward", "net")]


def test_tensors_are_named_by_their_position_in_the_module_inputs() -> None:
    from dataclasses import dataclass

    @dataclass
    class Output:
        logits: Any
        size: int

    a, b, c, d = (torch.ones(size) for size in range(4))
    nested = ([a, 1], {"x": b, "y": (c,)}, Output(d, 3), Output)
    result = [(name, each.numel()) for name, each in tensors_in(nested)]
    assert result == [("0.0", 0), ("1.x", 1), ("1.y.0", 2), ("2.logits", 3)]
    assert [name for name, _ in tensors_in(a)] == ["0"]


def test_our_training_loop_is_recorded_per_step_without_data_loading(tmp_path: Path) -> None:
    messages: list[str] = []
    recorder = StepRecorder(tmp_path / "x", RecordSettings(parameters=False))
    observer = DumpObserver(recorder, steps=[4, 6], first=4, say=messages.append)
    assert observer.span == 3
    observer.begin()
    for step in (4, 5, 6):
        observer.begin_step(step)
        phase = observer.phase(DATA)
        assert phase is not None
        with phase:
            torch.ones(3).exp()
        assert observer.phase("forward") is None
        torch.ones(3).abs()
        observer.end_step()
    observer.end()
    places = find_dumps(tmp_path / "x")
    assert messages == [f"dumped step {place.step}: {place.folder}" for place in places]
    assert [place.step for place in places] == [4, 6]
    for place in places:
        ops = [call.op for call in read_dump(place.folder).calls]
        assert ops == ["aten.ones.default", "aten.abs.default"]


def test_lists_keywords_and_multiple_outputs_of_an_op_have_positions() -> None:
    calls = Calls()
    meter = Meter(counts=True)
    contents = Contents(meter, keeps_tensors=False, sample=0, max_bytes=0, digests=False)
    recorder = OpRecorder(calls, contents, Layers({}))
    with recorder:
        torch.cat([torch.ones(2), torch.ones(3)], dim=0)
        torch.ones(4).topk(2, sorted=False)
        torch.clamp(torch.ones(2), min=torch.zeros(2))
        torch._foreach_add_([torch.ones(2), torch.ones(3)], 2.0)
        recorder.is_paused = True
        torch.ones(2).exp()
    rows = meter.read()
    result = [row(entry.call(rows))[1:] for entry in calls.entries if entry.values[1:]]
    assert result == [
        ("aten.cat.default", "", 0, "forward", "input 0.0 2, input 0.1 3, output 0 5"),
        ("aten.topk.default", "", 0, "forward", "input 0 4, output 0 2, output 1 2"),
        ("aten.clamp.Tensor", "", 0, "forward", "input 0 2, input 1 2, output 0 2"),
        (
            *("aten._foreach_add_.Scalar", "", 0, "forward"),
            "input 0.0 2, input 0.1 3, output self.0 2, output self.1 3",
        ),
    ]
    texts = {entry.op: entry.call(rows).arguments for entry in calls.entries}
    assert texts["aten.topk.default"] == {
        "k": "2",
        "dim": "-1",
        "largest": "True",
        "sorted": "False",
    }
    assert texts["aten._foreach_add_.Scalar"] == {"scalar": "2.0"}


def test_callback_runs_after_every_update_until_removed() -> None:
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], 0.1)
    seen: list[object] = []
    handle = on_update(seen.append)
    optimizer.step()
    handle.remove()
    optimizer.step()
    assert seen == [optimizer]


SCRIPT = """
import sys
import torch

print(sys.argv[1:], sys.path[0], __name__)
torch.ones(3).abs()
{end}
"""


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., tuple[int, Path]]:
    def run(end: str) -> tuple[int, Path]:
        path = tmp_path / "inner" / "script.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(SCRIPT.format(end=end))
        dump = Dumping(tmp_path / "dump", steps=[0], settings=RecordSettings())
        return run_script(path, ["--a", "b"], dump), path

    return run


def test_script_runs_as_under_python(
    script: Callable[..., tuple[int, Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [*sys.argv], [*sys.path]
    code, path = script("sys.exit(0)")
    assert code == 0
    assert capsys.readouterr().out == f"['--a', 'b'] {path.parent} __main__\n"
    assert ([*sys.argv], [*sys.path]) == before
    assert len(find_dumps(tmp_path / "dump")) == 1


def test_script_traceback_starts_at_the_script(
    script: Callable[..., tuple[int, Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [*sys.argv], [*sys.path]
    code, path = script("1 / 0")
    assert code == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == [
        "Traceback (most recent call last):",
        f'  File "{path}", line 7, in <module>',
    ]
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert not [line for line in lines if "runpy" in line or "scripts.py" in line]
    with pytest.raises(SystemExit):
        script("sys.exit(3)")
    with pytest.raises(UserError):
        script("from jumar.ground.errors import UserError; raise UserError('x')")
    with pytest.raises(UserError, match="no such file"):
        run_script(tmp_path / "none.py", [], Dumping("x", steps=[0], settings=RecordSettings()))
    assert ([*sys.argv], [*sys.path]) == before
    assert not Path("x").exists()


def test_dump_leaves_nothing_installed(tmp_path: Path) -> None:
    from torch.nn.modules import module
    from torch.optim import optimizer

    for number in range(2):
        with Dumping(tmp_path / str(number), steps=[0], settings=RecordSettings()) as dump:
            train(nn.Linear(3, 2), dump, 2)
        assert torch.utils._python_dispatch._get_current_dispatch_mode() is None
        for hooks in (
            module._global_forward_hooks,
            module._global_forward_pre_hooks,
            optimizer._global_optimizer_pre_hooks,
            optimizer._global_optimizer_post_hooks,
        ):
            assert len(hooks) == 0
    ops = [
        [row(call) for call in read_dump(tmp_path / str(number)).calls if call.kind == "op"]
        for number in range(2)
    ]
    assert ops[0] == ops[1] != []


def test_update_with_a_closure_adds_nothing_to_the_previous_one(tmp_path: Path) -> None:
    net = nn.Linear(3, 1, bias=False)
    first = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    second = torch.optim.SGD(net.parameters(), 0.1)

    def loss() -> Tensor:
        result = net(torch.ones(2, 3)).sum()
        result.backward()
        return result

    recorder = StepRecorder(tmp_path, RecordSettings())
    recorder.open()
    recorder.begin(0)
    loss()
    first.step()
    second.step(loss)
    second.step(closure=loss)
    recorder.end()
    recorder.close()
    (update,) = [call for call in read_dump(tmp_path).calls if call.kind == "parameter"]
    assert row(update) == (
        *("parameter", "weight", "", 0, "update"),
        "parameter 0 1x3, gradient 0 1x3, state momentum_buffer 1x3, change 0 1x3",
    )
