"""A finding about environment variables that make the host wait for each op."""

from collections.abc import Iterator

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.advice.finding import FINDINGS, Case, Claim, Finding, ms
from jumar.profiling.views.environment import COSTLY, recorded
from jumar.profiling.views.intervals import difference, length, union
from jumar.profiling.views.view import Impossible

_BLOCKING = ("ASCEND_LAUNCH_BLOCKING", "CUDA_LAUNCH_BLOCKING")


def blocked_launches(case: Case) -> Iterator[Claim]:
    """Claim idle time, except waits for data, if launches were blocking."""
    try:
        rows = recorded(case.profile)
    except Impossible:
        return
    for rank, name, value in rows.select("rank", "variable", "value").iter_rows():
        if rank == case.rank and name in _BLOCKING and value in COSTLY[name].values:
            stalls = [blame.free for blame in case.blames[0] if blame.cause.kind == "data"]
            idle = difference(case.free, union(pl.concat([case.augmenting, *stalls])))
            line = Text(
                en=f"{name}={value} was set during the recording",
                zh=f"采集时设置了 {name}={value}",
            )
            values = {"free": ms(length(idle) / case.steps), "variable": name}
            yield Claim(values=values, spans=idle, evidence=(line,))
            return


FINDINGS.add(
    Finding(
        name="launch-blocking",
        what=Text(
            en="{variable} makes the host wait for each op: the device is idle {free} per step",
            zh="{variable} 使 host 等待每个算子执行完：设备每迭代空闲 {free}",
        ),
        change=Text(
            en="Unset it and record again: while it is set, the host behaves differently than in "
            "normal training.",
            zh="取消该变量后重新采集：当前采集到的 host 行为与正常训练不同。",
        ),
        search=blocked_launches,
        order=14,
        view="environment",
    )
)
