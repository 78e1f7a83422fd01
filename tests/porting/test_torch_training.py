"""A ported PyTorch script trains on a device called npu as the original does on the CPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText
from tests.npu_standin import CannotBuildError
from tests.npu_standin.build import built_library

CHECKOUT = Path(__file__).resolve().parents[2]
SCRIPT = """\
import argparse
import os

import torch
import torch.backends.cudnn as cudnn
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")
args = parser.parse_args()
cudnn.benchmark = True
os.environ.setdefault("CUDA_LAUNCH_BLOCKING", "0")
kind = "cuda" if "cuda" in args.device else "cpu"
device = torch.device(f"{kind}:0" if kind != "cpu" else kind)
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2)).to(device)
if device.type == "cuda":
    model = model.cuda()
    assert next(model.parameters()).is_cuda
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda", enabled=False)
numbers = torch.Generator().manual_seed(5)
for step in range(4):
    x = torch.randn(6, 8, generator=numbers).to(device, non_blocking=True)
    y = torch.randn(6, 2, generator=numbers)
    y = y.cuda() if kind == "cuda" else y
    with torch.autocast(device_type="cuda", enabled=False):
        loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item())
torch.save(model.state_dict(), "weights.pt")
state = torch.load("weights.pt", map_location="cuda:0" if kind == "cuda" else "cpu")
print("on", state["0.weight"].device.type)
"""
RUN = """\
import runpy
import sys
from tests.npu_standin import install
install()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def printed(script: Path, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(script), *arguments],
        cwd=script.parent,
        env=os.environ
        | {"PYTHONPATH": f"{CHECKOUT}{os.pathsep}{CHECKOUT / 'src'}", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_ported_script_trains_on_the_npu_like_the_original_on_the_cpu(tmp_path: Path) -> None:
    try:
        built_library()
    except CannotBuildError as error:
        pytest.skip(str(error))
    report = port_file(
        SourceText(SCRIPT), "train.py", Project(tmp_path), PortOptions(source="torch")
    )
    assert "cuda" not in report.after.replace("torch.backends.cudnn", "")
    (tmp_path / "original.py").write_text(SCRIPT)
    (tmp_path / "ported.py").write_text(report.after)

    *losses, place = printed(tmp_path / "original.py", "--device", "cpu")
    *ported_losses, ported_place = printed(tmp_path / "ported.py")

    assert (place, ported_place) == ("on cpu", "on npu")
    assert len(losses) == 4
    assert list(map(float, ported_losses)) == pytest.approx(list(map(float, losses)), rel=1e-5)
