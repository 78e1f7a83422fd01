"""Devices in strings, beyond the examples of the rule."""

import ast
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.porting.edits import FileReport
from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText
from jumar.porting.torch.devices import is_device

TORCH = PortOptions(source="torch")
OURS = (
    "torch.cuda.synchronize()",
    "x = x.cuda(non_blocking=True)",
    "device = 'cuda:%d' % rank",
    "if x.is_cuda: y = x.to('cuda')",
    "torch.backends.cudnn.benchmark = True",
    "dist.init_process_group(backend='nccl')",
    "print('cuda', f'cuda:{rank}')",
    "table = {'cuda': 1, 'device': 'cuda'}",
    "torch.cuda.nvtx.range_push('step')",
    "with torch.cuda.amp.autocast(): loss = model(x)",
    "for device in ['cpu', 'cuda']: pass",
    "scaler = torch.amp.GradScaler()",
    "os.environ['CUDA_VISIBLE_DEVICES'] = '0'",
    "model = torch.nn.DataParallel(model)",
    "a = (torch.cuda.is_available() and  # why\n     torch.cuda.device_count())",
)
HEAD = "import os\nimport torch\nimport torch.distributed as dist\n\n"


def port(text: str, root: Path = Path("nowhere"), path: str = "script.py") -> FileReport:
    return port_file(SourceText(text), path, Project(root), TORCH)


def after(text: str) -> str:
    report = port(text)
    return report.after if report.status == "ported" else text


@settings(max_examples=25)
@given(st.lists(st.sampled_from(OURS), max_size=8))
def test_second_run_changes_nothing(lines: list[str]) -> None:
    once = after(HEAD + "\n".join(lines) + "\n")
    ast.parse(once)
    assert after(once) == once


@settings(max_examples=25)
@given(
    st.lists(
        st.sampled_from(
            [line.replace("torch", "numba").replace("import os\n", "") for line in OURS]
        ),
        max_size=8,
    )
)
def test_scripts_of_other_libraries_are_unchanged(lines: list[str]) -> None:
    text = "import os\nimport numba\nfrom numba import cuda\n\n" + "\n".join(lines) + "\n"
    assert after(text) == text


@pytest.mark.parametrize("text", ["cuda", "cuda:0", "cuda:13", "cuda:%d", "cuda:{}", "cuda:"])
def test_usual_device_notations_are_recognised(text: str) -> None:
    assert is_device(text)


@pytest.mark.parametrize("text", ["cuda out of memory", "cuda_rng", "CUDA", "cuda:a", "xcuda", ""])
def test_other_strings_with_the_word_are_not_devices(text: str) -> None:
    assert not is_device(text)


def test_script_that_only_moves_tensors_has_no_cuda_left() -> None:
    text = HEAD + "model = net.cuda()\nx = x.to(f'cuda:{rank}')\ntorch.cuda.empty_cache()\n"
    assert "cuda" not in after(text)


def test_torch_npu_is_imported_before_the_first_device_is_created() -> None:
    text = "import torch\n\ndevice = torch.device('cuda')\n\nimport helper\n"
    lines = after(text).splitlines()
    assert lines.index("import torch_npu") < lines.index("device = torch.device('npu')")


def test_torch_npu_is_imported_after_torch_and_before_script_modules() -> None:
    text = "import torch\nfrom torch import nn\n\nfrom net import Net\n\nmodel = Net().cuda()\n"
    wanted = "import torch\nfrom torch import nn\nimport torch_npu\n\nfrom net import Net\n"
    assert after(text).startswith(wanted)


def test_guarded_import_of_torch_keeps_its_guard() -> None:
    text = (
        "try:\n    import torch\nexcept ImportError:\n    torch = None\n\nimport os\n\n"
        "model = model.cuda()\n"
    )
    assert after(text).startswith(text[: text.index("model")].rstrip() + "\nimport torch_npu\n")


def test_script_that_gets_torch_through_the_tree_is_ported(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("import torch\n\nclass Net(torch.nn.Module):\n    pass\n")
    text = "from net import Net\n\nmodel = Net().cuda()\n"
    report = port(text, tmp_path, "train.py")
    assert report.after == "from net import Net\nimport torch_npu\n\nmodel = Net().npu()\n"


def test_settings_in_a_tree_without_torch_are_only_findings() -> None:
    text = "device = 'cuda'\n"
    report = port(text)
    assert report.status == "unchanged"
    assert [found.rule for found in report.findings] == ["device-strings"]


def test_table_of_settings_is_a_finding() -> None:
    report = port("import torch\n\nsettings = {'device': 'cuda:0', 'backend': 'nccl'}\n")
    assert report.status == "unchanged"
    assert {found.rule for found in report.findings} == {"device-strings", "nccl-backend"}


def test_crlf_tabs_and_comments_survive() -> None:
    text = "import torch\r\n\r\nif 1:\r\n\tx = y.cuda()  # to the device: cuda\r\n"
    wanted = (
        "import torch\r\nimport torch_npu\r\n\r\nif 1:\r\n\tx = y.npu()  # to the device: cuda\r\n"
    )
    assert after(text) == wanted
