"""The form of a ModelArts job, and what its nodes run."""

import json

import pytest

from jumar.ground.errors import UserError
from jumar.launching.modelarts import ModelArtsOptions, launch_on_modelarts
from tests.launching.launches import bash, calls, job, stand_in, written

IMAGE = {"obs": "obs://bucket/my job", "flavor": "f", "image": "org/jumar:1"}
PRESET = {"obs": "obs://bucket/x", "flavor": "f", "engine_version": "pytorch_2.1"}


def form(options: dict[str, str], script: str = "", **changes) -> dict:
    launch = launch_on_modelarts(
        job(accelerator="npu", **changes), ModelArtsOptions(**options), script=script
    )
    return json.loads(launch.files["job.json"])


def test_form_names_obs_paths_as_the_api_does():
    filled = form({**IMAGE, "data": "obs://other/cats/", "pool": "p1"}, nodes=2, devices=8)
    algorithm = filled["algorithm"]
    assert filled["kind"] == "job"
    assert algorithm["code_dir"] == "/bucket/my job/code/"
    assert algorithm["engine"] == {"image_url": "org/jumar:1"}
    assert algorithm["command"].endswith("/user-job-dir/code/node.sh")
    (data,), (result,) = algorithm["inputs"], algorithm["outputs"]
    assert (data["name"], data["remote"]) == ("data_url", {"obs": {"obs_url": "/other/cats/"}})
    assert result["remote"] == {"obs": {"obs_url": "/bucket/my job/results/"}}
    assert filled["spec"] == {
        "resource": {"flavor_id": "f", "node_count": 2, "pool_id": "p1"},
        "log_export_path": {"obs_url": "/bucket/my job/logs/"},
    }


def test_nodes_get_rank_and_master_from_modelarts_variables(tmp_path):
    python = stand_in(tmp_path / "calls")
    launch = launch_on_modelarts(
        job(accelerator="npu", nodes=2, devices=8, python=str(python)), ModelArtsOptions(**IMAGE)
    )
    to = written(launch, tmp_path)
    script = to / "code" / "node.sh"
    script.write_text(script.read_text().replace("/home/ma-user", str(tmp_path)))
    (tmp_path / "modelarts" / "user-job-dir" / "code").mkdir(parents=True)
    place = {
        "VC_TASK_INDEX": "1",
        "VC_WORKER_HOSTS": "job-worker-0.job,job-worker-1.job",
        "MA_NUM_HOSTS": "2",
        "MA_NUM_GPUS": "8",
    }
    done = bash(script, **place)
    assert done.returncode == 0, done.stderr
    (call,) = calls(tmp_path / "calls")
    given = call["arguments"]
    assert given[given.index("--node-rank") + 1] == "1"
    assert given[given.index("--master-addr") + 1] == "job-worker-0.job"
    for name, value, says in (
        ("MA_NUM_HOSTS", "4", "has 4 node(s), not 2"),
        ("MA_NUM_GPUS", "1", "has 1 device(s), not 8"),
    ):
        refused = bash(script, **{**place, name: value})
        assert refused.returncode == 2
        assert says in refused.stderr


def test_script_runs_on_the_preset_engine_by_the_file_that_port_adds():
    words = (("my/train.py",), ("--lr", "0.1"), ("--name=it's--x",), ("--flag",), ("--after", "x"))
    launch = launch_on_modelarts(
        job(accelerator="npu", words=words), ModelArtsOptions(**PRESET), script="my/train.py"
    )
    assert 'ENTRY = "my/train.py"\n' in launch.files["code/modelarts_run.py"]
    assert (
        '("npu_profiling", "npu_overflow", "npu_tuning")' in launch.files["code/modelarts_run.py"]
    )
    assert "obsutil cp my obs://bucket/x/code -r -f" in launch.start
    filled = json.loads(launch.files["job.json"])["algorithm"]
    assert filled["boot_file"] == "/bucket/x/code/modelarts_run.py"
    assert filled["engine"] == {
        "engine_name": "Ascend-Powered-Engine",
        "engine_version": "pytorch_2.1",
    }
    assert filled["parameters"] == [
        {"name": "lr", "value": "0.1"},
        {"name": "name", "value": "it's--x"},
        {"name": "flag", "value": ""},
        {"name": "after", "value": "x"},
    ]


def test_zip_is_fetched_by_the_start_file_because_inputs_are_folders():
    filled = form({**PRESET, "data": "obs://cats/all.zip"}, "train.py", words=(("train.py",),))
    assert "inputs" not in filled["algorithm"]
    assert filled["algorithm"]["parameters"] == [
        {"name": "data_url", "value": "obs://cats/all.zip"}
    ]


@pytest.mark.parametrize(
    ("options", "script", "changes", "says"),
    [
        ({**IMAGE, "image": ""}, "", {}, "does not contain jumar"),
        ({**PRESET, "engine_version": ""}, "a.py", {}, "version of the preset engine is missing"),
        ({**IMAGE, "flavor": ""}, "", {}, "flavor (kind of machine) is missing"),
        ({**IMAGE, "obs": "bucket/x"}, "", {}, "not a folder in OBS"),
        ({**IMAGE, "obs": "obs://B/x"}, "", {}, "not a folder in OBS"),
        ({**IMAGE, "data": "/data"}, "", {}, "not a folder in OBS"),
        ({**IMAGE, "data": "obs://cats/all.zip"}, "", {}, "this is a file"),
        (IMAGE, "", {"environment": (("MA_X", "1"),)}, "MA_X is reserved"),
        (IMAGE, "", {"environment": tuple((f"X{n}", "") for n in range(101))}, "101 variables"),
        (PRESET, "a.py", {"words": (("a.py",), ("x",))}, "'x' is not an option"),
        (PRESET, "../a.py", {}, "outside the tree"),
    ],
)
def test_values_that_modelarts_refuses_are_refused(options, script, changes, says):
    with pytest.raises(UserError) as refused:
        form(options, script, **changes)
    assert says in str(refused.value)
