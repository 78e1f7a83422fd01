"""Objects for Kubernetes, checked against its schemas and the operators' requirements."""

import os
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.launching.kubernetes import KubernetesOptions, launch_on_kubernetes
from tests.conftest import SHARED
from tests.launching.launches import job

yaml = pytest.importorskip("yaml")

KINDS = ("indexed", "volcano", "ascendjob")
CASES = [
    (kind, accelerator, nodes)
    for kind in KINDS
    for accelerator in ("cpu", "cuda", "npu")
    for nodes in (1, 3)
    if kind != "ascendjob" or accelerator == "npu"
]
CRDS = Path(os.environ.get("JUMAR_CRDS", SHARED / "data" / "crds"))
"""Resource definitions of volcano-sh/volcano and Ascend/mind-cluster, which are not ours."""


def objects(kind: str, accelerator: str = "npu", nodes: int = 2, **more) -> list[dict]:
    options = KubernetesOptions(image="reg.io/jumar:1", kind=kind, **more)
    work = job(nodes=nodes, devices=8, accelerator=accelerator)
    launch = launch_on_kubernetes(work, options)
    return list(yaml.safe_load_all(launch.files["job.yaml"]))


def pods(kind: str, work: dict) -> list[dict]:
    if kind == "indexed":
        return [work["spec"]["template"]["spec"]]
    if kind == "volcano":
        return [task["template"]["spec"] for task in work["spec"]["tasks"]]
    return [each["template"]["spec"] for each in work["spec"]["replicaSpecs"].values()]


@pytest.mark.parametrize(("kind", "accelerator", "nodes"), CASES)
def test_kubernetes_accepts_the_objects(kind, accelerator, nodes):
    validate = pytest.importorskip(
        "kubernetes_validate", reason="needs kubernetes-validate (108 MB of schemas)"
    )
    more = {"namespace": "team", "claim": "data"} if nodes > 1 else {}
    for each in objects(kind, accelerator, nodes, **more):
        if each["apiVersion"] in ("v1", "batch/v1"):
            validate.validate(each, "1.31", strict=True)
        else:
            for pod in pods(kind, each):
                wrapped = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}
                validate.validate({**wrapped, "spec": pod}, "1.31", strict=True)


@pytest.mark.parametrize(
    ("kind", "accelerator", "nodes"), [case for case in CASES if case[0] != "indexed"]
)
def test_operator_definitions_accept_the_objects(kind, accelerator, nodes):
    jsonschema = pytest.importorskip("jsonschema", reason="needs jsonschema")
    if not CRDS.is_dir():
        pytest.skip(f"needs the operators' resource definitions in {CRDS}, or in JUMAR_CRDS")
    (work,) = objects(kind, accelerator, nodes)[1:]
    schema = definition(work["kind"], work["apiVersion"].split("/")[0])
    jsonschema.Draft202012Validator(schema).validate(work)


def definition(kind: str, group: str) -> dict:
    """The schema of a kind, which refuses keys that it does not name."""
    for path in sorted(CRDS.glob("*.yaml")):
        for each in yaml.safe_load_all(path.read_text()):
            spec = (each or {}).get("spec", {})
            if spec.get("group") == group and spec["names"]["kind"] == kind:
                schema = closed(spec["versions"][0]["schema"]["openAPIV3Schema"])
                schema["properties"]["metadata"] = {"type": "object"}
                return schema
    pytest.skip(f"no definition of {kind} in {CRDS}")


def closed(schema):
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: closed(each) for name, each in schema.items()}
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        inner.setdefault("additionalProperties", False)
    return inner


@pytest.mark.parametrize("nodes", [1, 4])
def test_ascendjob_is_accepted_by_its_operator(nodes):
    """In our own words: validateJob of ascend-operator, Ascend/mind-cluster@22bb3d98."""
    script, work = objects("ascendjob", nodes=nodes)
    assert work["metadata"]["labels"]["framework"] == "pytorch"
    specs = work["spec"]["replicaSpecs"]
    assert specs["Master"]["replicas"] == 1
    assert set(specs) <= {"Master", "Worker"}
    assert sum(each["replicas"] for each in specs.values()) == nodes
    assert work["spec"]["successPolicy"] in ("", "AllWorkers")
    assert work["spec"]["runPolicy"]["schedulingPolicy"]["minAvailable"] == nodes
    for each in specs.values():
        (container,) = each["template"]["spec"]["containers"]
        assert container["name"] == "ascend"
        assert container["image"]
        assert container["resources"]["limits"] == {"huawei.com/Ascend910": 8}
        assert container["ports"] == [{"name": "ascendjob-port", "containerPort": 2222}]
    assert "MASTER_PORT=${MASTER_PORT:-2222}" in script["data"]["node.sh"]


@pytest.mark.parametrize(
    ("chip", "label"), [("910", "ascend-910"), ("910b", "ascend-910b"), ("a3", "ascend-910b")]
)
def test_label_of_an_ascendjob_follows_the_chip(chip, label):
    work = objects("ascendjob", chip=chip)[1]
    assert work["metadata"]["labels"]["ring-controller.atlas"] == label


@pytest.mark.parametrize(
    ("chip", "resource"),
    [
        ("910b", "huawei.com/Ascend910"),
        ("310p", "huawei.com/Ascend310P"),
        ("950", "huawei.com/npu"),
    ],
)
def test_npus_are_requested_by_the_name_of_their_chip(chip, resource):
    for pod in pods("ascendjob", objects("ascendjob", chip=chip)[1]):
        (container,) = pod["containers"]
        assert container["resources"]["limits"] == {resource: 8}
        assert container["env"][-1]["valueFrom"]["fieldRef"]["fieldPath"].count(resource) == 1


def test_pods_of_an_indexed_job_find_the_first_by_name():
    script, service, work = objects("indexed", nodes=3)
    name = work["metadata"]["name"]
    pod = work["spec"]["template"]
    assert service["metadata"]["name"] == pod["spec"]["subdomain"] == name
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert f"MASTER_ADDR={name}-0.{name}\n" in script["data"]["node.sh"]
    assert work["spec"]["completions"] == work["spec"]["parallelism"] == 3


def test_volcano_job_starts_and_restarts_all_pods_together():
    script, work = objects("volcano", nodes=3)
    spec = work["spec"]
    assert spec["minAvailable"] == spec["tasks"][0]["replicas"] == 3
    assert {"env", "svc"} <= set(spec["plugins"])
    assert {"event": "PodFailed", "action": "RestartJob"} in spec["policies"]
    # Volcano's variable has the name of the task in it.
    assert spec["tasks"][0]["name"] == "worker"
    assert "VC_WORKER_HOSTS" in script["data"]["node.sh"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_mount_has_its_volume_and_the_script_its_map(kind):
    script, *_, work = objects(kind, claim="data")
    for pod in pods(kind, work):
        (container,) = pod["containers"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
        assert volumes["node"]["configMap"]["name"] == script["metadata"]["name"]
        assert volumes["work"]["persistentVolumeClaim"] == {"claimName": "data"}
        assert container["command"] == ["bash", "/launch/node.sh"]


@pytest.mark.parametrize(
    "more",
    [
        {"image": ""},
        {"image": "a b"},
        {"namespace": "Team"},
        {"claim": "a_b"},
        {"queue": "x\ny"},
    ],
)
def test_invalid_kubernetes_name_is_refused(more):
    with pytest.raises(UserError):
        KubernetesOptions(**{"image": "i", "kind": "indexed", **more})


def test_ascendjob_without_npus_is_refused():
    with pytest.raises(UserError, match="requires NPUs"):
        objects("ascendjob", "cuda")
