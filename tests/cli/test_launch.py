"""`jumar launch`: what is written, what is refused before anything is, and what is started."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import environment
from tests.cli.in_process import here
from tests.launching.launches import calls, stand_in
from tests.launching.slurm_cluster import cluster, missing_programs, wait_for
from tests.launching.test_rank_tables import V1
from tests.launching.test_this import SAY

CHECKOUT = Path(__file__).resolve().parents[2]
NEEDS_SLURM = pytest.mark.skipif(
    bool(missing_programs()) or os.geteuid() != 0,
    reason=f"needs root and Slurm (slurm-wlm, munge); missing: {missing_programs()}",
)
SMALL = ("--import", "tests.cli.small_recipe", "--set", "training.duration=2it")


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def launch(*arguments: str | Path, cwd: Path, code: int = 0):
    return here("launch", *arguments, cwd=cwd, code=code)


@pytest.mark.parametrize(
    ("place", "options", "expected"),
    [
        ("this", (), {"start.sh", "node.sh"}),
        ("slurm", ("--device", "npu"), {"job.sbatch", "node.sh"}),
        ("docker", ("--device", "cuda"), {"run.sh", "node.sh", "Dockerfile", ".dockerignore"}),
        ("kubernetes", ("--device", "npu", "--image", "i"), {"job.yaml"}),
        (
            "modelarts",
            ("--device", "npu", "--image", "i", "--obs", "obs://bucket/x", "--flavor", "f"),
            {"job.json", "code/node.sh"},
        ),
    ],
)
def test_each_launch_target_gets_its_files(place, options, expected, tmp_path):
    done = launch("alexnet-demo", "--on", place, "--to", "a b", *options, cwd=tmp_path)
    assert names(tmp_path / "a b") == {*expected, "launch.json"}
    assert done.out.startswith(f"alexnet-demo on {place}: 1 node x 1 ")
    assert "start: " in done.out
    for name in expected:
        assert f"a b/{name}" in done.out
    again = launch("alexnet-demo", "--on", place, "--to", "a b", *options, cwd=tmp_path)
    assert again.out == done.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("alexnet-dem", "--on", "this"), "unknown recipe 'alexnet-dem' Did you mean"),
        (("alexnet-demo", "--on", "slurm"), "the kind of device is unknown"),
        (("alexnet-demo", "--on", "this", "--nodes", "0"), "--nodes: 0"),
        (("alexnet-demo", "--on", "this", "--name", "A b"), "not a name that every queue accepts"),
        (("alexnet-demo", "--on", "this", "--env", "A"), "'A' has no value"),
        (("alexnet-demo", "--on", "this", "--", "--sett", "a=1"), "after --: "),
        (("alexnet-demo", "--on", "this", "--", "--set", "a=1"), "unknown field"),
        (("alexnet-demo", "--on", "this", "--", "more"), "after --: "),
        (("no.py", "--on", "this"), "there is no such script"),
        (("alexnet-demo", "--on", "docker", "--device", "npu", "--chip", "x"), "unknown chip"),
        (
            ("alexnet-demo", "--on", "docker", "--device", "npu", "--cann", "7.0"),
            "no known image of",
        ),
        (("alexnet-demo", "--on", "kubernetes", "--device", "cpu"), "--image: is missing"),
        (
            ("alexnet-demo", "--on", "kubernetes", "--device", "cpu", "--image", "a b"),
            "'a b' is not an image",
        ),
        (
            ("alexnet-demo", "--on", "slurm", "--device", "cpu", "--time", "5h"),
            "--time: '5h' is not a time limit of Slurm",
        ),
        (("alexnet-demo", "--on", "kubernetes", "--device", "cpu", "--run"), "--run: kubernetes"),
        (("alexnet-demo", "--on", "modelarts", "--device", "npu"), "--image: the preset engine"),
        (("train.py", "--on", "this", "--partition", "a"), "has no effect on this"),
        (("train.py", "--on", "slurm", "--image", "a"), "has no effect on slurm"),
        (("train.py", "--on", "docker", "--queue", "a"), "has no effect on docker"),
        (("train.py", "--on", "this", "--data", "a"), "has no effect on this"),
        (("train.py", "--on", "this", "--device", "cpu", "--cann", "9.0"), "has no effect on cpu"),
        (("/bin/../etc/x.py", "--on", "docker", "--device", "cpu"), "there is no such script"),
    ],
)
def test_impossible_launch_writes_nothing(arguments, says, tmp_path):
    what, *options = arguments
    place = options.index("--") if "--" in options else len(options)
    done = launch(what, *options[:place], "--to", "x", *options[place:], cwd=tmp_path, code=2)
    assert says in done.message
    assert list(tmp_path.iterdir()) == []


def test_script_outside_the_copied_folder_is_refused(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "train.py").write_text("")
    done = launch(
        "../train.py",
        "--on",
        "docker",
        "--device",
        "cpu",
        "--to",
        "x",
        cwd=tmp_path / "work",
        code=2,
    )
    assert "outside the working folder" in done.message


def test_own_run_directory_is_kept(tmp_path):
    launch("alexnet-demo", "--on", "this", "--to", "a", "--", "--run-dir", "my run", cwd=tmp_path)
    text = (tmp_path / "a" / "node.sh").read_text()
    assert "--run-dir 'my run'" in text
    assert text.count("--run-dir") == 1
    launch("alexnet-demo", "--on", "this", "--to", "b", cwd=tmp_path)
    assert f"--run-dir {tmp_path}/b/run" in (tmp_path / "b" / "node.sh").read_text()


def test_data_in_obs_is_named_by_its_path_on_the_nodes(tmp_path):
    launch(
        *("alexnet-demo", "--on", "modelarts", "--device", "npu", "--image", "i", "--to", "a"),
        *("--obs", "obs://bucket/x", "--flavor", "f", "--data", "obs://bucket/cats"),
        *("--", "--set", "data.path={data}/train"),
        cwd=tmp_path,
    )
    script = (tmp_path / "a" / "code" / "node.sh").read_text()
    assert "data.path=/home/ma-user/modelarts/inputs/data_url_0/train" in script


def test_rank_table_determines_nodes_and_cards(tmp_path):
    (tmp_path / "hccl.json").write_text(json.dumps(V1))
    table = ("--rank-table", "hccl.json")
    launch("alexnet-demo", "--on", "slurm", "--to", "a", *table, cwd=tmp_path)
    assert "#SBATCH --nodes=2\n" in (tmp_path / "a" / "job.sbatch").read_text()
    assert "--nproc-per-node 2" in (tmp_path / "a" / "node.sh").read_text()
    assert json.loads((tmp_path / "a" / "rank_table.json").read_text())["version"] == "1.0"
    done = launch(
        "alexnet-demo", "--on", "slurm", "--to", "b", *table, "--nodes", "3", cwd=tmp_path, code=2
    )
    assert "the table has 2 servers with 2 devices each" in done.message


def test_ranktable_converts_and_prints_a_line_per_contradiction(tmp_path):
    wrong = {**V1, "server_count": "3", "status": "initializing"}
    (tmp_path / "wrong.json").write_text(json.dumps(wrong))
    (tmp_path / "hccl.json").write_text(json.dumps(V1))
    done = launch("ranktable", "wrong.json", cwd=tmp_path, code=1)
    assert done.out.count("wrong: ") == 2
    done = launch("ranktable", "hccl.json", "--to-version", "0", "--to", "v0.json", cwd=tmp_path)
    assert "written: v0.json" in done.out
    assert launch("ranktable", "v0.json", cwd=tmp_path).out.count("torchrun") == 2
    assert (
        "require each other"
        in launch("ranktable", "hccl.json", "--to", "x", cwd=tmp_path, code=2).message
    )


def jumar(*arguments: str, cwd: Path, **more: str) -> "subprocess.CompletedProcess[str]":
    paths = f"{CHECKOUT}:{CHECKOUT / 'src'}"
    return subprocess.run(
        [sys.executable, "-m", "jumar", *arguments],
        cwd=cwd,
        env={**environment(), **more, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.slow
def test_two_nodes_on_this_machine_train_one_run(tmp_path):
    done = jumar(
        *("launch", "small", "--on", "this", "--nodes", "2", "--device", "cpu", "--run"),
        *("--to", "my 'launch'", "--", *SMALL),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / "my 'launch'" / "run" / "results.json").read_text())
    assert results["state"] == "finished"
    assert "2 ranks" in done.stdout


@NEEDS_SLURM
@pytest.mark.slow
def test_slurm_starts_torchrun_once_per_node_with_its_rank(tmp_path):
    (tmp_path / "slurm").mkdir()
    (tmp_path / "out here").mkdir()
    (tmp_path / "say it.py").write_text(SAY)
    with cluster(tmp_path / "slurm") as variables:
        done = jumar(
            *("launch", "say it.py", "--on", "slurm", "--nodes", "2", "--devices", "2"),
            *("--device", "cpu", "--time", "0:10:00", "--run", "--to", "to 'here'"),
            *("--", str(tmp_path / "out here"), "it's", "$HOME"),
            cwd=tmp_path,
            **{name: variables[name] for name in ("SLURM_CONF", "PATH")},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        number = done.stdout.rpartition("submitted: job ")[2].partition(";")[0]
        state = wait_for(number, variables)
    log = tmp_path / "to 'here'" / f"slurm-{number}.out"
    assert state == "COMPLETED", log.read_text()
    ranks = [json.loads((tmp_path / "out here" / f"rank-{n}").read_text()) for n in range(4)]
    assert [rank["LOCAL_RANK"] for rank in ranks] == ["0", "1", "0", "1"]
    assert {rank["WORLD_SIZE"] for rank in ranks} == {"4"}
    assert {rank["MASTER_ADDR"] for rank in ranks} == {"127.0.0.1"}
    assert ranks[3]["arguments"] == ["it's", "$HOME"]


def test_sbatch_errors_are_reported(tmp_path):
    (tmp_path / "train.py").write_text("")
    program = stand_in(tmp_path / "bin", "sbatch", then="sys.exit('invalid partition')")
    path = f"{program.parent}:{os.environ['PATH']}"
    done = jumar(
        *("launch", "train.py", "--on", "slurm", "--device", "cpu", "--to", "a", "--run"),
        cwd=tmp_path,
        PATH=path,
    )
    assert done.returncode == 2
    assert "sbatch rejects the job: invalid partition" in done.stderr
    (call,) = calls(tmp_path / "bin")
    assert call["arguments"] == ["--parsable", "job.sbatch"]
    assert call["in"] == str(tmp_path / "a")


def test_unresponsive_docker_daemon_is_detected_before_anything_is_written(tmp_path):
    (tmp_path / "train.py").write_text("")
    program = stand_in(tmp_path / "bin", "docker", then="sys.exit(1)")
    done = jumar(
        *("launch", "train.py", "--on", "docker", "--device", "cpu", "--to", "a", "--run"),
        cwd=tmp_path,
        PATH=f"{program.parent}:{os.environ['PATH']}",
    )
    assert done.returncode == 2
    assert "daemon does not answer" in done.stderr
    assert not (tmp_path / "a").exists()


def test_docker_builds_the_image_then_runs_it(tmp_path):
    (tmp_path / "train.py").write_text("")
    program = stand_in(tmp_path / "bin", "docker")
    done = jumar(
        *("launch", "train.py", "--on", "docker", "--device", "cpu", "--to", "a", "--run"),
        cwd=tmp_path,
        PATH=f"{program.parent}:{os.environ['PATH']}",
    )
    assert done.returncode == 0, done.stderr
    given = {call["arguments"][0]: call["arguments"] for call in calls(tmp_path / "bin")}
    assert set(given) == {"info", "build", "run"}
    assert given["build"][1:3] == ["-t", given["run"][-3]]


def test_help_lists_the_launch_targets(tmp_path):
    out = launch("--help", cwd=tmp_path).out
    assert "modelarts" in out
    assert "--rank-table" in out
