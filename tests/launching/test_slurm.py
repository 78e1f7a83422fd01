"""Slurm: the script for sbatch; `tests/cli/test_launch.py` submits it to a real Slurm."""

import os
import re
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.launching.slurm import SlurmOptions, launch_on_slurm
from tests.launching.launches import bash, calls, job, stand_in, written


def directives(text: str) -> list[str]:
    return re.findall(r"^#SBATCH --(.*)$", text, re.MULTILINE)


def batch(options: SlurmOptions, **changes) -> str:
    launch = launch_on_slurm(job(**changes), options, folder=Path("/w"), to=Path("/t"))
    return launch.files["job.sbatch"]


@pytest.mark.parametrize(
    ("accelerator", "devices"),
    [("cpu", "cpus-per-task=8"), ("cuda", "gpus-per-node=8"), ("npu", "gres=npu:8")],
)
def test_node_gets_its_devices(accelerator, devices):
    asked = directives(batch(SlurmOptions(), accelerator=accelerator, devices=8, nodes=4))
    assert {"job-name=small", "nodes=4", "ntasks-per-node=1", devices} <= set(asked)


def test_directives_precede_the_first_command_and_match_the_request():
    options = SlurmOptions(
        partition="npu", account="us", time="8:00:00", cpus=24, directives=("qos=high", "exclusive")
    )
    text = batch(options)
    assert directives(text)[-2:] == ["qos=high", "exclusive"]
    assert {"partition=npu", "account=us", "time=8:00:00", "cpus-per-task=24"} <= set(
        directives(text)
    )
    commands = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert text.index(commands[0]) > text.rindex("#SBATCH")


@pytest.mark.parametrize(
    "options",
    [
        SlurmOptions(partition="a b"),
        SlurmOptions(account="x\n#SBATCH --uid=0"),
        SlurmOptions(directives=("--qos=high",)),
        SlurmOptions(directives=("",)),
    ],
)
def test_directive_that_sbatch_would_misread_is_refused(options):
    if options.directives == ("",):
        assert "#SBATCH --\n" not in batch(options)
        return
    with pytest.raises(UserError):
        batch(options)


def test_node_with_an_unresolvable_name_is_reached_by_address(tmp_path):
    python = stand_in(tmp_path / "calls")
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "scontrol").write_text(
        "#!/bin/sh\n"
        'if [ "$1" = show ]; then printf "n7\\nn8\\n"; else\n'
        'echo "NodeName=n7 Arch=x86_64 NodeAddr=10.1.2.3 NodeHostName=h"; fi\n'
    )
    (bin_ / "srun").write_text(
        '#!/bin/sh\nwhile [ "$1" != bash ]; do shift; done\nSLURM_NODEID=1 exec "$@"\n'
    )
    for program in bin_.iterdir():
        program.chmod(0o755)
    to = tmp_path / "to here"
    work = job(nodes=2, python=str(python))
    written(launch_on_slurm(work, SlurmOptions(), folder=tmp_path, to=to), to)
    done = bash(
        to / "job.sbatch",
        PATH=f"{bin_}:{os.environ['PATH']}",
        SLURM_JOB_NODELIST="n[7-8]",
        SLURM_JOB_ID="20005",
        RANK="5",
    )
    assert done.returncode == 0, done.stderr
    (call,) = calls(tmp_path / "calls")
    expected = "--nnodes 2 --nproc-per-node 1 --node-rank 1 --master-addr 10.1.2.3 --master-port"
    assert call["arguments"][2:12] == [*expected.split(), "20005"]
    assert call["variables"]["SRUN_CPUS_PER_TASK"] == "1"


@pytest.mark.parametrize(
    "time", ["90", "90:00", "8:00:00", "120:30:00", "2-0", "2-12:30", "2-12:30:00", "UNLIMITED"]
)
def test_every_form_of_a_time_limit_is_accepted(time):
    assert f"time={time}" in directives(batch(SlurmOptions(time=time)))


@pytest.mark.parametrize(
    "time", ["banana", "5h", "1:2:3", "8:00:00:00", "2-", "-5", "1h; rm -rf /", "90\n"]
)
def test_time_limit_that_slurm_would_refuse_is_an_error_that_names_a_form(time):
    with pytest.raises(UserError, match="is not a time limit of Slurm") as caught:
        SlurmOptions(time=time)
    assert caught.value.where == "--time"
    assert "8:00:00" in caught.value.todo
