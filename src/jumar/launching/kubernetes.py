"""Launches training on Kubernetes: an indexed Job, a Volcano Job, or an AscendJob."""

import re
from dataclasses import dataclass
from typing import Any, Literal

from jumar.ground.errors import UserError
from jumar.launching.job import Job, Launch
from jumar.launching.node import NODE_SCRIPT, node_script
from jumar.launching.yaml_text import documents

JOB_FILE = "job.yaml"
WORK_FOLDER = "/work"
ASCEND_PORT = 2222
"""The port of ascend-operator's service for the master pod."""
_PORT = 29500
_SCRIPT_FOLDER = "/launch"

Kind = Literal["indexed", "volcano", "ascendjob"]

_RENDEZVOUS: dict[Kind, str] = {
    # Pods of an indexed Job are named JOB-INDEX, which the headless service makes a host name.
    "indexed": """\
NODE_RANK=${{JOB_COMPLETION_INDEX:-0}}
MASTER_ADDR={name}-0.{name}
MASTER_PORT={port}
""",
    # Set by Volcano's plugins env and svc; the first host has index 0.
    "volcano": """\
NODE_RANK=${{VC_TASK_INDEX:-0}}
hosts=${{VC_WORKER_HOSTS:-127.0.0.1}}
MASTER_ADDR=${{hosts%%,*}}
MASTER_PORT={port}
""",
    # ascend-operator: RANK is the rank of the pod, WORLD_SIZE the number of all NPUs.
    "ascendjob": """\
NODE_RANK=${{RANK:-0}}
MASTER_ADDR=${{MASTER_ADDR:-127.0.0.1}}
MASTER_PORT=${{MASTER_PORT:-{port}}}
[ "${{WORLD_SIZE:-{world}}}" = {world} ] || fail "the job has $WORLD_SIZE NPUs, not {world}"
""",
}


@dataclass(frozen=True, kw_only=True)
class KubernetesOptions:
    """Settings of the Kubernetes objects.

    Attributes:
        image: The image with jumar.
        kind: Kind of job; by default an AscendJob for NPUs, else an indexed Job.
        namespace: Empty for kubectl's default.
        claim: The PersistentVolumeClaim mounted as `/work`; empty for none.
        queue: Volcano's queue.
        chip: The chip, as in the tags of CANN's images; it determines the labels of an AscendJob.
    """

    image: str
    kind: Kind
    namespace: str = ""
    claim: str = ""
    queue: str = "default"
    chip: str = "910b"

    def __post_init__(self) -> None:
        for text, option in (
            (self.namespace, "--namespace"),
            (self.claim, "--claim"),
            (self.queue, "--queue"),
        ):
            if text and not re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", text):
                raise UserError(
                    f"'{text}' is not a Kubernetes name",
                    where=option,
                    todo="Use lower-case letters, digits and hyphens, at most 63 characters.",
                )
        if not re.fullmatch(r"[\w.:/@-]+", self.image):
            raise UserError(
                f"'{self.image}' is not an image" if self.image else "is missing",
                where="--image",
                todo="Specify an image with jumar that the nodes can pull, such as "
                "registry.example.com/jumar-npu:1; `--on docker` writes a Dockerfile for it.",
            )


def launch_on_kubernetes(job: Job, options: KubernetesOptions) -> Launch:
    """Return the file for `kubectl apply`."""
    if options.kind == "ascendjob" and job.accelerator != "npu":
        raise UserError(
            "an AscendJob requires NPUs", where="--kind", todo="Use indexed or volcano."
        )
    port = ASCEND_PORT if options.kind == "ascendjob" else _PORT
    world = job.nodes * job.devices
    rendezvous = _RENDEZVOUS[options.kind].format(name=job.name, port=port, world=world)
    logs = f"{WORK_FOLDER}/runs/{job.name}-logs" if options.claim else "/tmp/logs"  # noqa: S108
    node = node_script(
        job, rendezvous=rendezvous, about="Started in each pod.", folder=WORK_FOLDER, logs=logs
    )
    script = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(job, options, name=f"{job.name}-node"),
        "data": {NODE_SCRIPT: node},
    }
    job_objects = {"indexed": _indexed, "volcano": _volcano, "ascendjob": _ascend_job}[options.kind]
    text = documents(script, *job_objects(job, options))
    notes = ["Volcano must be installed."] if options.kind != "indexed" else []
    if options.kind == "ascendjob":
        notes = ["Volcano and ascend-operator (MindCluster) must be installed."]
    if not options.claim:
        notes.append("Without --claim, the run directory is lost when its pod ends.")
    return Launch(
        files={JOB_FILE: text},
        about={JOB_FILE: f"a ConfigMap with {NODE_SCRIPT}, and the {options.kind} job"},
        start=(f"kubectl apply -f {{to}}/{JOB_FILE}",),
        notes=tuple(notes),
    )


def _metadata(job: Job, options: KubernetesOptions, **more: Any) -> dict[str, Any]:
    space = {"namespace": options.namespace} if options.namespace else {}
    return {"name": job.name, **space, **more}


def _indexed(job: Job, options: KubernetesOptions) -> list[dict[str, Any]]:
    labels = {"app": job.name}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(job, options),
        "spec": {
            "clusterIP": "None",
            # The address of the first pod is needed before the pod is ready.
            "publishNotReadyAddresses": True,
            "selector": labels,
            "ports": [{"name": "torchrun", "port": _PORT}],
        },
    }
    work = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(job, options),
        "spec": {
            "completionMode": "Indexed",
            "completions": job.nodes,
            "parallelism": job.nodes,
            # A single restarted pod would wait for ranks that have ended.
            "backoffLimit": 0,
            "template": {
                "metadata": {"labels": labels},
                "spec": {"subdomain": job.name, **_pod(job, options)},
            },
        },
    }
    return [service, work]


def _volcano(job: Job, options: KubernetesOptions) -> list[dict[str, Any]]:
    work = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": _metadata(job, options),
        "spec": {
            "minAvailable": job.nodes,
            "schedulerName": "volcano",
            "queue": options.queue,
            "maxRetry": 3,
            "plugins": {"env": [], "svc": ["--publish-not-ready-addresses=true"]},
            # All pods are restarted: training resumes from its last checkpoint.
            "policies": [
                {"event": "PodFailed", "action": "RestartJob"},
                {"event": "PodEvicted", "action": "RestartJob"},
            ],
            "tasks": [
                {
                    "name": "worker",
                    "replicas": job.nodes,
                    "policies": [{"event": "TaskCompleted", "action": "CompleteJob"}],
                    "template": {
                        "metadata": {"labels": {"app": job.name}},
                        "spec": _pod(job, options),
                    },
                }
            ],
        },
    }
    return [work]


def _ascend_job(job: Job, options: KubernetesOptions) -> list[dict[str, Any]]:
    label = {"ring-controller.atlas": "ascend-910" if options.chip == "910" else "ascend-910b"}

    def replicas(number: int) -> dict[str, Any]:
        return {
            "replicas": number,
            "restartPolicy": "Never",
            "template": {"metadata": {"labels": label}, "spec": _pod(job, options)},
        }

    # There is one Master, and the operator counts the Workers from 1.
    specs = {"Master": replicas(1)}
    if job.nodes > 1:
        specs["Worker"] = replicas(job.nodes - 1)
    work = {
        "apiVersion": "mindxdl.gitee.com/v1",
        "kind": "AscendJob",
        "metadata": _metadata(
            job,
            options,
            labels={"framework": "pytorch", **label, "fault-scheduling": "grace"},
        ),
        "spec": {
            "schedulerName": "volcano",
            "runPolicy": {
                "backoffLimit": 3,
                "schedulingPolicy": {"minAvailable": job.nodes, "queue": options.queue},
            },
            "successPolicy": "AllWorkers",
            "replicaSpecs": specs,
        },
    }
    return [work]


def _pod(job: Job, options: KubernetesOptions) -> dict[str, Any]:
    """Return the specification of a pod, which is one node."""
    ascend = options.kind == "ascendjob"
    volumes: list[dict[str, Any]] = [
        {"name": "node", "configMap": {"name": f"{job.name}-node"}},
        # Shared memory for the data loaders; containers have only 64 MiB by default.
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
    ]
    mounts: list[dict[str, Any]] = [
        {"name": "node", "mountPath": _SCRIPT_FOLDER},
        {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108
    ]
    work = (
        {"persistentVolumeClaim": {"claimName": options.claim}}
        if options.claim
        else {"emptyDir": {}}
    )
    volumes.append({"name": "work", **work})
    mounts.append({"name": "work", "mountPath": WORK_FOLDER})
    if job.accelerator == "npu":
        driver = "/usr/local/Ascend/driver"
        volumes.append({"name": "driver", "hostPath": {"path": driver}})
        mounts.append({"name": "driver", "mountPath": driver, "readOnly": True})
    container: dict[str, Any] = {
        # ascend-operator looks for a container of this name.
        "name": "ascend" if ascend else "jumar",
        "image": options.image,
        "command": ["bash", f"{_SCRIPT_FOLDER}/{NODE_SCRIPT}"],
        "resources": _resources(job, options),
        "volumeMounts": mounts,
    }
    if ascend:
        container["ports"] = [{"name": "ascendjob-port", "containerPort": ASCEND_PORT}]
        container["env"] = _ascend_variables(options)
    pod: dict[str, Any] = {"restartPolicy": "Never", "containers": [container], "volumes": volumes}
    if options.kind != "indexed":
        pod["schedulerName"] = "volcano"
    return pod


def _resources(job: Job, options: KubernetesOptions) -> dict[str, Any]:
    kinds = {"cpu": "cpu", "cuda": "nvidia.com/gpu", "npu": _npu_resource(options)}
    amount = {kinds[job.accelerator]: job.devices}
    return {"requests": amount, "limits": amount}


def _npu_resource(options: KubernetesOptions) -> str:
    """Return the resource name of Ascend's device plugin, which selects the rank table version."""
    resources = {"950": "huawei.com/npu", "310p": "huawei.com/Ascend310P"}
    return resources.get(options.chip, "huawei.com/Ascend910")


def _ascend_variables(options: KubernetesOptions) -> list[dict[str, Any]]:
    """Return the variables of the operator's examples: addresses and assigned devices."""
    paths = {
        "XDL_IP": "status.hostIP",
        "POD_IP": "status.podIP",
        "ASCEND_VISIBLE_DEVICES": f"metadata.annotations['{_npu_resource(options)}']",
    }
    return [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for name, path in paths.items()
    ]
