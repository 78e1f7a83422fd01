"""node.sh: the arguments of torchrun on each node, regardless of the launcher's variables."""

import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.ground.errors import UserError
from jumar.launching.job import checked_text, name_from
from jumar.launching.kubernetes import KubernetesOptions, launch_on_kubernetes
from jumar.launching.node import words_text
from jumar.launching.this import launch_here
from tests.launching.launches import HARD, bash, calls, job, stand_in, written


def sendable(text: str) -> bool:
    try:
        return checked_text(text) == text
    except UserError:
        return False


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.text().filter(sendable), min_size=1, max_size=4), min_size=1))
def test_every_word_reaches_torchrun_unchanged(lines):
    text = words_text(job(words=tuple(map(tuple, lines))))
    words = [word for line in lines for word in line]
    assert shlex.split(text.replace(" \\\n", " ")) == words
    shown = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' \\\n{text}\n"], capture_output=True, check=True
    )
    assert shown.stdout.decode() == "".join(f"{word}\0" for word in words)


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "\0", "\x1b[2J", "\ud800", "a\u2028b", "\x85"])
def test_values_a_generated_file_cannot_hold_are_refused(text):
    with pytest.raises(UserError):
        job(words=(("train.py", text),))
    with pytest.raises(UserError):
        job(environment=(("NAME", text),))


def test_node_starts_torchrun_with_its_rank_and_the_first_node_as_master(tmp_path):
    folder = tmp_path / "a 'working' $folder"
    folder.mkdir()
    python = stand_in(tmp_path / "calls")
    words = (("train it.py",), tuple(HARD))
    environment = (("NAME", "it's $HOME"),)
    start = launch_here(
        job(nodes=3, devices=2, words=words, python=str(python), environment=environment),
        folder=folder,
    )
    to = written(start, tmp_path / "to here")
    done = bash(to / "node.sh", NODE_RANK="2", MASTER_ADDR="10.0.0.1", MASTER_PORT="1234")
    assert done.returncode == 0, done.stderr
    (call,) = calls(tmp_path / "calls")
    assert call["in"] == str(folder)
    assert call["variables"]["NAME"] == "it's $HOME"
    assert call["arguments"] == [
        *[
            "-m",
            "torch.distributed.run",
            "--nnodes",
            "3",
            "--nproc-per-node",
            "2",
            "--node-rank",
            "2",
        ],
        *["--master-addr", "10.0.0.1", "--master-port", "1234", "--tee", "3", "--log-dir"],
        str(to / "logs" / "node-2"),
        "train it.py",
        *HARD,
    ]


def test_node_wide_variables_of_an_operator_do_not_reach_processes(tmp_path):
    python = stand_in(tmp_path / "calls")
    options = KubernetesOptions(image="i", kind="ascendjob")
    launch = launch_on_kubernetes(
        job(nodes=2, devices=8, accelerator="npu", python=str(python)), options
    )
    yaml = pytest.importorskip("yaml")
    script = next(yaml.safe_load_all(launch.files["job.yaml"]))["data"]["node.sh"]
    script = script.replace("cd /work", f"cd {tmp_path}").replace("/tmp/logs", f"{tmp_path}/logs")
    (tmp_path / "node.sh").write_text(script)
    operator = {
        "MASTER_ADDR": "10.9.8.7",
        "MASTER_PORT": "2222",
        "WORLD_SIZE": "16",
        "RANK": "1",
        "LOCAL_WORLD_SIZE": "8",
        "LOCAL_RANK": "{0,1,2,3,4,5,6,7}",
    }
    done = bash(tmp_path / "node.sh", **operator)
    assert done.returncode == 0, done.stderr
    (call,) = calls(tmp_path / "calls")
    assert call["arguments"][2:12] == [
        *["--nnodes", "2", "--nproc-per-node", "8", "--node-rank", "1"],
        *["--master-addr", "10.9.8.7", "--master-port", "2222"],
    ]
    assert not {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"} & set(call["variables"])
    assert call["variables"]["HCCL_CONNECT_TIMEOUT"] == "1200"
    refused = bash(tmp_path / "node.sh", **{**operator, "WORLD_SIZE": "8"})
    assert refused.returncode == 2
    assert "has 8 NPUs, not 16" in refused.stderr


@pytest.mark.parametrize("rank", ["2", "x", "-1", "1 2"])
def test_nonexistent_node_rank_is_refused(rank, tmp_path):
    python = stand_in(tmp_path / "calls")
    to = written(launch_here(job(nodes=2, python=str(python)), folder=tmp_path), tmp_path)
    done = bash(to / "node.sh", NODE_RANK=rank)
    assert done.returncode == 2
    assert "NODE_RANK" in done.stderr
    assert not calls(tmp_path / "calls")


def test_missing_interpreter_is_named(tmp_path):
    to = written(launch_here(job(python="/no/python"), folder=tmp_path), tmp_path)
    done = bash(to / "node.sh")
    assert done.returncode == 2
    assert "'/no/python' does not exist" in done.stderr


def test_node_uses_the_cards_of_its_server(tmp_path):
    python = stand_in(tmp_path / "calls")
    launch = launch_here(
        job(
            nodes=2,
            devices=2,
            accelerator="npu",
            python=str(python),
            cards=("4,5", "6,7"),
            has_rank_table=True,
        ),
        folder=tmp_path,
    )
    to = written(launch, tmp_path / "to")
    assert bash(to / "node.sh", NODE_RANK="1").returncode == 0
    (call,) = calls(tmp_path / "calls")
    assert call["variables"]["ASCEND_RT_VISIBLE_DEVICES"] == "6,7"
    assert call["variables"]["RANK_TABLE_FILE"] == str(to / "rank_table.json")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ds-cnn-s", "ds-cnn-s"),
        ("Train_It", "train-it"),
        ("3d.net", "job-3d-net"),
        ("...", "job"),
        ("x" * 99, "x" * 52),
    ],
)
def test_job_name_is_derived_from_any_text(text, name):
    assert name_from(text) == name
    assert job(name=name).name == name


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "A"},
        {"name": "a-"},
        {"name": "x" * 53},
        {"name": "a\n"},
        {"nodes": 0},
        {"nodes": 5000},
        {"devices": 0},
        {"devices": 65},
        {"environment": (("1A", "x"),)},
        {"environment": (("A B", "x"),)},
    ],
)
def test_job_that_no_target_supports_is_refused(changes):
    with pytest.raises(UserError):
        job(**changes)
