"""Every script that is written, read by bash and by shellcheck."""

import shutil
import subprocess
from pathlib import Path

import pytest

from jumar.launching.docker import DockerOptions, launch_in_docker
from jumar.launching.kubernetes import KubernetesOptions, launch_on_kubernetes
from jumar.launching.modelarts import ModelArtsOptions, launch_on_modelarts
from jumar.launching.ported import run_script
from jumar.launching.slurm import SlurmOptions, launch_on_slurm
from jumar.launching.this import launch_here
from tests.launching.launches import HARD, job

FOLDER = Path("/a 'working' $folder")


def scripts(cann: str = "") -> dict[str, str]:
    """Scripts by place: all kinds of devices, words and variables that are hard to quote."""
    written: dict[str, str] = {}
    for accelerator in ("npu",) if cann else ("cpu", "cuda", "npu"):
        work = job(
            nodes=2,
            devices=2,
            accelerator=accelerator,
            words=(("train it.py",), HARD),
            environment=(("NAME", "it's $HOME"),),
            cann=cann,
            has_rank_table=accelerator == "npu",
            cards=("0,1", "4,5") if accelerator == "npu" else (),
        )
        docker = DockerOptions(image="i", mounts=(Path("/data/it's"),))
        launches = {
            "this": launch_here(work, folder=FOLDER),
            "slurm": launch_on_slurm(work, SlurmOptions(), folder=FOLDER, to=FOLDER),
            "docker": launch_in_docker(work, docker, folder=FOLDER, to=FOLDER),
            "modelarts": launch_on_modelarts(
                work, ModelArtsOptions(obs="obs://bucket/x", flavor="f", image="i")
            ),
        }
        for kind in ("indexed", "volcano", "ascendjob"):
            if accelerator == "npu":
                options = KubernetesOptions(image="i", kind=kind)
                launches[kind] = launch_on_kubernetes(work, options)
        for place, launch in launches.items():
            for name, text in launch.files.items():
                if name.endswith((".sh", ".sbatch")):
                    written[f"{place}-{accelerator}-{name.replace('/', '-')}"] = text
                elif name == "job.yaml":
                    yaml = pytest.importorskip("yaml")
                    script = next(yaml.safe_load_all(text))["data"]["node.sh"]
                    written[f"{place}-{accelerator}-node.sh"] = script
    for framework in ("torch", "tensorflow"):
        written[f"port-{framework}.sh"] = run_script(
            entry="my code/train it.py", devices=8, framework=framework
        )
    return written


@pytest.mark.parametrize("cann", ["", "20.0", "20.2", "8.3.RC1", "9.1.0"])
def test_bash_parses_every_script(cann, tmp_path):
    for name, text in scripts(cann).items():
        (tmp_path / name).write_text(text)
        done = subprocess.run(
            ["bash", "-n", str(tmp_path / name)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{name}: {done.stderr}"


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck")
@pytest.mark.parametrize("cann", ["", "20.0", "20.2", "8.3.RC1", "9.1.0"])
def test_shellcheck_has_no_findings(cann, tmp_path):
    for name, text in scripts(cann).items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        # Words of users may hold what looks like variables, in single quotes.
        [
            "shellcheck",
            "--shell=bash",
            "--exclude=SC2016,SC1003",
            *sorted(map(str, tmp_path.iterdir())),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
