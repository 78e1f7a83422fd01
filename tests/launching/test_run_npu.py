"""run_npu.sh, started for real: what processes get, and what becomes of them."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jumar.porting.launch_files import added_files
from jumar.porting.options import PortOptions
from tests.running import is_running

_TRAIN = """\
import json, os, sys, time
rank = os.environ["RANK_ID"]
names = "JOB_ID RANK_ID RANK_SIZE DEVICE_ID ASCEND_DEVICE_ID RANK_TABLE_FILE WORLD_SIZE LOCAL_RANK"
seen = {name: os.environ.get(name) for name in names.split()}
seen.update(arguments=sys.argv[1:], folder=os.getcwd(), cores=sorted(os.sched_getaffinity(0)))
out = os.environ["OUT"]
with open(os.path.join(out, "rank_" + rank + ".json"), "w") as file:
    json.dump(seen, file)
print("rank", rank, "speaks", flush=True)
if os.environ.get("DIES") == rank:
    time.sleep(0.3)
    print("rank", rank, "has a reason", flush=True)
    sys.exit(3)
if os.environ.get("WAIT"):
    import subprocess
    loader = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    beside = os.path.join(out, ".loader_" + rank)
    with open(beside, "w") as file:
        file.write(str(loader.pid))
    os.rename(beside, os.path.join(out, "loader_" + rank))
    time.sleep(60)
"""
_HCCN = "".join(f"address_{n}=192.168.10{n}.101\nnetmask_{n}=255.255.255.0\n" for n in range(8))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A ported tree whose path has spaces and quotes."""
    return make_tree(tmp_path, PortOptions(devices=4))


def make_tree(tmp_path: Path, options: PortOptions) -> Path:
    root = tmp_path / "a ported 'tree'"
    (root / "my code").mkdir(parents=True)
    (root / "my code" / "train it.py").write_text(_TRAIN)
    for path, text in added_files(options, entry="my code/train it.py").items():
        (root / path).write_text(text)
    (tmp_path / "hccn.conf").write_text(_HCCN)
    (tmp_path / "out").mkdir()
    (tmp_path / "work here").mkdir()
    return root


def environment(tree: Path, **more: str) -> dict[str, str]:
    unset = ("RANK_TABLE_FILE", "RANK_ID", "RANK_SIZE", "JOB_ID", "DEVICE_ID")
    kept = {key: value for key, value in os.environ.items() if key not in unset}
    return {
        **kept,
        "PYTHON": sys.executable,
        "HCCN_CONF": str(tree.parent / "hccn.conf"),
        "OUT": str(tree.parent / "out"),
        **more,
    }


def run(tree: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(tree / "run_npu.sh"), *arguments],
        cwd=tree.parent / "work here",
        env=environment(tree, **more),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def seen(tree: Path) -> list[dict[str, object]]:
    return [json.loads(path.read_text()) for path in sorted((tree.parent / "out").glob("rank_*"))]


def loaders(tree: Path) -> list[int]:
    return [int(path.read_text()) for path in (tree.parent / "out").glob("loader_*")]


def wait_until(condition, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_every_process_gets_rank_device_and_unchanged_arguments(tree):
    done = run(tree, "--", "--name", "a b", "", "$HOME *", "-n")

    assert done.returncode == 0, done.stderr
    ranks = seen(tree)
    assert [rank["RANK_ID"] for rank in ranks] == ["0", "1", "2", "3"]
    assert [rank["DEVICE_ID"] for rank in ranks] == ["0", "1", "2", "3"]
    assert {rank["RANK_SIZE"] for rank in ranks} == {"4"}
    assert {rank["JOB_ID"] for rank in ranks} == {"npu_run"}
    assert {rank["folder"] for rank in ranks} == {str(tree.parent / "work here")}
    assert [rank["arguments"] for rank in ranks] == [["--name", "a b", "", "$HOME *", "-n"]] * 4
    assert "rank 0 speaks" in done.stdout
    assert "rank 1 speaks" not in done.stdout
    logs = sorted((tree.parent / "work here" / "npu_logs").glob("*/rank_*.log"))
    assert [log.read_text() for log in logs] == [f"rank {rank} speaks\n" for rank in range(4)]


def test_rank_table_has_the_addresses_of_the_chosen_devices(tree):
    done = run(tree, "-d", "4,6")

    assert done.returncode == 0, done.stderr
    ranks = seen(tree)
    assert [rank["DEVICE_ID"] for rank in ranks] == ["4", "6"]
    table = json.loads(Path(str(ranks[0]["RANK_TABLE_FILE"])).read_text())
    assert table["version"] == "1.0"
    assert table["server_list"][0]["device"] == [
        {"device_id": "4", "device_ip": "192.168.104.101", "rank_id": "0"},
        {"device_id": "6", "device_ip": "192.168.106.101", "rank_id": "1"},
    ]


def test_one_device_needs_no_table(tree):
    assert run(tree, "-n", "1", HCCN_CONF="/nothing").returncode == 0
    (rank,) = seen(tree)
    assert (rank["RANK_ID"], rank["RANK_SIZE"], rank["DEVICE_ID"]) == ("0", "1", "0")
    assert rank["RANK_TABLE_FILE"] is None


def test_table_of_several_servers_is_used_unchanged(tree):
    table = tree.parent / "two servers.json"
    devices = [{"device_id": str(n % 2), "device_ip": "1.1.1.1"} for n in range(4)]
    table.write_text(
        json.dumps(
            {
                "server_list": [
                    {"server_id": "10.0.0.1", "device": devices[:2]},
                    {"server_id": "10.0.0.2", "device": devices[2:]},
                ]
            }
        )
    )
    given = {"RANK_TABLE_FILE": f"../{table.name}", "RANK_START": "2"}

    assert run(tree, "-n", "2", **given).returncode == 0
    ranks = seen(tree)
    assert [rank["RANK_ID"] for rank in ranks] == ["2", "3"]
    assert {rank["RANK_SIZE"] for rank in ranks} == {"4"}
    assert Path(str(ranks[0]["RANK_TABLE_FILE"])).samefile(table)
    assert "has only 4 devices" in run(tree, "-n", "4", **given).stderr


@pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2 or not shutil.which("taskset"), reason="needs two cores"
)
def test_cores_are_divided_among_processes(tree):
    assert run(tree, "-n", "2").returncode == 0
    first, second = ({*rank["cores"]} for rank in seen(tree))  # type: ignore[misc]
    assert first
    assert second
    assert not first & second


def test_one_process_dying_stops_the_others_and_its_code_is_returned(tree):
    begin = time.monotonic()
    done = run(tree, DIES="2", WAIT="1")

    assert done.returncode == 3
    assert time.monotonic() - begin < 20
    assert "rank 2 on device 2 ended with status 3" in done.stderr
    assert "rank 2 has a reason" in done.stderr
    assert len(loaders(tree)) == 3
    assert all(not is_running(pid) for pid in loaders(tree))


def test_signal_also_ends_the_loader_workers(tree):
    process = subprocess.Popen(
        ["bash", str(tree / "run_npu.sh"), "-n", "2"],
        cwd=tree.parent / "work here",
        env=environment(tree, WAIT="1"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: len(loaders(tree)) == 2)
    process.send_signal(signal.SIGTERM)

    assert process.wait(timeout=30) == 143
    assert all(not is_running(pid) for pid in loaders(tree))


def before_commands(tree: Path, condition: str, action: str) -> str:
    """A file for BASH_ENV: run `action` before each command that `condition` names."""
    hook = tree.parent / "hook.sh"
    hook.write_text(
        f"set -o functrace\ntrap 'case $BASH_COMMAND in {condition}) {action};; esac' DEBUG\n"
    )
    return str(hook)


def test_displayed_log_exists_before_its_process_starts(tree):
    action = '[ -e "$logs/rank_$((first_rank + $1)).log" ] || echo late >> "$OUT/late"'
    done = run(tree, "-n", "2", BASH_ENV=before_commands(tree, '"rank_process "*', action))
    assert done.returncode == 0, done.stderr
    assert "rank 0 speaks" in done.stdout
    assert not (tree.parent / "out" / "late").exists()


@pytest.mark.parametrize("moment", ['"set +m"', '"record_process"', "newest=*!"])
def test_signal_right_after_start_ends_the_process(tree, moment):
    # Long enough for the process to have loaders of its own.
    action = 'while [ ! -e "$OUT/loader_0" ]; do sleep 0.05; done; kill -TERM $$'
    more = {"WAIT": "1", "BASH_ENV": before_commands(tree, moment, action)}
    done = run(tree, "-n", "2", **more)
    assert done.returncode == 143
    assert loaders(tree)
    assert all(not is_running(pid) for pid in loaders(tree))


def test_control_c_in_a_terminal_ends_everything(tree):
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tree.parent / "work here")
        command = ["bash", str(tree / "run_npu.sh"), "-n", "2"]
        os.execvpe("bash", command, environment(tree, WAIT="1"))
    wait_until(lambda: len(loaders(tree)) == 2)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(child, 0)
    os.close(terminal)

    assert os.waitstatus_to_exitcode(status) == 130
    assert all(not is_running(pid) for pid in loaders(tree))


def test_processes_may_have_separate_folders(tree):
    assert run(tree, "-n", "2", "-w").returncode == 0
    folders = [Path(str(rank["folder"])) for rank in seen(tree)]
    assert [folder.name for folder in folders] == ["rank_0", "rank_1"]


def test_torch_gets_its_own_variables_and_needs_no_table(tmp_path):
    tree = make_tree(tmp_path, PortOptions(source="torch", devices=2))
    assert not (tree / "make_rank_table.py").exists()
    assert run(tree).returncode == 0
    assert [(rank["LOCAL_RANK"], rank["WORLD_SIZE"]) for rank in seen(tree)] == [
        ("0", "2"),
        ("1", "2"),
    ]


@pytest.mark.parametrize(
    ("arguments", "more", "message"),
    [
        (["-n", "many"], {}, "-n 'many' is not a number"),
        (["-n", "0"], {}, "no device"),
        (["-d", "0,x"], {}, "device 'x' is not a number"),
        (["-d", "1,1"], {}, "device 1 is listed twice"),
        (["-q"], {}, "-q is not an option"),
        (["-s", "nothing.py"], {}, "nothing.py' does not exist"),
        ([], {"PYTHON": "no-such-python"}, "'no-such-python' does not exist"),
        ([], {"HCCN_CONF": "/nothing"}, "no address of device 0"),
        ([], {"RANK_TABLE_FILE": "nothing.json"}, "'nothing.json' does not exist"),
    ],
)
def test_invalid_arguments_are_reported_and_start_nothing(tree, arguments, more, message):
    done = run(tree, *arguments, **more)
    assert done.returncode == 2
    assert message in done.stderr
    assert seen(tree) == []


def test_help_is_the_scripts_header(tree):
    done = run(tree, "-h")
    assert done.returncode == 0
    assert done.stdout.startswith("Runs a script on one or several NPUs")
    assert "(default: 4)" in done.stdout
    assert "(default: my code/train it.py)" in done.stdout
    assert "set -eu" not in done.stdout


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="needs shellcheck")
def test_shellcheck_has_no_findings(tree):
    done = subprocess.run(
        ["shellcheck", str(tree / "run_npu.sh")], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""
