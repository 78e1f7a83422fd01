"""Write the files that start training on this or other machines: `jumar launch`."""

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from jumar.ground.errors import UserError
from jumar.ground.paths import exists, missing
from jumar.launching.docker import LAUNCH_FOLDER, DockerOptions, launch_in_docker
from jumar.launching.job import Accelerator, Job, Launch, checked_text, name_from
from jumar.launching.kubernetes import (
    WORK_FOLDER,
    Kind,
    KubernetesOptions,
    launch_on_kubernetes,
)
from jumar.launching.modelarts import (
    DATA_FOLDER,
    RESULT_FOLDER,
    ModelArtsOptions,
    launch_on_modelarts,
)
from jumar.launching.node import RANK_TABLE
from jumar.launching.ranktables.report import sound_table
from jumar.launching.ranktables.table import RankTable
from jumar.launching.ranktables.writing import converted, torchrun_lines
from jumar.launching.slurm import SlurmOptions, launch_on_slurm
from jumar.launching.this import launch_here
from jumar.launching.writing import write_launch

Place = Literal["this", "slurm", "modelarts", "kubernetes", "docker"]
_DEVICE_FILES: tuple[tuple[Accelerator, str], ...] = (("npu", "davinci0"), ("cuda", "nvidia0"))


@dataclass(frozen=True, kw_only=True)
class Training:
    """A recipe with options of `jumar train`, or a script with its arguments.

    Attributes:
        what: The recipe's name, or the path of a script.
        is_script: Whether it is a script.
        arguments: Options or arguments, as typed.
        assignments: The values of `--set` among them, to check them here.
        imports: Modules of the recipe's author.
        names_run: Whether the options name a run directory.
        names_device: Whether the options name a device.
    """

    what: str
    is_script: bool
    arguments: Sequence[str] = ()
    assignments: Sequence[str] = ()
    imports: Sequence[str] = ()
    names_run: bool = False
    names_device: bool = False


@dataclass(frozen=True, kw_only=True)
class LaunchRequest:
    """The options of `jumar launch`."""

    training: Training
    place: Place
    to: Path
    nodes: int | None = None
    devices: int | None = None
    accelerator: Accelerator | None = None
    name: str = ""
    python: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    cann: str = ""
    chip: str = "910b"
    image: str = ""
    slurm: SlurmOptions = field(default_factory=SlurmOptions)
    kind: Kind | None = None
    namespace: str = ""
    claim: str = ""
    queue: str = "default"
    obs: str = ""
    data: str = ""
    flavor: str = ""
    pool: str = ""
    engine_version: str = ""
    ascend_runtime: bool = False
    mounts: tuple[Path, ...] = ()
    rank_table: Path | None = None


def write_launch_files(request: LaunchRequest) -> tuple[Job, Launch]:
    """Check the request, and write the files of a launch.

    Raises:
        UserError: The request is not valid; nothing is written then.
    """
    _refuse_options_of_others(request)
    training = request.training
    if training.is_script:
        if not exists(Path(training.what)):
            raise missing(Path(training.what), "script")
    else:
        _check_recipe(training)
    table = _rank_table(request)
    job = _job(request, table)
    to = Path(checked_text(str(request.to.absolute()), "--to"))
    launch = _launch(request, job, to)
    summary: dict[str, Any] = {
        "on": request.place,
        "training": [training.what, *training.arguments],
        "nodes": job.nodes,
        "devices": job.devices,
        "device": job.accelerator,
    }
    files = dict(launch.files)
    if table is not None:
        files[RANK_TABLE] = converted(table, "1.0" if table.version == "0" else table.version)
        launch = replace(launch, files=files, about={**launch.about, RANK_TABLE: "for HCCL"})
    write_launch(request.to, files, summary)
    return job, launch


def _refuse_options_of_others(request: LaunchRequest) -> None:
    """Reject options that have no effect on the requested launcher or accelerator.

    Raises:
        UserError: There is one.
    """
    containers = ("docker", "kubernetes", "modelarts")
    options: list[tuple[str, object, tuple[str, ...]]] = [
        (
            "--partition, --account, --time, --cpus or --sbatch",
            request.slurm != SlurmOptions(),
            ("slurm",),
        ),
        ("--image", request.image, containers),
        ("--mount", request.mounts, ("docker",)),
        ("--ascend-runtime", request.ascend_runtime, ("docker",)),
        ("--kind", request.kind, ("kubernetes",)),
        ("--namespace", request.namespace, ("kubernetes",)),
        ("--claim", request.claim, ("kubernetes",)),
        ("--queue", request.queue != "default", ("kubernetes",)),
        ("--obs", request.obs, ("modelarts",)),
        ("--data", request.data, ("modelarts",)),
        ("--flavor", request.flavor, ("modelarts",)),
        ("--pool", request.pool, ("modelarts",)),
        ("--engine-version", request.engine_version, ("modelarts",)),
    ]
    for name, value, launchers in options:
        if value and request.place not in launchers:
            raise UserError(
                f"has no effect on {request.place}",
                where=name,
                todo=f"Omit it; it is for {' and '.join(launchers)}.",
            )
    for name, value in (("--cann", request.cann), ("--ascend-runtime", request.ascend_runtime)):
        if value and request.accelerator in ("cpu", "cuda"):
            raise UserError(f"has no effect on {request.accelerator}", where=name, todo="Omit it.")


def _check_recipe(training: Training) -> None:
    """Reject an unknown recipe or setting here instead of after hours in a queue.

    Without torch, recipes cannot be imported here; only the nodes check them.
    """
    if find_spec("torch") is None:
        return
    from jumar.recipes.registry import create_recipe, import_modules

    import_modules(training.imports)
    create_recipe(training.what, training.assignments)


def _rank_table(request: LaunchRequest) -> RankTable | None:
    """Read the rank table and check that torchrun supports it: equal nodes, ranks in order."""
    if request.rank_table is None:
        return None
    if request.place not in ("this", "slurm", "docker"):
        raise UserError(
            f"{request.place} writes its own rank table", where="--rank-table", todo="Omit it."
        )
    if request.accelerator not in (None, "npu"):
        raise UserError("only NPUs have a rank table", where="--rank-table")
    table = sound_table(request.rank_table)
    if table.version == "2.0" or not torchrun_lines(table):
        raise UserError(
            "torchrun needs the same number of consecutive ranks on every node, unlike in this "
            "table",
            where=str(request.rank_table),
            todo="`jumar launch ranktable` shows its content.",
        )
    return table


def _job(request: LaunchRequest, table: RankTable | None) -> Job:
    nodes, devices = (1 if count is None else count for count in (request.nodes, request.devices))
    accelerator = request.accelerator
    if table is not None:
        accelerator = "npu"
        nodes, devices = len(table.servers), len(table.servers[0].devices)
        if request.nodes not in (None, nodes) or request.devices not in (None, devices):
            raise UserError(
                f"the table has {nodes} servers with {devices} devices each",
                where="--nodes, --devices",
                todo="Omit them with --rank-table.",
            )
    accelerator = accelerator or _accelerator_here(request.place)
    name = request.name or name_from(Path(request.training.what).stem)
    default_python = sys.executable if request.place in ("this", "slurm") else "python3"
    return Job(
        name=name,
        words=_words(request, accelerator, name),
        accelerator=accelerator,
        nodes=nodes,
        devices=devices,
        python=request.python or default_python,
        environment=request.environment,
        cann=request.cann,
        has_rank_table=table is not None,
        cards=_cards(table) if table is not None else (),
    )


def _cards(table: RankTable) -> tuple[str, ...]:
    """Return the NPUs of each node, in rank order; nothing if each node's are numbered from 0."""
    servers = sorted(table.servers, key=lambda server: server.devices[0].rank)
    cards = tuple(",".join(device.device_id for device in server.devices) for server in servers)
    default_ids = ",".join(map(str, range(len(servers[0].devices))))
    return () if set(cards) == {default_ids} else cards


def _accelerator_here(place: Place) -> Accelerator:
    """Return the kind of device of this machine; for other machines, the user must name it."""
    if place != "this":
        raise UserError(
            f"the kind of device is unknown, as {place} does not run on this machine",
            where="--device",
            todo="Add --device npu, cuda or cpu.",
        )
    for accelerator, name in _DEVICE_FILES:
        if exists(Path("/dev", name)):
            return accelerator
    return "cpu"


def _words(
    request: LaunchRequest, accelerator: Accelerator, name: str
) -> tuple[tuple[str, ...], ...]:
    """Return the command for torchrun, each option with its value."""
    training = request.training
    # The start file of the preset engine knows the path of the data and replaces {data} itself.
    preset = training.is_script and not request.image
    data = DATA_FOLDER if request.place == "modelarts" and not preset else "{data}"
    words = [word.replace("{data}", data) for word in training.arguments]
    options = [
        tuple(words[position : position + 1 + _takes_value(words, position)])
        for position in range(len(words))
        if not (position and _takes_value(words, position - 1))
    ]
    if training.is_script:
        return ((_script_path(request),), *options)
    run = {
        "this": str(request.to.absolute() / "run"),
        "slurm": str(request.to.absolute() / "run"),
        "docker": f"{LAUNCH_FOLDER}/run",
        "kubernetes": f"{WORK_FOLDER}/runs/{name}",
        "modelarts": f"{RESULT_FOLDER}/run",
    }[request.place]
    defaults = [] if training.names_run else [("--run-dir", run)]
    defaults += [] if training.names_device else [("--device", accelerator)]
    return (("-m", "jumar", "train", training.what), *defaults, *options)


def _takes_value(words: Sequence[str], position: int) -> bool:
    """Return whether a word looks like an option whose value is the next word."""
    return (
        words[position].startswith("-")
        and "=" not in words[position]
        and position + 1 < len(words)
        and not words[position + 1].startswith("-")
    )


def _script_path(request: LaunchRequest) -> str:
    """Return the script's path on the nodes, relative to the working folder in containers."""
    path = Path(request.training.what)
    if request.place in ("this", "slurm"):
        return str(path.absolute())
    try:
        return Path(os.path.normpath(path.absolute())).relative_to(Path.cwd()).as_posix()
    except ValueError:
        raise UserError(
            "the script is outside the working folder, and the nodes only get that folder",
            where=str(path),
            todo="Change to the folder of your project and name the script relative to it.",
        ) from None


def _launch(request: LaunchRequest, job: Job, to: Path) -> Launch:
    folder = Path(checked_text(str(Path.cwd()), "the working folder"))
    if request.place == "this":
        return launch_here(job, folder=folder)
    if request.place == "slurm":
        return launch_on_slurm(job, request.slurm, folder=folder, to=to)
    if request.place == "docker":
        return launch_in_docker(
            job,
            DockerOptions(
                image=request.image,
                chip=request.chip,
                ascend_runtime=request.ascend_runtime,
                mounts=tuple(path.absolute() for path in request.mounts),
            ),
            folder=folder,
            to=to,
        )
    if request.place == "kubernetes":
        return launch_on_kubernetes(
            job,
            KubernetesOptions(
                image=request.image,
                kind=request.kind or ("ascendjob" if job.accelerator == "npu" else "indexed"),
                namespace=request.namespace,
                claim=request.claim,
                queue=request.queue,
                chip=request.chip,
            ),
        )
    script = _script_path(request) if request.training.is_script else ""
    return launch_on_modelarts(
        job,
        ModelArtsOptions(
            obs=request.obs,
            data=request.data,
            flavor=request.flavor,
            pool=request.pool,
            image=request.image,
            engine_version=request.engine_version,
        ),
        script=script,
    )


def launch_lines(request: LaunchRequest, job: Job, launch: Launch) -> list[str]:
    """Return the lines that `jumar launch` prints about the written files."""
    width = max(map(len, launch.files))
    nodes = f"{job.nodes} node{'s' * (job.nodes > 1)} x {job.devices} {job.accelerator}"
    where = shlex.quote(str(request.to))
    return [
        f"{request.training.what} on {request.place}: {nodes}",
        *(
            f"  {request.to / name}{' ' * (width - len(name))}  {launch.about[name]}"
            for name in launch.files
        ),
        *(f"note: {note}" for note in launch.notes),
        *(f"start: {line.replace('{to}', where)}" for line in launch.start),
    ]


def environment_of(assignments: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the variables of `--env NAME=VALUE`; of a repeated name, the last value.

    Raises:
        UserError: A variable has no value.
    """
    variables: dict[str, str] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"'{text}' has no value", where="--env", todo="Write NAME=VALUE.")
        variables[name] = value
    return tuple(variables.items())
