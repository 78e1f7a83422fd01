import subprocess
import sys

import pytest

from jumar.devices.asking import Names, parse_device
from jumar.devices.cpu import Cpu
from jumar.devices.cuda import Cuda
from jumar.devices.npu import Npu
from jumar.ground.errors import UserError

KNOWN = [kind.names for kind in (Cpu, Cuda, Npu)]


@pytest.mark.parametrize(
    ("request_", "parsed"),
    [
        ("auto", ("auto", None)),
        ("cpu", ("cpu", None)),
        ("cuda", ("cuda", None)),
        ("CUDA:1", ("cuda", 1)),
        (" npu:7 ", ("npu", 7)),
    ],
)
def test_device_kind_and_index_are_parsed(request_: str, parsed: tuple[str, int | None]) -> None:
    assert parse_device(request_, KNOWN) == parsed


@pytest.mark.parametrize(
    ("request_", "hint"),
    [
        ("gpu", "Did you mean 'cuda'?"),
        ("GPU", "Did you mean 'cuda'?"),
        ("gpu:1", "Did you mean 'cuda:1'?"),
        ("/device:GPU:0", "Did you mean 'cuda:0'?"),
        ("/gpu:0", "Did you mean 'cuda:0'?"),
        ("gpu0", "Did you mean 'cuda:0'?"),
        ("cuda1", "Did you mean 'cuda:1'?"),
        ("cuda-1", "Did you mean 'cuda:1'?"),
        ("nvidia", "Did you mean 'cuda'?"),
        ("rocm", "Did you mean 'cuda'?"),
        ("cdua", "Did you mean 'cuda'?"),
        ("cud", "Did you mean 'cuda'?"),
        ("cuda:x", "as in 'cuda:0'"),
        ("cuda:", "as in 'cuda:0'"),
        ("npu:all", "as in 'npu:0'"),
        ("npu0", "Did you mean 'npu:0'?"),
        ("nup", "Did you mean 'npu'?"),
        ("ascend", "Did you mean 'npu'?"),
        ("Ascend910", "Did you mean 'npu'?"),
        ("Ascend910B", "Did you mean 'npu'?"),
        ("ascend:2", "Did you mean 'npu:2'?"),
        ("davinci3", "Did you mean 'npu'?"),
        ("cpu:0", "Did you mean 'cpu'?"),
        ("mps", "mps devices are not supported."),
        ("xpu", "xpu devices are not supported."),
        ("tpu", "tpu devices are not supported."),
        ("XLA:0", "xla devices are not supported."),
    ],
)
def test_alias_of_a_device_suggests_our_name(request_: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_device(request_, KNOWN)
    assert caught.value.what == f"unknown device '{request_}'"
    assert caught.value.todo == f"{caught.value.todo.partition('Known')[0]}" + (
        "Known: auto, cpu, cuda, cuda:N, npu, npu:N."
    )
    assert hint in caught.value.todo


@pytest.mark.parametrize("request_", ["", "0", "1", "toaster", "..", "a\nb"])
def test_unrecognisable_device_lists_the_known_ones(request_: str) -> None:
    with pytest.raises(UserError, match=r"  Known: auto"):
        parse_device(request_, KNOWN)


@pytest.mark.parametrize(
    ("request_", "hint"),
    [("abacus", "Did you mean 'bead'?"), ("abacus3", "Did you mean 'bead:3'?")],
)
def test_device_kind_registers_its_own_names(request_: str, hint: str) -> None:
    beads = Names(kind="bead", others=("abacus",), counted=("bead", "abacus"))
    assert parse_device("bead:2", [*KNOWN, beads]) == ("bead", 2)
    with pytest.raises(UserError) as caught:
        parse_device(request_, [*KNOWN, beads])
    assert hint in caught.value.todo
    assert caught.value.todo.endswith("cuda, cuda:N, npu, npu:N, bead, bead:N.")


def test_device_names_are_parsed_without_torch() -> None:
    script = "import sys; import jumar.devices.asking; print('torch' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert result.stdout.strip() == "False", result.stderr
