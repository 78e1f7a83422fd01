"""Who is to blame when ranks waited: behind, missing, at the end of a chain, out of step."""

from pathlib import Path

import pytest

from tests.failures.explaining import explain_text, named, to_blame


def _watchdog(rank: int, work: int, op: str = "ALLREDUCE") -> str:
    return (
        f"[rank{rank}]:[E810 03:04:11.061727749 a.cpp:683] [Rank {rank}] Watchdog "
        f"caught collective operation timeout: WorkNCCL(SeqNum={work}, OpType={op}, NumelIn=80, "
        "NumelOut=80, Timeout(ms)=600000) ran for 600096 milliseconds before timing out.\n"
    )


def _progress(rank: int, work: int, enqueued: int) -> str:
    return (
        f"[rank{rank}]:[E810 03:04:11.063313477 a.cpp:2241] [PG ID 0 PG GUID 0 Rank "
        f"{rank}]  failure detected by watchdog at work sequence id: {work} PG status: "
        f"last enqueued work: {enqueued}, last completed work: {work - 1}\n"
    )


def _dumped(rank: int, enqueued: int) -> str:
    return (
        f"[rank{rank}]:[E810 03:04:11.562662 a.cpp:1858] [PG ID 0 PG GUID 0 Rank "
        f"{rank}] Received a dump signal due to a collective timeout from  rank 1 and we will "
        f"try our best to dump the debug info. Last enqueued NCCL work: {enqueued}, last "
        f"completed NCCL work: {enqueued}.\n"
    )


def test_rank_that_never_began_the_operation_is_to_blame(tmp_path: Path) -> None:
    log = "".join(_watchdog(rank, 78) + _progress(rank, 78, 79) for rank in (0, 1, 3))
    explanation = explain_text(tmp_path, log=log + _dumped(2, 77))
    assert named(explanation) == ["nccl-watchdog-timeout"]
    assert to_blame(explanation) == (2,)


def test_silent_rank_is_to_blame(tmp_path: Path) -> None:
    assert to_blame(explain_text(tmp_path, log=_watchdog(1, 5) + _watchdog(2, 5))) == (0,)


def test_few_logs_out_of_many_ranks_blame_nobody(tmp_path: Path) -> None:
    log = "host:11:12 [0] NCCL INFO comm 0x1 rank 6 nranks 64 cudaDev 6\n" + _watchdog(6, 5)
    assert to_blame(explain_text(tmp_path, log=log)) == ()


def test_rank_in_another_operation_is_to_blame(tmp_path: Path) -> None:
    log = _watchdog(0, 5) + _watchdog(1, 7, "BROADCAST") + _watchdog(2, 5)
    assert to_blame(explain_text(tmp_path, log=log)) == (1,)


def test_all_ranks_in_the_same_operation_blame_nobody(tmp_path: Path) -> None:
    log = "".join(_watchdog(rank, 78) + _progress(rank, 78, 79) for rank in range(4))
    assert to_blame(explain_text(tmp_path, log=log)) == ()


def test_failed_rank_explains_the_time_outs_of_the_others(tmp_path: Path) -> None:
    log = "".join(_watchdog(rank, 78) for rank in (0, 1, 3))
    failed = (
        "[rank2]: Traceback (most recent call last):\n"
        '[rank2]:   File "/job/train.py", line 41, in <module>\n'
        "[rank2]: ValueError: no sample is left\n"
    )
    explanation = explain_text(tmp_path, log=log + failed)
    assert named(explanation)[0] == "python-exception"
    first = explanation.candidates[0].first
    assert (first.rank, first.frame) == (2, "/job/train.py:41")
    assert [each.fault.id for each in explanation.collateral] == ["nccl-watchdog-timeout"]


def test_error_long_after_the_time_outs_is_not_their_cause(tmp_path: Path) -> None:
    late = "[rank0]:[E810 05:04:11.0 x.cpp:1] FileNotFoundError: [Errno 2] no cache to remove\n"
    explanation = explain_text(tmp_path, log=_watchdog(0, 78) + _watchdog(2, 78) + late)
    assert named(explanation) == ["nccl-watchdog-timeout", "file-missing"]


def test_rank_lagging_in_hccl_is_to_blame(tmp_path: Path) -> None:
    line = (
        "[ERROR] HCCL({pid},python3):2024-04-08-02:55:04.903.511 [task_exception_handler.cc:452]"
        "[{pid}][TaskExceptionHandler][Callback]Task run failed, base information is streamID:[3], "
        "taskID[7], taskType[Notify Wait], tag[AllReduce_10.0.0.1_1712529353144389], "
        "index[{index}], AlgType(level 0-1-2):[null-null-ring].\n"
    )
    logs = {f"rank{rank}": line.format(pid=100 + rank, index=3 if rank else 2) for rank in range(3)}
    explanation = explain_text(tmp_path, **logs)
    assert named(explanation)[0] == "hccl-notify-timeout"
    assert to_blame(explanation) == (0,)


def test_last_rank_of_a_waiting_chain_is_to_blame(tmp_path: Path) -> None:
    head = "[ERROR] HCCL(7,python3):2025-06-19-09:28:34.062.858 [x.cc:1] [7]"
    table = "   |  10.0.0.7({to})  |  16666  |   10.0.0.3({own})   |  0  |  client  | time out |\n"
    wait = "[Wait][LinkEstablish]wait socket establish timeout, role[1] rank[{own}] timeout[130]\n"
    log = "".join(
        (head + wait + head + table).format(own=own, to=to)
        for own, to in ((2, 10), (10, 8), (8, 9))
    )
    explanation = explain_text(tmp_path, log=log)
    assert to_blame(explanation) == (9,)
    culprit = explanation.candidates[0].culprit
    assert culprit is not None
    assert "2 → 10 → 8 → 9" in culprit.why.en


def test_process_is_mapped_to_the_rank_its_plog_states_once(tmp_path: Path) -> None:
    log = (
        "[INFO] HCCL(69395,python3):2024-04-07-18:35:53.144.546 [op_base.cc:413][69395]Entry-"
        "HcclCommInitRootInfo:ranks[4], rank[3], rootinfo: host ip[10.0.0.1]\n"
        "[ERROR] RUNTIME(69395,python3):2024-04-08-02:55:04.903.469 [npu_driver.cc:1100]69395 "
        "halMemAlloc failed:size=2097152(Byte)\n"
    )
    explanation = explain_text(tmp_path, **{"plog-69395_20240407": log})
    assert explanation.candidates[0].ranks == (3,)
    assert explanation.job.world == 4


def test_rank_is_taken_from_its_folder_name(tmp_path: Path) -> None:
    folder = tmp_path / "attempt_0" / "5"
    folder.mkdir(parents=True)
    explanation = explain_text(folder, stderr="RuntimeError: CUDA out of memory.\n")
    assert explanation.candidates[0].ranks == (5,)


def _process(rank: int, pid: int, node: str = "10.0.0.1") -> str:
    return (
        f"[INFO] HCCL({pid},python3):2024-04-07-18:35:53.395.735 [topoinfo_detect.cc:208][{pid}]"
        f"[HCCL_TRACE]SetupAgent rankNum[3], rank[{rank}], rootInfo identifier[x], "
        f"server[{node}%eth0], logicDevId[{rank}], phydevId[{rank}], deviceIp[192.168.13.16]\n"
    )


def _notify(pid: int, remote: str) -> str:
    head = (
        f"[ERROR] HCCL({pid},python3):2024-04-08-02:55:04.900.605 [task_exception_handler.cc:452]"
    )
    return (
        f"{head}[{pid}][TaskExceptionHandler][Callback]Task run failed, base information is "
        "streamID:[3], taskID[7], taskType[Notify Wait].\n"
        f"{head}[{pid}][TaskExceptionHandler][Callback]Task run failed, para information is "
        f"notify id:[0x0000000700000048], stage:[ffffffff], remote rank:[{remote}].\n"
    )


def test_rank_that_waits_for_nobody_is_to_blame(tmp_path: Path) -> None:
    remotes = {0: "1", 1: "2", 2: "local"}
    logs = {
        f"{rank}": _process(rank, 90 + rank) + _notify(90 + rank, remote)
        for rank, remote in remotes.items()
    }
    explanation = explain_text(tmp_path, **logs)
    assert named(explanation)[0] == "hccl-notify-timeout"
    assert to_blame(explanation) == (2,)


def test_ranks_waiting_in_a_cycle_blame_nobody(tmp_path: Path) -> None:
    remotes = {0: "1", 1: "2", 2: "1"}
    logs = {
        f"{rank}": _process(rank, 90 + rank) + _notify(90 + rank, remote)
        for rank, remote in remotes.items()
    }
    assert to_blame(explain_text(tmp_path, **logs)) == ()


def test_two_ranks_that_wait_for_each_other_are_named_not_a_silent_third(tmp_path: Path) -> None:
    table = "   |  10.0.0.7({to})  |   10.0.0.3({own})   |  server  | no connect |   \n"
    head = "[ERROR] HCCL({pid},python3):2025-01-24-11:24:07.908.424 [comm_base.cc:967][1] "
    title = head + "  _________LINK_ERROR_INFO_________\n" + head
    logs = {
        f"{rank}": _process(rank, 90 + rank)
        + ((title + table).format(to=1 - rank, own=rank, pid=90 + rank) if rank < 2 else "")
        for rank in range(3)
    }
    explanation = explain_text(tmp_path, **logs)
    assert named(explanation)[0] == "hccl-socket-timeout"
    assert to_blame(explanation) == (0, 1)


def test_cycle_of_links_does_not_blame_a_silent_rank(tmp_path: Path) -> None:
    head = "[ERROR] HCCL({pid},python3):2025-01-24-11:24:07.908.424 [comm_base.cc:967][1] "
    row = "  |  10.0.0.7({to})  |   10.0.0.3({own})   |  server  | no connect |\n"
    wait = head + "LINK_ERROR_INFO\n" + head + row
    logs = {
        f"{rank}": _process(rank, 90 + rank) + wait.format(pid=90 + rank, own=rank, to=to)
        for rank, to in ((0, 1), (1, 2), (2, 0))
    } | {"3": _process(3, 93).replace("rankNum[3]", "rankNum[4]")}
    assert to_blame(explain_text(tmp_path, **logs)) == ()


def test_nonexistent_rank_is_not_blamed(tmp_path: Path) -> None:
    assert to_blame(explain_text(tmp_path, log=_process(0, 9) + _notify(9, "2"))) == (2,)
    assert to_blame(explain_text(tmp_path, log=_process(0, 9) + _notify(9, "3"))) == ()


def test_device_at_the_other_end_of_a_link_is_mapped_to_a_rank(tmp_path: Path) -> None:
    wait = (
        "[ERROR] HCCL({pid},python3):2025-01-24-11:24:07.908.424 [x.cc:967][1] "
        "wait socket establish timeout, rank[{own}] timeout[130]\n"
        "[ERROR] HCCL({pid},python3):2025-01-24-11:24:07.908.424 [x.cc:967][1] Transport init "
        "error! createLink para:rank[{own}]-localUserrank[{own}]-localIpAddr[], dst_rank[0]-"
        "remoteUserrank[0]-remoteIpAddr[10.0.0.1/{to}], machineType[1]\n"
    )
    logs = {"0": _process(0, 90)}
    logs |= {
        f"{rank}": _process(rank, 90 + rank) + wait.format(pid=90 + rank, own=rank, to=rank - 1)
        for rank in (1, 2)
    }
    explanation = explain_text(tmp_path, **logs)
    assert to_blame(explanation) == (0,)
    culprit = explanation.candidates[0].culprit
    assert culprit is not None
    assert "2 → 1 → 0" in culprit.why.en


def test_process_is_mapped_to_a_rank_across_folders(tmp_path: Path) -> None:
    for node, index in (("w0", 3), ("w1", 2), ("w2", 3)):
        rank = int(node[1])
        # The processes of all nodes have the same number, as in containers.
        (tmp_path / node / "debug").mkdir(parents=True)
        (tmp_path / node / "run").mkdir()
        (tmp_path / node / "run" / "plog-7_2.log").write_text(_process(rank, 7, f"10.0.0.{rank}"))
        (tmp_path / node / "debug" / "plog-7_1.log").write_text(
            _notify(7, "local").replace("Wait].", f"Wait], tag[AllReduce_1], index[{index}].")
        )
    explanation = explain_text(tmp_path)
    assert explanation.candidates[0].ranks == (0, 1, 2)
    assert to_blame(explanation) == (1,)


def _collective_failed(rank: int) -> str:
    return (
        "RuntimeError: The Inner error is reported as above. The process exits for this inner "
        "error, and the current working operator name is HcclAllreduce.\n"
        f"[ERROR] 2026-05-17-15:10:26 (PID:18{rank}, Device:{rank}, RankID:{rank}) ERR00100 PTA "
        "call acl api failed\n"
    )


def test_rank_without_the_collective_that_failed_on_the_others_is_to_blame(tmp_path: Path) -> None:
    log = "".join(_collective_failed(rank) for rank in (1, 2, 3))
    explanation = explain_text(tmp_path, log=log)
    assert named(explanation) == ["hccl-operator-failed"]
    assert to_blame(explanation) == (0,)


def test_collective_that_failed_on_all_ranks_blames_nobody(tmp_path: Path) -> None:
    log = "".join(_collective_failed(rank) for rank in range(4))
    assert to_blame(explain_text(tmp_path, log=log)) == ()


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("rtStreamSynchronize failed, error code is 507018", "npu-aicpu-exception"),
        ("EL0004: Failed to allocate memory.", "npu-out-of-memory"),
        ("EI0006: Getting socket times out.", "hccl-socket-timeout"),
        (
            "[rank0]:[W424 03:40:28.559765110 compiler_depend.ts:432] Warning: EI0003: [PID: 143] "
            "2025-04-24-03:40:28.975.025 In [CheckDataType], value [bfloat16] is invalid.",
            "hccl-operator-argument",
        ),
    ],
)
def test_collective_that_failed_follows_from_what_cann_says(
    tmp_path: Path, line: str, fault: str
) -> None:
    assert named(explain_text(tmp_path, log=_collective_failed(1) + line + "\n")) == [fault]
