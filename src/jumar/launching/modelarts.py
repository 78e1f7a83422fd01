"""Launches training as a ModelArts job: the body of the API request, and the files in OBS."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jumar.ground.errors import UserError
from jumar.launching.job import Job, Launch
from jumar.launching.node import NODE_SCRIPT, node_script
from jumar.launching.ported import MODELARTS_SCRIPT, OUTPUT_FOLDERS, modelarts_script

FORM = "job.json"
CODE = "code"
JOB_FOLDER = "/home/ma-user/modelarts/user-job-dir"
"""The folder into which ModelArts copies the code folder, under its own name."""
DATA_FOLDER = "/home/ma-user/modelarts/inputs/data_url_0"
RESULT_FOLDER = "/home/ma-user/modelarts/outputs/train_url_0"
ENGINE = "Ascend-Powered-Engine"

_MAX_VARIABLES = 100
_RENDEZVOUS = """\
NODE_RANK=${{VC_TASK_INDEX:-0}}
hosts=${{VC_WORKER_HOSTS:-127.0.0.1}}
MASTER_ADDR=${{hosts%%,*}}
MASTER_PORT=${{MASTER_PORT:-6060}}
[ "${{MA_NUM_HOSTS:-{nodes}}}" = {nodes} ] || fail "the job has $MA_NUM_HOSTS node(s), not {nodes}"
[ "${{MA_NUM_GPUS:-{devices}}}" = {devices} ] \\
    || fail "a node has $MA_NUM_GPUS device(s), not {devices}: choose another flavor"
"""


@dataclass(frozen=True, kw_only=True)
class ModelArtsOptions:
    """Settings of the job besides the training itself.

    Attributes:
        obs: The folder in OBS for code, results and logs.
        data: The data in OBS; empty for none.
        flavor: The kind of machine, such as `modelarts.bm.8xlarge.ascend`.
        pool: A dedicated pool of machines; empty for the public one.
        image: An image in SWR with jumar; empty for the preset engine, which only runs scripts.
        engine_version: The version of the preset engine.
    """

    obs: str
    flavor: str
    data: str = ""
    pool: str = ""
    image: str = ""
    engine_version: str = ""


def launch_on_modelarts(job: Job, options: ModelArtsOptions, *, script: str = "") -> Launch:
    """Return the request body, and the code to copy to OBS.

    Args:
        job: The job to start; `{data}` in it becomes the path of the data.
        options: The other settings.
        script: The script that a preset engine runs, relative to the code; empty with an image.

    Raises:
        UserError: ModelArts would reject the job.
    """
    _check(job, options, script)
    base = _path(options.obs, "--obs")
    if options.image:
        files = {f"{CODE}/{NODE_SCRIPT}": _node(job)}
        runs: dict[str, Any] = {
            "engine": {"image_url": options.image},
            "command": shlex.join(["bash", f"{JOB_FOLDER}/{CODE}/{NODE_SCRIPT}"]),
        }
    else:
        text = modelarts_script(entry=script, output_folders=OUTPUT_FOLDERS)
        files = {f"{CODE}/{MODELARTS_SCRIPT}": text}
        runs = {
            "engine": {"engine_name": ENGINE, "engine_version": options.engine_version},
            "boot_file": f"{base}/{CODE}/{MODELARTS_SCRIPT}",
            "parameters": [
                *_data_parameters(options.data),
                *_parameters([word for line in job.words for word in line][1:]),
            ],
        }
    form = _form(job, options, base, runs)
    files[FORM] = f"{json.dumps(form, indent=2, ensure_ascii=False)}\n"
    url = options.obs.rstrip("/")
    upload = [f"obsutil cp {{to}}/{CODE} {shlex.quote(f'{url}/{CODE}')} -r -f -flat"]
    if not options.image:
        upload.append(_upload_of_script(script, f"{url}/{CODE}"))
    return Launch(
        files=files,
        about={name: "the request" if name == FORM else "the code to run" for name in files},
        start=(*upload, f"post {{to}}/{FORM} to /v2/PROJECT/training-jobs"),
        notes=(
            "On several nodes, resuming requires a path that all of them share (SFS or PFS): OBS "
            "is copied, not shared.",
        )
        if job.nodes > 1
        else (),
    )


def _form(job: Job, options: ModelArtsOptions, base: str, runs: dict[str, Any]) -> dict[str, Any]:
    """Return the body of `POST /v2/{project_id}/training-jobs`."""
    algorithm: dict[str, Any] = {
        "code_dir": f"{base}/{CODE}/",
        **runs,
        "outputs": [
            {
                "name": "train_url",
                "local_dir": RESULT_FOLDER,
                "remote": {"obs": {"obs_url": f"{base}/results/"}},
            }
        ],
    }
    if options.data and not _is_zip(options.data):
        algorithm["inputs"] = [
            {
                "name": "data_url",
                "local_dir": DATA_FOLDER,
                "remote": {"obs": {"obs_url": f"{_path(options.data, '--data')}/"}},
            }
        ]
    if job.environment:
        algorithm["environments"] = dict(job.environment)
    resource: dict[str, Any] = {"flavor_id": options.flavor, "node_count": job.nodes}
    if options.pool:
        resource["pool_id"] = options.pool
    return {
        "kind": "job",
        "metadata": {
            "name": job.name,
            "description": f"{job.nodes} x {job.devices} {job.accelerator}, by jumar launch",
        },
        "algorithm": algorithm,
        "spec": {"resource": resource, "log_export_path": {"obs_url": f"{base}/logs/"}},
    }


def _is_zip(url: str) -> bool:
    """Return whether the data is a single file, which cannot be the input of a job."""
    return url.lower().endswith(".zip")


def _data_parameters(url: str) -> list[dict[str, str]]:
    """Return a zip as an argument of the start file, which fetches and unpacks it."""
    if not _is_zip(url):
        return []
    return [{"name": "data_url", "value": f"obs:/{_path(url, '--data')}"}]


def _upload_of_script(script: str, code: str) -> str:
    """Return the command that copies only the script's folder."""
    top, _, path_within = script.partition("/")
    if not path_within:
        return f"obsutil cp . {shlex.quote(code)} -r -f -flat"
    # Without -flat, the folder keeps its name below the target.
    return f"obsutil cp {shlex.quote(top)} {shlex.quote(code)} -r -f"


def _node(job: Job) -> str:
    """Return the script that each node of a job with an image runs."""
    return node_script(
        job,
        rendezvous=_RENDEZVOUS.format(nodes=job.nodes, devices=job.devices),
        about="The command of a job with a custom image, run once per node.",
        folder=f"{JOB_FOLDER}/{CODE}",
        logs=f"{RESULT_FOLDER}/logs",
    )


def _check(job: Job, options: ModelArtsOptions, script: str) -> None:
    if not options.image and not script:
        raise UserError(
            "the preset engine does not contain jumar",
            where="--image",
            todo="Specify an image in SWR with jumar; `jumar launch --on docker` writes a "
            "Dockerfile for it. Your own scripts do not need one.",
        )
    if options.image and _is_zip(options.data):
        raise UserError(
            "ModelArts copies folders, but this is a file",
            where=f"--data {options.data}",
            todo="Specify the folder that contains it, and write {data}/NAME.zip after --.",
        )
    if not options.image and not options.engine_version:
        raise UserError(
            "the version of the preset engine is missing",
            where="--engine-version",
            todo=f"Specify the version of {ENGINE} that the console lists, or --image.",
        )
    if not options.flavor:
        raise UserError(
            "the flavor (kind of machine) is missing",
            where="--flavor",
            todo="Specify one that the console lists, such as modelarts.bm.8xlarge.ascend.",
        )
    reserved_names = [name for name, _ in job.environment if name.startswith("MA_")]
    if reserved_names or len(job.environment) > _MAX_VARIABLES:
        raise UserError(
            f"{reserved_names[0]} is reserved"
            if reserved_names
            else f"{len(job.environment)} variables are too many",
            where="--env",
            todo=f"ModelArts accepts at most {_MAX_VARIABLES} variables, none starting with MA_.",
        )


def _path(url: str, where: str) -> str:
    """Convert an OBS address to the form that the API expects: `/bucket/folder`."""
    match = re.fullmatch(r"(?:obs|s3):/(/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/.*)?)", url)
    if not match:
        raise UserError(
            f"'{url}' is not a folder in OBS", where=where, todo="Write obs://bucket/folder."
        )
    return match[1].rstrip("/")


def _parameters(arguments: Sequence[str]) -> list[dict[str, str]]:
    """Convert a script's arguments to the form that the API expects: names with values."""
    pairs: list[dict[str, str]] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        match = re.fullmatch(r"--?([A-Za-z][\w.-]*)(?:=(.*))?", word, re.DOTALL)
        if not match:
            raise UserError(
                f"'{word}' is not an option with a value",
                where="-- ARGUMENTS",
                todo="Jobs with a preset engine accept only --name value.",
            )
        value = match[2]
        if value is None:
            value = rest.pop(0) if rest and not rest[0].startswith("-") else ""
        pairs.append({"name": match[1], "value": value})
    return pairs
