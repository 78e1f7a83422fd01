"""Ops that the CPU computes for want of a kernel are named before the first step."""

import os
from pathlib import Path
from typing import ClassVar

from jumar.devices.cpu import Cpu
from jumar.devices.npu import Npu
from jumar.training.progress import Console
from tests.training.small_tasks import point_task, small_plan, trainer_for

LINE = (
    "[W compiler_depend.ts:51] Warning: CAUTION: The operator 'aten::isin.Tensor_Tensor_out' is "
    "not currently supported on the NPU backend and will fall back to run on the CPU.\n"
)


class CpuThatSays(Cpu):
    """A CPU with messages of an NPU."""

    fallback_message: ClassVar = Npu.fallback_message
    fallback_remedy: ClassVar = "Mend it"


def lines_of(path: Path, *, says: bool) -> list[str]:
    task = point_task()
    if says:
        task.model.register_forward_hook(lambda *_: (os.write(2, LINE.encode()), None)[1])
    console = Console()
    path.mkdir()
    console.keep_log(path / "log.txt")
    trainer = trainer_for(task, small_plan(), path / "run", console=console)
    trainer.device = CpuThatSays(index=0, name="this CPU")
    trainer.train(dry_run=True)
    console.close()
    return (path / "log.txt").read_text(encoding="utf-8").splitlines()


def test_op_without_a_kernel_is_named_once_before_the_first_step(tmp_path: Path) -> None:
    named = (
        "computed on the CPU, since this CPU has no kernel for it: aten::isin.Tensor_Tensor_out; "
        "each copies its tensors there and back. Mend it"
    )
    assert lines_of(tmp_path / "says", says=True).count(named) == 1
    assert named not in lines_of(tmp_path / "silent", says=False)
