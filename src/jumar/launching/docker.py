"""Launches training in containers, and builds the images for it."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from jumar import __version__
from jumar.ground.errors import UserError, unknown_name
from jumar.launching.cann import facts, fitting
from jumar.launching.job import Accelerator, Job, Launch
from jumar.launching.node import LOCAL_RENDEZVOUS, NODE_SCRIPT, node_script
from jumar.launching.templates import filled

RUN_SCRIPT = "run.sh"
DOCKERFILE = "Dockerfile"
IGNORED = ".dockerignore"
WORK_FOLDER, LAUNCH_FOLDER = "/work", "/launch"
_MOUNTED_FILES = (
    "/usr/local/dcmi",
    "/usr/local/bin/npu-smi",
    "/usr/local/Ascend/driver/lib64",
    "/usr/local/Ascend/driver/version.info",
    "/etc/ascend_install.info",
)
"""Driver files that a container needs to find an NPU."""


@dataclass(frozen=True, kw_only=True)
class DockerOptions:
    """Settings of the container.

    Attributes:
        image: The image; empty to build one from the Dockerfile.
        chip: The chip in the tag of CANN's image, such as `910b`.
        ascend_runtime: Whether Ascend's docker runtime maps the devices, instead of `--device`.
        mounts: Additional folders, mounted under the same paths.
    """

    image: str = ""
    chip: str = "910b"
    ascend_runtime: bool = False
    mounts: tuple[Path, ...] = ()


def launch_in_docker(job: Job, options: DockerOptions, *, folder: Path, to: Path) -> Launch:
    """Return the files for containers.

    Args:
        job: The job to start.
        options: Settings of the container.
        folder: The folder mounted as `/work`.
        to: The folder for the files, mounted as `/launch`.
    """
    _mountable(to)
    image = options.image or own_image(job.accelerator)
    node = node_script(
        job,
        rendezvous=LOCAL_RENDEZVOUS,
        about="Started in a container by run.sh.",
        folder=WORK_FOLDER,
    )
    run = filled(
        "run_docker.sh",
        NAME=job.name,
        IMAGE=shlex.quote(image),
        WORK=shlex.quote(str(_mountable(folder))),
        DEVICES="\n".join([*_devices(job, options), *_mounts(options)]),
    )
    files = {RUN_SCRIPT: run, NODE_SCRIPT: node}
    about = {RUN_SCRIPT: "docker run, once per node", NODE_SCRIPT: "the script that runs inside"}
    start = [f"bash {{to}}/{RUN_SCRIPT}"]
    if not options.image:
        files[DOCKERFILE] = dockerfile(
            job.accelerator, image=image, cann=job.cann, chip=options.chip
        )
        about[DOCKERFILE] = f"builds {image}"
        # Only wheels are copied into the image, since the folder will also contain checkpoints.
        files[IGNORED] = "*\n!*.whl\n"
        about[IGNORED] = "keeps runs out of the image"
        start.insert(0, f"docker build -t {shlex.quote(image)} {{to}}")
    return Launch(files=files, about=about, start=tuple(start))


def own_image(accelerator: Accelerator) -> str:
    """Return the name of the image built from our Dockerfile."""
    return f"jumar-{accelerator}:{__version__}"


def dockerfile(accelerator: Accelerator, *, image: str, cann: str = "", chip: str = "910b") -> str:
    """Return the text of a Dockerfile with matching versions.

    Raises:
        UserError: No image of that CANN release or chip is known.
    """
    versions = facts("versions")
    values = {"IMAGE": shlex.quote(image), "VERSION": __version__, "BASE": versions["base"]}
    if accelerator != "npu":
        return filled(f"{accelerator}.Dockerfile", TORCH=versions["torch"], **values)
    if chip not in versions["chips"]:
        raise unknown_name("chip", chip, versions["chips"], where="--chip")
    release = fitting(cann)
    return filled(
        "npu.Dockerfile",
        CANN=release.cann,
        TAG=release.tag,
        TORCH=release.torch,
        ADAPTER=release.adapter,
        CHIP=chip,
        PYTHON=versions["python"],
        **values,
    )


def _devices(job: Job, options: DockerOptions) -> list[str]:
    numbers = ",".join(str(number) for number in range(job.devices))
    if job.accelerator == "cpu":
        return []
    cards = f"cards=${{CARDS:-{numbers}}}"
    if job.accelerator == "cuda":
        # docker parses the list as CSV, and accepts commas only within quotes.
        return [cards, r'options+=(--gpus "\"device=$cards\"")']
    if options.ascend_runtime:
        return [
            "# Ascend's runtime maps the devices and mounts the driver.",
            cards,
            'options+=(--runtime ascend --env "ASCEND_VISIBLE_DEVICES=$cards")',
        ]
    return [
        cards,
        "IFS=',' read -r -a numbers <<<\"$cards\"",
        'for number in "${numbers[@]}"; do options+=(--device "/dev/davinci$number"); done',
        f"for device in {' '.join(_managers(options.chip))}; do",
        '    options+=(--device "/dev/$device")',
        "done",
        "# The driver comes from the host; docker would create a folder in place of a missing "
        "file.",
        f"for file in {' '.join(_MOUNTED_FILES)}; do",
        '    if [ -e "$file" ]; then options+=(--volume "$file:$file:ro"); fi',
        "done",
    ]


def _managers(chip: str) -> tuple[str, ...]:
    """Return the device files other than those of the chips themselves."""
    if chip == "950":
        return ("davinci_manager", "hisi_hdc", "ummu", "uburma")
    return ("davinci_manager", "devmm_svm", "hisi_hdc")


def _mounts(options: DockerOptions) -> list[str]:
    return [
        f"options+=(--mount {shlex.quote(f'type=bind,source={path},target={path}')})"
        for path in map(_mountable, options.mounts)
    ]


def _mountable(path: Path) -> Path:
    """Check that a path fits into the CSV list of `docker run --mount`, and return it."""
    if "," in str(path) or '"' in str(path):
        raise UserError(
            "docker's --mount supports neither commas nor quotes in paths",
            where=str(path),
            todo="Create a link with another name, and use that.",
        )
    return path
