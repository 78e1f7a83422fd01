"""Findings about the host: waiting for data, calls that block, launching too slowly."""

import polars as pl

from jumar.ground.text import counted
from jumar.profiling.advice.finding import Case, Finding, ms
from jumar.profiling.views.host_calls import Cause
from jumar.profiling.views.intervals import difference, intersection, length, spans

_CHANGES = {
    "data": (
        "Prepare batches in more processes, ahead of the step, or cheaper: smaller pictures on "
        "the disk, decoding and augmentation on the device.",
        "data.workers",
        "data",
    ),
    "blocking": (
        "Do not read values of the device in each step: keep losses and counts as tensors and "
        "read them where a log line is written; use masks instead of ops whose output's size "
        "depends on values.",
        "training.log_every",
        "host",
    ),
    "collector": (
        "Let Python's garbage collector run between epochs (gc.freeze, gc.disable).",
        "",
        "host",
    ),
    "launching": (
        "Launch fewer and larger ops: a larger batch, fused optimizers and losses, graph mode "
        "or torch.compile; on Ascend also TASK_QUEUE_ENABLE=2 and binding of processes to cores.",
        "training.compile",
        "launches",
    ),
}


def from_host(case: Case) -> list[Finding]:
    """What the host does while the device is free, and where it blocks."""
    if case.profile.kind == "cpu":
        return _loading_on_cpu(case)
    found = _augmenting(case)
    left = case.free
    for finding in found:
        left = difference(left, finding.claims)
    for cause in case.causes:
        host = intersection(cause.host, case.inside)
        claims = intersection(left, cause.alone)
        left = difference(left, cause.alone)
        beside = length(intersection(host, case.uncovered))
        if length(claims) or beside:
            found.append(_finding(case, cause, host, claims, beside))
    unexplained = length(left)
    if unexplained:
        change, setting, view = _CHANGES["launching"]
        found.append(
            Finding(
                key="free",
                what=f"The device is free {ms(unexplained / case.steps)} a step for a reason that "
                "the profile does not show",
                claims=left,
                evidence=("no call on the host is recorded at these times",),
                change="Record the host, too (activities CPU and NPU, with_stack); else: " + change,
                setting=setting,
                view=view,
            )
        )
    return found


def _finding(
    case: Case, cause: Cause, host: pl.DataFrame, claims: pl.DataFrame, beside: int
) -> Finding:
    change, setting, view = _CHANGES[cause.kind]
    stood, free = ms(length(host) / case.steps), ms(length(claims) / case.steps)
    calls = cause.calls.get(case.rank, 0) / case.steps
    longest = cause.longest_ns.get(case.rank, 0)
    said = {
        "data": f"Waiting for data: {free} a step with the device free",
        "blocking": f"The host stands {stood} a step in {cause.label}",
        "collector": f"Garbage collection takes {stood} a step of the host",
        "launching": f"The host launches too slowly: the device is free {free} a step meanwhile",
    }[cause.kind]
    evidence = [
        f"{counted(float(calls), 'call')} a step, the longest {ms(longest)}; the device is free "
        f"in {free} of it"
    ]
    if beside and cause.kind != "launching":
        evidence.append(
            f"{ms(beside / case.steps)} of it lies beside uncovered communication, "
            "and is counted there"
        )
    return Finding(
        key={"blocking": "blocking-call", "data": "data-stall"}.get(cause.kind, cause.kind),
        what=said,
        claims=claims,
        evidence=tuple(evidence),
        change=change,
        setting=setting,
        view=view,
        host_ns=length(host) if cause.kind == "blocking" else 0,
        certain=cause.kind == "data",
    )


def _augmenting(case: Case) -> list[Finding]:
    """`Data Aug Bound` of graph mode: what a step waits for data before its first op."""
    given = case.profile.steps.filter(
        (pl.col("rank").fill_null(0) == case.rank) & (pl.col("data_ns") > 0)
    ).unique("step")
    waits = case.windows.join(given.select("step", "data_ns"), on="step").select(
        "rank", pl.col("begin_ns").alias("start_ns"), pl.col("data_ns").alias("duration_ns")
    )
    claims = intersection(spans(waits), case.free)
    if claims.is_empty():
        return []
    change, setting, view = _CHANGES["data"]
    told = float(waits["duration_ns"].sum()) / case.steps
    return [
        Finding(
            key="data-stall",
            what=f"Waiting for data: {ms(length(claims) / case.steps)} a step with the device free",
            claims=claims,
            evidence=(f"Data Aug Bound is {ms(told)} a step",),
            change=change,
            setting=setting,
            view=view,
            certain=True,
        )
    ]


def _loading_on_cpu(case: Case) -> list[Finding]:
    """On a CPU nothing is free while the loader works; its calls themselves are the waiting."""
    found: list[Finding] = []
    for cause in case.causes:
        if cause.kind == "data":
            own = intersection(cause.host, case.inside)
            if length(own):
                found.append(_finding(case, cause, own, own, 0))
    return found
