"""docker run and Dockerfiles, with a stand-in for docker."""

import os
import re
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.launching.docker import DockerOptions, dockerfile, launch_in_docker
from tests.launching.launches import bash, calls, job, stand_in, written


def arguments(tmp_path: Path, options: DockerOptions, variables=None, **changes) -> list[str]:
    """What docker is given."""
    stand_in(tmp_path / "calls", "docker")
    folder = tmp_path / "my 'work'"
    to = written(
        launch_in_docker(job(**changes), options, folder=folder, to=tmp_path), tmp_path / "to here"
    )
    path = f"{tmp_path / 'calls'}:{os.environ['PATH']}"
    done = bash(to / "run.sh", PATH=path, **(variables or {}))
    assert done.returncode == 0, done.stderr
    (call,) = calls(tmp_path / "calls")
    return call["arguments"]


def values(given: list[str], option: str) -> list[str]:
    return [given[place + 1] for place, word in enumerate(given) if word == option]


def test_devices_and_the_driver_are_mapped_by_name(tmp_path):
    given = arguments(tmp_path, DockerOptions(), accelerator="npu", devices=2)
    assert values(given, "--device") == [
        "/dev/davinci0",
        "/dev/davinci1",
        "/dev/davinci_manager",
        "/dev/devmm_svm",
        "/dev/hisi_hdc",
    ]
    # None of the driver's files is here, and docker would make folders of them.
    assert values(given, "--volume") == []
    assert "--privileged" not in given


def test_newer_chip_has_other_device_files(tmp_path):
    given = arguments(tmp_path, DockerOptions(chip="950"), accelerator="npu")
    names = ("davinci0", "davinci_manager", "hisi_hdc", "ummu", "uburma")
    assert values(given, "--device") == [f"/dev/{name}" for name in names]


def test_other_cards_are_selected_by_a_variable(tmp_path):
    given = arguments(tmp_path, DockerOptions(), {"CARDS": "4,6"}, accelerator="npu", devices=2)
    assert values(given, "--device")[:2] == ["/dev/davinci4", "/dev/davinci6"]


def test_ascend_runtime_is_requested_by_its_variable(tmp_path):
    options = DockerOptions(ascend_runtime=True)
    given = arguments(tmp_path, options, accelerator="npu", devices=4)
    assert values(given, "--runtime") == ["ascend"]
    assert "ASCEND_VISIBLE_DEVICES=0,1,2,3" in values(given, "--env")
    assert values(given, "--device") == []


def test_gpus_are_named_in_the_quotes_that_docker_needs(tmp_path):
    given = arguments(tmp_path, DockerOptions(), accelerator="cuda", devices=2)
    assert values(given, "--gpus") == ['"device=0,1"']


def test_folders_rank_and_master_reach_the_container(tmp_path):
    mounts = (Path("/data/a b"),)
    variables = {"NODE_RANK": "1", "MASTER_ADDR": "10.0.0.1"}
    options = DockerOptions(image="reg.io/x:1", mounts=mounts)
    given = arguments(tmp_path, options, variables, nodes=2)
    assert given[-3:] == ["reg.io/x:1", "bash", "/launch/node.sh"]
    assert values(given, "--mount") == [
        f"type=bind,source={tmp_path / 'to here'},target=/launch",
        f"type=bind,source={tmp_path}/my 'work',target=/work",
        "type=bind,source=/data/a b,target=/data/a b",
    ]
    assert {"NODE_RANK=1", "MASTER_ADDR=10.0.0.1", "MASTER_PORT=29500"} <= set(
        values(given, "--env")
    )


@pytest.mark.parametrize("path", ["/a,b", '/a"b'])
def test_path_that_docker_would_split_is_refused(path):
    with pytest.raises(UserError, match="neither commas nor quotes"):
        launch_in_docker(
            job(), DockerOptions(mounts=(Path(path),)), folder=Path("/w"), to=Path("/t")
        )
    with pytest.raises(UserError, match="neither commas nor quotes"):
        launch_in_docker(job(), DockerOptions(), folder=Path("/w"), to=Path(path))


def test_dockerfile_is_written_unless_there_is_an_image():
    with_file = launch_in_docker(job(), DockerOptions(), folder=Path("/w"), to=Path("/t"))
    assert "Dockerfile" in with_file.files
    assert with_file.start[0].startswith("docker build")
    assert (
        "Dockerfile"
        not in launch_in_docker(
            job(), DockerOptions(image="x"), folder=Path("/w"), to=Path("/t")
        ).files
    )


@pytest.mark.parametrize("accelerator", ["cpu", "cuda", "npu"])
def test_every_dockerfile_pins_torch_in_each_step_that_installs(accelerator):
    text = dockerfile(accelerator, image="jumar:1")
    lines = text.replace("\\\n", " ").splitlines()
    installs = [line for line in lines if "pip install" in line and not line.startswith("#")]
    pins = {pin for line in installs for pin in re.findall(r"\btorch==\S+", line)}
    assert len(installs) >= 2
    assert len(pins) == 1
    assert all("torch==" in part for line in installs for part in line.split("&&"))
    assert "@" not in text
    instructions = {line.split()[0] for line in lines if line and not line.startswith("#")}
    assert instructions <= {"FROM", "ARG", "RUN", "COPY", "ENV", "WORKDIR"}


def test_ascend_image_has_the_torch_for_its_cann():
    text = dockerfile("npu", image="x", cann="8.5", chip="910")
    assert "FROM quay.io/ascend/cann:8.5.0-910-ubuntu22.04-py3.11\n" in text
    assert "torch==2.9.0 torch-npu==2.9.0\n" in text


def test_chip_without_an_image_is_refused():
    with pytest.raises(UserError, match="unknown chip '910a'"):
        dockerfile("npu", image="x", chip="910a")
