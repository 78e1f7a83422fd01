"""What `jumar doctor` and environment.json say of a machine."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from jumar import environment as module
from jumar.cli.doctor import environment_lines
from jumar.devices.npu_package import NPU_PACKAGE
from jumar.environment import (
    Ascend,
    Environment,
    Finding,
    Processor,
    Storage,
    cann_version,
    check,
    inspect_environment,
    npu_driver_version,
)


@pytest.fixture(scope="module")
def here() -> Environment:
    return inspect_environment()


@pytest.fixture
def sound(here: Environment) -> Environment:
    """A machine with nothing to complain about."""
    processor = replace(here.processor, usable_cores=4, intra_op_threads=4, accelerates_bf16=True)
    return replace(
        here,
        versions={**here.versions, "torch": "2.13.0+cpu", NPU_PACKAGE: None, "cuda_driver": None},
        processor=processor,
        accelerators=(),
        ascend=Ascend(
            device_files=(),
            cann_home=None,
            cann_script=None,
            cann_is_sourced=False,
            fault="not there",
            todo="x",
        ),
        storage=(Storage(purpose="runs", place="/r", free_bytes=2**40),),
        packages=tuple(replace(package, version="1.0") for package in here.packages),
    )


def test_environment_is_serialisable_to_json(here: Environment) -> None:
    read = json.loads(json.dumps(asdict(here)))
    assert read["versions"]["torch"] == torch.__version__
    assert read["processor"]["usable_cores"] >= 1
    assert [place["purpose"] for place in read["storage"]] == ["runs", "cache"]
    assert {"tensorboard", "simplejpeg"} <= {package["name"] for package in read["packages"]}


def test_doctor_lines_name_every_version_path_and_device(here: Environment) -> None:
    printed = "\n".join(environment_lines(here))
    for name, version in here.versions.items():
        assert re.search(rf"^{name} +{re.escape(version or '-')}$", printed, re.MULTILINE)
    assert all(place.place in printed for place in here.storage)
    assert all(device.name in printed for device in here.accelerators)


def test_environment_is_collected_within_two_seconds_and_without_importing_packages() -> None:
    """Of the CPU, in a process of its own: neither a busy neighbour nor collecting the garbage of
    ten thousand earlier tests is our slowness."""
    script = (
        "import sys, time\n"
        "from jumar.environment import inspect_environment\n"
        "start = time.process_time()\n"
        "inspect_environment()\n"
        "print(time.process_time() - start)\n"
        "print(sorted({'tensorboard', 'simplejpeg', 'sklearn', 'PIL'} & set(sys.modules)))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, imported = result.stdout.splitlines()
    assert float(seconds) < 2
    assert imported == "[]"


def test_missing_information_is_none_without_affecting_the_rest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def lost(*_: object, **__: object) -> str:
        raise OSError("gone")

    monkeypatch.setattr(os, "sched_getaffinity", lost, raising=False)
    monkeypatch.setattr(Path, "read_text", lost)
    monkeypatch.setattr(Path, "cwd", lost)
    monkeypatch.setattr(module.shutil, "disk_usage", lost)
    result = inspect_environment()
    assert result.processor.usable_cores is None
    assert all(storage.free_bytes is None for storage in result.storage)
    assert result.versions["torch"] == torch.__version__
    assert isinstance(check(result), list)


@pytest.mark.parametrize(
    ("path", "text", "version"),
    [
        (
            "x86_64-linux/ascend_toolkit_install.info",
            "package_name=Ascend-cann-toolkit\nversion=8.0.RC3\ninnerversion=V100R001C19\n"
            "compatible_version=[V100R001C15,V100R001C19]\narch=x86_64\nos=linux\n",
            "8.0.RC3",
        ),
        ("ascend_toolkit_install.info", "version=8.5.0\n", "8.5.0"),
        ("runtime/version.info", "Version=7.3.0.1.231\nversion_dir=7.3\n", "7.3.0.1.231"),
        ("compiler/readme.txt", "version=1\n", None),
    ],
)
def test_cann_version_is_read_from_its_installation(
    tmp_path: Path, path: str, text: str, version: str | None
) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    assert cann_version(tmp_path) == version


@pytest.mark.parametrize("place", ["cann/set_env.sh", "set_env.sh"])
def test_script_to_source_is_found_inside_or_next_to_cann(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (tmp_path / "cann").mkdir()
    (tmp_path / place).touch()
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path / "cann"))
    result = inspect_environment().ascend
    assert (result.cann_home, result.cann_is_sourced) == (str(tmp_path / "cann"), True)
    assert result.cann_script == str(tmp_path / place)


def test_driver_version_is_read_from_its_folder(tmp_path: Path) -> None:
    assert npu_driver_version(tmp_path) is None
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver" / "version.info").write_text("Version=24.1.rc3\nascendhal_version=7.35\n")
    assert npu_driver_version(tmp_path) == "24.1.rc3"


def _ascend(**changes: object) -> Callable[[Environment], Environment]:
    return lambda found: replace(found, ascend=replace(found.ascend, **changes))


def _versions(**changes: str | None) -> Callable[[Environment], Environment]:
    return lambda found: replace(found, versions={**found.versions, **changes})


def _processor(**changes: object) -> Callable[[Environment], Environment]:
    return lambda found: replace(found, processor=replace(found.processor, **changes))


def test_healthy_machine_has_no_findings(sound: Environment) -> None:
    assert check(sound) == []


@pytest.mark.parametrize(
    ("change", "level", "what", "todo"),
    [
        (_versions(torch="2.5.1"), "error", "torch 2.5.1 is older than 2.6", "torch>=2.6"),
        (
            _versions(**{NPU_PACKAGE: "2.12.0.post3"}),
            "error",
            "torch_npu 2.12.0.post3 is not compatible with torch 2.13.0",
            "torch_npu X.Y.Z works with torch X.Y only",
        ),
        (
            _versions(cuda_driver="550.54", cuda=None),
            "warning",
            "an NVIDIA GPU, but torch 2.13.0+cpu was built without CUDA",
            "CUDA build",
        ),
        (_ascend(device_files=("/dev/davinci0",)), "error", "not there", "x"),
        (_ascend(cann_home="/usr/local/Ascend/cann"), "warning", "not there", "x"),
        (
            _ascend(cann_home="/a/latest", cann_script="/a/set_env.sh", fault=None),
            "warning",
            "CANN is in /a/latest, but ASCEND_HOME_PATH is not set",
            "source /a/set_env.sh",
        ),
        (_processor(intra_op_threads=64), "warning", "64 threads on 4 usable", "intra_op=4"),
        (_processor(accelerates_bf16=False), "note", "no bfloat16", "must_keep_origin_dtype"),
        (
            lambda found: replace(
                found, storage=(Storage(purpose="cache", place="/c", free_bytes=10),)
            ),
            "warning",
            "less than 1 GiB is free for the cache in /c",
            "JUMAR_CACHE",
        ),
        (
            lambda found: replace(found, packages=(replace(found.packages[-1], version=None),)),
            "note",
            "tensorboard is not installed",
            "jumar[tensorboard]",
        ),
    ],
)
def test_problems_are_found_with_a_remedy(
    sound: Environment,
    change: Callable[[Environment], Environment],
    level: str,
    what: str,
    todo: str,
) -> None:
    finding: Finding = next(found for found in check(change(sound)) if what in found.what)
    assert finding.level == level
    assert todo in finding.todo


def test_worst_finding_is_first(sound: Environment) -> None:
    bad = _processor(accelerates_bf16=False)(_versions(torch="2.5.1")(sound))
    assert [finding.level for finding in check(bad)] == ["error", "note"]


def test_unknown_processor_has_no_findings(sound: Environment) -> None:
    unknown = Processor(
        name=None,
        cores=None,
        usable_cores=None,
        intra_op_threads=None,
        inter_op_threads=None,
        accelerates_bf16=None,
        memory_total_bytes=None,
        memory_free_bytes=None,
    )
    assert check(replace(sound, processor=unknown)) == []
