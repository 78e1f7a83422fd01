"""`jumar launch` and `jumar launch ranktable`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, CycloptsError, Group, Parameter

from jumar.cli.options import EVERY_OPTION, OPTIONS, Token
from jumar.ground.errors import UserError
from jumar.ground.text import print_plain

if TYPE_CHECKING:
    from jumar.runs.launch import Training

app = App(
    name="launch",
    help="Write the files that start training on this or other machines, and start it.",
    usage="Usage: jumar launch [OPTIONS] RECIPE|SCRIPT --on PLACE --to DIR [-- OPTIONS]\n"
    "       jumar launch ranktable [OPTIONS] FILE",
    group_parameters=OPTIONS,
)

_NODES = Parameter(group=Group("The nodes", sort_key=1))
_ASCEND = Parameter(group=Group("Ascend", sort_key=2))
_SLURM = Parameter(group=Group("On slurm", sort_key=3))
_IMAGE = Parameter(group=Group("In containers: docker, kubernetes, modelarts", sort_key=4))
_KUBERNETES = Parameter(group=Group("On kubernetes", sort_key=5))
_MODELARTS = Parameter(group=Group("On modelarts", sort_key=6))


@app.default
def launch(
    what: str,
    /,
    *rest: Token,
    on: Literal["this", "slurm", "modelarts", "kubernetes", "docker"],
    to: Path,
    run: bool = False,
    name: Annotated[str, Parameter(metavar="NAME")] = "",
    nodes: Annotated[int | None, _NODES] = None,
    devices: Annotated[int | None, _NODES] = None,
    device: Annotated[Literal["cpu", "cuda", "npu"] | None, _NODES] = None,
    python: Annotated[str, Parameter(metavar="PYTHON"), _NODES] = "",
    env: Annotated[tuple[str, ...], Parameter(metavar="NAME=VALUE"), _NODES] = (),
    cann: Annotated[str, Parameter(metavar="RELEASE"), _ASCEND] = "",
    chip: Annotated[str, Parameter(metavar="CHIP"), _ASCEND] = "910b",
    ascend_runtime: Annotated[bool, _ASCEND] = False,
    rank_table: Annotated[Path | None, Parameter(metavar="FILE"), _ASCEND] = None,
    partition: Annotated[str, Parameter(metavar="PARTITION"), _SLURM] = "",
    account: Annotated[str, Parameter(metavar="ACCOUNT"), _SLURM] = "",
    time: Annotated[str, Parameter(metavar="H:MM:SS"), _SLURM] = "",
    cpus: Annotated[int | None, _SLURM] = None,
    sbatch: Annotated[tuple[str, ...], Parameter(metavar="NAME=VALUE"), _SLURM] = (),
    image: Annotated[str, Parameter(metavar="IMAGE"), _IMAGE] = "",
    mount: Annotated[tuple[Path, ...], _IMAGE] = (),
    kind: Annotated[Literal["indexed", "volcano", "ascendjob"] | None, _KUBERNETES] = None,
    namespace: Annotated[str, Parameter(metavar="NAMESPACE"), _KUBERNETES] = "",
    claim: Annotated[str, Parameter(metavar="CLAIM"), _KUBERNETES] = "",
    queue: Annotated[str, Parameter(metavar="QUEUE"), _KUBERNETES] = "default",
    obs: Annotated[str, Parameter(metavar="URL"), _MODELARTS] = "",
    data: Annotated[str, Parameter(metavar="URL"), _MODELARTS] = "",
    flavor: Annotated[str, Parameter(metavar="FLAVOR"), _MODELARTS] = "",
    pool: Annotated[str, Parameter(metavar="POOL"), _MODELARTS] = "",
    engine_version: Annotated[str, Parameter(metavar="VERSION"), _MODELARTS] = "",
) -> int:
    """Write plain files that start training on this or other machines; --run also starts it.

    Options of `jumar train`, or arguments of the script, follow at the end, after `--`:
    `jumar launch alexnet --on slurm --to launches/a --device npu -- --set training.duration=90ep`.
    The default run directory is `run` next to the files, so that a restarted job resumes from its
    last checkpoint.

    Parameters
    ----------
    what
        A recipe, or a script (.py) that torchrun can start.
    rest
        Options of `jumar train`, or arguments of the script.
    on
        Where to start the training.
    to
        Folder for the files. Other files in it are kept.
    run
        Also start the training: on this machine, by sbatch, or in docker.
    name
        Name of the job; by default derived from the recipe or script.
    nodes
        Number of machines, 1 by default; on this machine, each node is a process.
    devices
        Processes per node, one per device, 1 by default.
    device
        Device to compute on; required unless the training runs on this machine.
    python
        Python interpreter on the nodes; by default this one, in containers python3.
    env
        Set a variable on the nodes; may be repeated.
    cann
        The CANN release on the nodes, such as 8.3.RC1; by default it is detected there.
    chip
        The chip, as in tags of CANN's images: 910, 910b, a3, 310p or 950.
    ascend_runtime
        Let Ascend's docker runtime map the devices.
    rank_table
        Rank table for HCCL; it also sets nodes and devices.
    partition
        Partition of the cluster.
    account
        Account to charge.
    time
        Time limit; a checkpoint is written two minutes before.
    cpus
        Cores per node.
    sbatch
        Another directive, such as `--sbatch qos=high`; may be repeated.
    image
        An image with jumar; for docker, by default a Dockerfile is written.
    mount
        A folder to mount in the container under the same path; may be repeated.
    kind
        Kind of job; by default an AscendJob for NPUs, else an indexed Job.
    namespace
        Namespace of the objects.
    claim
        PersistentVolumeClaim mounted as /work in the pods.
    queue
        Volcano's queue.
    obs
        Folder in OBS for code, results and logs, such as obs://bucket/cats.
    data
        The data in OBS; `{data}` after `--` becomes its path on the nodes.
    flavor
        The kind of machine, by its name in ModelArts.
    pool
        A dedicated pool of machines.
    engine_version
        Version of the preset engine, for a script without an image.
    """
    from jumar.launching.slurm import SlurmOptions
    from jumar.launching.starting import check_startable, start_here, start_in_docker, submit
    from jumar.runs.launch import (
        LaunchRequest,
        environment_of,
        launch_lines,
        write_launch_files,
    )

    if run:
        check_startable(on)
    request = LaunchRequest(
        training=_training(what, rest),
        place=on,
        to=to,
        nodes=nodes,
        devices=devices,
        accelerator=device,
        name=name,
        python=python,
        environment=environment_of(env),
        cann=cann,
        chip=chip,
        image=image,
        slurm=SlurmOptions(
            partition=partition, account=account, time=time, cpus=cpus, directives=sbatch
        ),
        kind=kind,
        namespace=namespace,
        claim=claim,
        queue=queue,
        obs=obs,
        data=data,
        flavor=flavor,
        pool=pool,
        engine_version=engine_version,
        ascend_runtime=ascend_runtime,
        rank_table=rank_table,
        mounts=mount,
    )
    job, launched = write_launch_files(request)
    for line in launch_lines(request, job, launched):
        print_plain(line)
    if not run:
        return 0
    if on == "slurm":
        number = submit(to)
        print_plain(f"submitted: job {number}; its log is {to}/slurm-{number}.out")
        return 0
    if on == "docker":
        return start_in_docker(to, job.accelerator)
    start_here(to)
    return 0


def _training(what: str, rest: tuple[str, ...]) -> "Training":
    """Return the training to start, after checking its options as `jumar train` does."""
    from jumar.cli.train import assignments, train
    from jumar.runs.launch import Training

    if what.endswith(".py"):
        return Training(what=what, is_script=True, arguments=rest)
    parser = App(default_parameter=EVERY_OPTION)
    parser.default(train)
    try:
        _, bound, _ = parser.parse_args(
            [what, *rest], print_error=False, exit_on_error=False, end_of_options_delimiter=""
        )
    except CycloptsError as error:
        raise UserError(
            " ".join(str(error).split()),
            where="after --",
            todo="`jumar train --help` lists the options.",
        ) from error
    options = bound.arguments
    return Training(
        what=what,
        is_script=False,
        arguments=rest,
        assignments=assignments(
            options.get("set_", ()),
            skip_corrupt=options.get("skip_corrupt"),
            emulate_fp16=options.get("emulate_fp16", False),
        ),
        imports=options.get("import_", ()),
        names_run="run_dir" in options,
        names_device="device" in options,
    )


@app.command
def ranktable(
    file: Path,
    /,
    *,
    to_version: Annotated[
        Literal["0", "1.0", "1.2", "2.0"] | None, Parameter(metavar="VERSION")
    ] = None,
    to: Path | None = None,
    hccn: Path = Path("/etc/hccn.conf"),
    server_id: Annotated[str, Parameter(metavar="ID")] = "",
) -> int:
    """Check the consistency of a rank table with itself, the environment and this machine.

    Prints a line for each contradiction; the exit code is 1 if there is one. Tables of any version
    can be checked and converted.

    Parameters
    ----------
    file
        The table: hccl.json, rank_table_*.json, jobstart_hccl.json.
    to_version
        Version to convert the table to; 0 is the first format, which has no version number.
    to
        The file to write.
    hccn
        The driver's file with the addresses of this machine's devices.
    server_id
        The server_id of this machine; by default detected from its addresses.
    """
    import os

    from jumar.launching.ranktables.report import convert_to, report_on

    if (to_version is None) != (to is None):
        raise UserError(
            "--to-version and --to require each other",
            todo="Give both, or neither to only check the table.",
        )
    report = report_on(file, variables=os.environ, hccn=hccn, server_id=server_id)
    for line in report.about:
        print_plain(line)
    for line in report.wrong:
        print_plain(f"wrong: {line}")
    if to_version is not None and to is not None:
        convert_to(file, to_version, to)
        print_plain(f"written: {to}")
    return int(bool(report.wrong))
