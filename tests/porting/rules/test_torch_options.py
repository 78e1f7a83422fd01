"""A port's options for PyTorch scripts consider what the scripts already do."""

from pathlib import Path

import pytest

from jumar.porting.edits import FileReport
from jumar.porting.options import LossScale, PortOptions, PrecisionMode, parse_loss_scale
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText

FIXED = parse_loss_scale("fixed:1024")
SETTINGS = "init_scale=1024, growth_interval=2147483647"


def port(
    text: str, *, loss_scale: LossScale | None = None, precision: PrecisionMode | None = None
) -> FileReport:
    options = PortOptions(source="torch", loss_scale=loss_scale, precision=precision)
    source = SourceText(f"import torch\n{text}")
    return port_file(source, "script.py", Project(Path("nowhere")), options)


def found(report: FileReport) -> list[tuple[int, str]]:
    """The lines and the advice of the rule's findings."""
    return [
        (finding.place.line, finding.todo.en)
        for finding in report.findings
        if finding.rule == "torch-options"
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("scaler = torch.cuda.amp.GradScaler()\nscaler.scale(loss).backward()\n", 2),
        (
            "from torch.cuda.amp import GradScaler\n\nscaler = GradScaler(enabled=amp)\n"
            "scaler.scale(loss).backward()\n",
            4,
        ),
        ("scaler = torch.amp.GradScaler('cuda')\n", 2),
        ("def train(loss, scaler):\n    scaler.scale(loss).backward()\n", 3),
        ("def train(loss, scaler: 'GradScaler'):\n    loss.backward()\n", 3),
    ],
)
def test_loss_scale_is_a_finding_at_a_grad_scaler_whose_settings_decide(
    text: str, line: int
) -> None:
    advice = f"for the scale of the option, create the GradScaler with {SETTINGS}"
    assert found(port(text, loss_scale=FIXED)) == [(line, advice)]


def test_loss_scale_without_a_grad_scaler_is_a_finding_at_the_first_backward() -> None:
    ((line, advice),) = found(port("loss.backward()\nother.backward()\n", loss_scale=FIXED))
    assert line == 2
    assert f"create scaler = torch.amp.GradScaler(device='npu', {SETTINGS})" in advice


@pytest.mark.parametrize(
    "made",
    [
        "cuda.amp.GradScaler(init_scale=1024)",
        "cuda.amp.GradScaler(1024.)",
        "amp.GradScaler('cuda', 1024)",
    ],
)
def test_grad_scaler_with_the_scale_of_the_option_is_no_finding(made: str) -> None:
    text = f"scaler = torch.{made}\nscaler.scale(loss).backward()\n"
    assert not found(port(text, loss_scale=FIXED))


def autocast(made: str) -> str:
    return (
        "from torch.cuda.amp import autocast\n\n"
        f"with {made}:\n    loss = model(x)\nloss.backward()\n"
    )


@pytest.mark.parametrize(
    ("made", "mode"),
    [
        ("autocast()", "allow_mix_precision"),
        ("autocast(True, torch.half)", "allow_mix_precision_fp16"),
        ("torch.autocast('cuda', dtype=torch.float16)", "allow_fp32_to_fp16"),
        ("torch.autocast('cuda', dtype=torch.bfloat16)", "allow_mix_precision_bf16"),
        ("torch.autocast('cuda', dtype=dtype)", "allow_mix_precision"),
        ("torch.autocast(device, enabled=args.amp)", "allow_mix_precision"),
    ],
)
def test_autocast_that_is_already_there_is_not_advised(made: str, mode: PrecisionMode) -> None:
    assert not found(port(autocast(made), precision=mode))


def test_autocast_with_another_dtype_is_a_finding_where_it_is() -> None:
    text = autocast("autocast(dtype=torch.bfloat16)")
    assert found(port(text, precision="allow_mix_precision")) == [
        (4, "for the mode of the option, pass dtype=torch.float16")
    ]


def reasons_kept(report: FileReport) -> list[str]:
    return [entry.reason.en for entry in report.kept if entry.rule == "torch-options"]


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ("autocast()", "the script already uses autocast with this dtype"),
        ("autocast(dtype=args.amp)", "the script's autocast takes its dtype from args.amp"),
    ],
)
def test_autocast_that_is_left_alone_is_counted_with_the_reason(made: str, reason: str) -> None:
    assert reasons_kept(port(autocast(made), precision="allow_mix_precision")) == [reason]


def test_grad_scaler_that_is_left_alone_is_counted() -> None:
    text = "scaler = torch.amp.GradScaler('cuda', 1024)\nloss.backward()\n"
    (reason,) = reasons_kept(port(text, loss_scale=FIXED))
    assert reason.startswith("the script's GradScaler begins with this scale")


@pytest.mark.parametrize(
    "made",
    [
        "autocast(enabled=False)",
        "autocast(False)",
        "torch.autocast('cuda', torch.float16, False)",
        "torch.autocast('cpu')",
        "open(name)",
    ],
)
def test_autocast_is_advised_where_none_is_on(made: str) -> None:
    ((line, advice),) = found(port(autocast(made), precision="allow_mix_precision"))
    assert line == 6
    assert "torch.autocast('npu', dtype=torch.float16)" in advice
