"""Runs whose machines come and go, on network namespaces with real cables."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.runs.elastic import share_ranks
from jumar.runs.train import TrainRequest, _resolve
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.parallel.ranks import Ranks
from jumar.training.run_directory import RunDirectory
from jumar.training.state_hashes import checkpoint_hashes
from tests.cli.command_line import start_ranks
from tests.cli.in_process import here, settings
from tests.runs.machines import Machines, missing

RUN = (
    "--import",
    "tests.cli.small_recipe",
    "--import",
    "tests.cli.paced_source",
    "--device",
    "cpu",
)
TOGETHER = {
    "GROUP_RANK": "0",
    "GROUP_WORLD_SIZE": "3",
    "LOCAL_RANK": "0",
    "LOCAL_WORLD_SIZE": "1",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "1",
    "TORCHELASTIC_MAX_RESTARTS": "3",
}


def exact(batch: int, steps: int) -> list[str]:
    return settings(
        data__path="paced",
        data__eval_path="none",
        data__batch_size=batch,
        schedule="constant",
        training__sums="exact",
        training__micro_batch_size=2,
        training__duration=f"{steps}it",
        training__log_every="5it",
        checkpoints__every="5it",
    )


def hashes(run: Path) -> object:
    return checkpoint_hashes(list_checkpoints(run / "checkpoints")[-1])


@pytest.fixture
def network() -> None:
    """Skips where the kernel or its tools make no network namespaces."""
    if reason := missing():
        pytest.skip(reason)


@pytest.mark.slow
@pytest.mark.usefixtures("network")
def test_run_survives_a_late_machine_and_network_faults_but_not_the_loss_of_its_host(
    tmp_path: Path,
) -> None:
    options = ["train", "small", *RUN, "--run-dir", "run", *exact(12, 5000)]
    with Machines(2, tmp_path) as (host, other):
        host.torchrun("1:2", *options, pace_s=0.01)
        host.wait_for("step:", within_s=60)
        other.torchrun("1:2", *options, pace_s=0.01)
        host.wait_for("batch: 12 = 2 ranks x 6", within_s=60)
        host.wait_for("step:", within_s=60, times=host.text().count("step:") + 1)
        other.disturb()
        host.wait_for("step:", within_s=60, times=host.text().count("step:") + 1)
        other.cable("down")
        host.wait_for("batch: 12 = 1 rank x 12", within_s=60, times=2)
        assert "node 1" in host.text()
        assert "has sent no heartbeat for 15 s" in host.text()
        other.cable("up")
        host.wait_for("batch: 12 = 2 ranks x 6", within_s=60, times=2)
        host.wait_for("step:", within_s=60, times=host.text().count("step:") + 2)
        host.power_off()
        assert other.end(within_s=60) != 0
        printed = re.findall(r"jumar: .*\n  Resume .*", other.text())[-1]
        assert "the store through which the ranks meet, " in printed
        assert "with: torchrun --nnodes MIN:MAX --nproc-per-node 1 --max-restarts 9 " in printed
        assert "train --resume --run-dir run" in printed
    last = list_checkpoints(tmp_path / "run" / "checkpoints")[-1].step + 1
    here(
        "train",
        "--resume",
        "--run-dir",
        "run",
        *RUN,
        "--set",
        f"training.duration={last}it",
        cwd=tmp_path,
    )
    here("train", "small", *RUN, "--run-dir", "straight", *exact(12, last), cwd=tmp_path)
    assert hashes(tmp_path / "run") == hashes(tmp_path / "straight")


@pytest.mark.slow
@pytest.mark.usefixtures("network")
def test_two_of_three_remaining_machines_share_the_batch_and_one_waits(tmp_path: Path) -> None:
    options = ["train", "small", *RUN, "--run-dir", "run", *exact(2, 40)]
    with Machines(4, tmp_path) as machines:
        for machine in machines:
            machine.torchrun("1:4", *options, pace_s=0.02)
        first = machines[0]
        first.wait_for("batch: 8 = 4 ranks x 2", within_s=90)
        first.wait_for("step:", within_s=60)
        machines[2].power_off()
        first.wait_for("batch: 8 = 2 ranks x 4", within_s=60)
        assert [machines[n].end(within_s=60) for n in (0, 1, 3)] == [0, 0, 0]
        assert "3 ranks cannot share batches of 8 samples: 2 train, 1 waits" in first.text()
        assert "finished after step 40" in first.text()
    here("train", "small", *RUN, "--run-dir", "straight", *exact(8, 40), cwd=tmp_path)
    assert hashes(tmp_path / "run") == hashes(tmp_path / "straight")


@pytest.mark.slow
@pytest.mark.usefixtures("network")
def test_doctor_names_the_links_of_a_machine_with_low_bandwidth(tmp_path: Path) -> None:
    with Machines(3, tmp_path) as machines:
        machines[2].narrow()
        for machine in machines:
            machine.torchrun("3:3", "doctor", "--ranks", "--device", "cpu", pace_s=0)
        assert [machine.end(within_s=90) for machine in machines] == [0, 0, 0]
        message = machines[0].text()
    slow = re.findall(r"slow: the link from rank (\d) \(\S+\) to rank (\d)", message)
    assert slow
    assert all("2" in link for link in slow), message


def begun(folder: Path, batch: int, *more: str) -> Path:
    steps = settings(training__duration="1it", data__batch_size=batch)
    here("train", "small", *RUN[:2], *RUN[4:], "--run-dir", "run", *steps, *more, cwd=folder)
    return folder / "run"


@pytest.mark.parametrize(
    ("rank", "more", "world", "is_spare"),
    [("0", [], "2", False), ("2", [], "2", True), ("0", ["exact", "4"], "2", False)],
)
def test_rank_beyond_those_that_divide_the_global_batch_is_a_spare(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rank: str,
    more: list[str],
    world: str,
    is_spare: bool,
) -> None:
    if more:
        more = settings(training__sums=more[0], training__micro_batch_size=more[1])
    run = begun(tmp_path, 8, *more)
    for name, value in {**TOGETHER, "RANK": rank, "WORLD_SIZE": "3"}.items():
        monkeypatch.setenv(name, value)
    share = share_ranks(run)
    assert (share.is_spare, os.environ["WORLD_SIZE"]) == (is_spare, world)


@pytest.mark.slow
@pytest.mark.parametrize("agent_has_no_store", ["0", "1"])
def test_lone_training_rank_dismisses_its_spare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent_has_no_store: str
) -> None:
    monkeypatch.setenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", agent_has_no_store)
    run = begun(tmp_path, 3)
    launched = ["--standalone", "--nproc-per-node", "2", "--max-restarts", "1", "-m", "jumar"]
    resumed = ["train", "--resume", "--run-dir", str(run), *RUN[:2], *RUN[4:]]
    process = start_ranks([*launched, *resumed, "--set", "training.duration=4it"], tmp_path)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err
    assert "2 ranks cannot share batches of 3 samples: 1 trains, 1 waits as a spare" in out
    assert "finished after step 4" in out
    assert ("SHARE_RDZV_TCP_STORE=1 where it is started" in err) is (agent_has_no_store == "0")


def test_global_batch_size_is_fixed_from_the_start_of_the_run(
    tmp_path: Path,
) -> None:
    run = begun(tmp_path, 8)
    shutil.rmtree(run / "checkpoints")
    (run / "results.json").unlink()
    ranks = Ranks(rank=1, world=2, local_world=2)
    chosen = _resolve(TrainRequest(recipe=None, run_dir=run, resume=True), ranks)
    assert chosen.global_batch == 8
    assert chosen.shared_plan(ranks, None).batch_size == 4
    with pytest.raises(UserError, match="batches of 8 samples, which 3 ranks cannot") as caught:
        chosen.shared_plan(Ranks(world=3), None)
    assert "such as 2" in caught.value.todo
    assert "--nnodes 1:4 and one rank each, a multiple of 12" in caught.value.todo


def test_without_restarts_every_rank_takes_part_until_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(tmp_path, 8)
    for name, value in {**TOGETHER, "RANK": "2", "WORLD_SIZE": "3"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "0")
    assert not share_ranks(run).is_spare
    assert os.environ["WORLD_SIZE"] == "3"


def test_restarted_first_rank_waits_for_its_predecessors_lock(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.json").write_text("{}")
    code = (
        "import sys, time; from pathlib import Path;"
        "from jumar.training.run_directory import RunDirectory\n"
        "with RunDirectory(Path('run')).locked(): print('held', flush=True); time.sleep(1.5)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    run = RunDirectory(tmp_path / "run")
    with pytest.raises(UserError, match="another process is using"), run.locked():
        pass
    with run.locked(patience_s=20):
        assert holder.wait(5) == 0
