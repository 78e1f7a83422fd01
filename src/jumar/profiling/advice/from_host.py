"""Findings about the host: waiting for data, blocking calls, slow launches."""

from collections.abc import Iterator
from functools import partial

import polars as pl

from jumar.ground.text import Text, counted
from jumar.profiling.advice.finding import FINDINGS, Blame, Case, Claim, Finding, ms
from jumar.profiling.views.host_calls import STEP_MARK
from jumar.profiling.views.intervals import difference, intersection, length, spans, union


def _claims(case: Case, kind: str) -> Iterator[Claim]:
    """Claim the idle time of all causes of a kind."""
    for blame in case.blames[0]:
        if blame.cause.kind == kind and (length(blame.free) or blame.overlap_ns):
            yield _claim(case, blame)


def _claim(case: Case, blame: Blame) -> Claim:
    cause, steps = blame.cause, case.steps
    blocked, free = ms(length(blame.host) / steps), ms(length(blame.free) / steps)
    evidence = [_gaps(case, blame.free) if cause.kind == "launching" else _calls(case, blame)]
    if blame.overlap_ns and cause.kind != "launching":
        overlap = ms(blame.overlap_ns / steps)
        evidence.append(
            Text(
                en=f"{overlap} of it overlaps uncovered communication and is counted there",
                zh=f"其中 {overlap} 与未掩盖的通信重叠，已计入通信",
            )
        )
    return Claim(
        values={"stood": blocked, "free": free, "call": cause.label},
        spans=blame.free,
        evidence=tuple(evidence),
        host_ns=length(blame.host) if cause.kind in ("blocking", "copy") else 0,
    )


def _calls(case: Case, blame: Blame) -> Text:
    """A line with the number of calls, and how long the device was idle during them."""
    calls = blame.cause.steady_calls.get(case.rank, 0) / case.steps
    longest = ms(blame.cause.longest_ns.get(case.rank, 0))
    free = ms(length(blame.free) / case.steps)
    return Text(
        en=f"{counted(calls, 'call')} per step, the longest {longest}; the device is idle for "
        f"{free} of it",
        zh=f"每迭代 {calls:g} 次调用，最长 {longest}；其间设备空闲 {free}",
    )


def _gaps(case: Case, free: pl.DataFrame) -> Text:
    """A line with the claimed time per gap, which distinguishes a slow host from one long wait."""
    gap = union(case.free)["start_ns"].search_sorted(free["start_ns"], "right")
    size = (pl.col("end_ns") - pl.col("start_ns")).sum()
    shares = free.with_columns(gap.alias("gap")).group_by("gap").agg(size.alias("part"))["part"]
    count = shares.len() / case.steps
    median, longest = ms(float(str(shares.median() or 0))), ms(float(str(shares.max() or 0)))
    return Text(
        en=f"{counted(count, 'gap')} per step: median {median} of it in each, at most {longest}",
        zh=f"每迭代 {count:g} 个间隙：各占其中的中位数 {median}，最多 {longest}",
    )


def data_stalls(case: Case) -> Iterator[Claim]:
    """Claim waits for the next batch, from `Data Aug Bound` and from the loader's calls."""
    claimed = intersection(case.augmenting, case.free)
    if case.profile.kind != "cpu" and claimed.height:
        bound = ms(length(case.augmenting) / case.steps)
        yield Claim(
            values={"free": ms(length(claimed) / case.steps)},
            spans=claimed,
            evidence=(
                Text(
                    en=f"Data Aug Bound is {bound} per step",
                    zh=f"Data Aug Bound 为每迭代 {bound}",
                ),
            ),
        )
    yield from _claims(case, "data")


def memory_copies(case: Case) -> Iterator[Claim]:
    """Claim uncovered memory copies that no host call explains."""
    remaining = intersection(case.blames[1], case.copying)
    if length(remaining):
        total = ms(length(intersection(case.copying, case.step_spans)) / case.steps)
        uncovered = ms(length(remaining) / case.steps)
        line = Text(
            en=f"{total} of memory copies per step, of which {uncovered} with the device otherwise "
            "idle",
            zh=f"每迭代内存拷贝 {total}，其中 {uncovered} 期间设备没有其他工作",
        )
        yield Claim(values={"bare": uncovered}, spans=remaining, evidence=(line,))


def waiting_ops(case: Case) -> Iterator[Claim]:
    """Claim idle time in which the next op, launched long before, waits on the device."""
    waits = intersection(difference(case.blames[1], case.copying), case.queued)
    if not length(waits):
        return
    longest = ms(float(str((waits["end_ns"] - waits["start_ns"]).max())))
    count = waits.height / case.steps
    yield Claim(
        values={"waits": ms(length(waits) / case.steps)},
        spans=waits,
        evidence=(
            Text(
                en=f"{counted(count, 'gap')} per step, the longest {longest}; the host is ahead, "
                "so launching faster would not shorten them",
                zh=f"每迭代 {count:g} 个间隙，最长 {longest}；host 已领先，加快下发不会缩短间隙",
            ),
        ),
    )


def unexplained(case: Case) -> Iterator[Claim]:
    """Claim idle time that no cause explains."""
    remaining = difference(difference(case.blames[1], case.copying), case.queued)
    if length(remaining):
        yield Claim(
            values={"free": ms(length(remaining) / case.steps), "record": _not_recorded(case)},
            spans=remaining,
            evidence=(_host_activity(case, remaining),),
        )


def _not_recorded(case: Case) -> Text:
    """Advice on what to record to find the cause, if this profile lacks it."""
    layers = set(case.profile.host.filter(pl.col("rank").fill_null(0) == case.rank)["layer"])
    if not layers - {"mark"}:
        device = "CUDA" if case.profile.kind == "cuda" else "NPU"
        return Text(
            en=f"Also record the host (activities CPU and {device}, with_stack); otherwise: ",
            zh=f"同时采集 host 侧数据（activities 含 CPU 和 {device}，with_stack）；否则：",
        )
    if "python" not in layers:
        return Text(
            en="Also record Python calls (with_stack); otherwise: ",
            zh="同时采集 Python 调用（with_stack）；否则：",
        )
    return Text(en="", zh="")


def _host_activity(case: Case, remaining: pl.DataFrame) -> Text:
    """A line on what the host did during that time, if recorded."""
    host = case.profile.host.filter(
        (pl.col("rank").fill_null(0) == case.rank) & ~pl.col("name").str.contains(STEP_MARK)
    )
    covered = length(intersection(union(spans(host)), remaining))
    if covered:
        overlap = ms(covered / case.steps)
        return Text(
            en=f"host calls cover {overlap} of it, but each runs mostly at other times",
            zh=f"其中 {overlap} 有 host 侧调用，但各调用的大部分时间在别处",
        )
    if host.is_empty():
        return Text(en="the profile has no host calls", zh="性能数据中没有 host 侧调用")
    return Text(
        en="no host calls were recorded at these times", zh="这些时段没有记录到 host 侧调用"
    )


_LAUNCH_LESS = Text(
    en="Launch fewer and larger ops: use larger batches, fused optimizers and losses, graph mode "
    "or torch.compile; on Ascend also set TASK_QUEUE_ENABLE=2 and bind processes to cores.",
    zh="减少下发次数、增大单个算子：加大 batch、使用融合优化器和融合损失函数、图模式或 "
    "torch.compile；在昇腾上还可设置 TASK_QUEUE_ENABLE=2 并为进程绑核。",
)

FINDINGS.add(
    Finding(
        name="data-stall",
        what=Text(
            en="Waiting for data: the device is idle {free} per step",
            zh="等待数据：每迭代设备空闲 {free}",
        ),
        change=Text(
            en="Prepare batches in more processes and further ahead, or at lower cost: smaller "
            "images on disk, decoding and augmentation on the device.",
            zh="用更多进程提前准备数据，或降低其开销：在磁盘上存放更小的图片，在设备上解码和做数据增强。",
        ),
        search=data_stalls,
        order=20,
        setting="data.workers",
        view="data",
        certain=True,
    ),
    Finding(
        name="blocking-call",
        what=Text(
            en="The host spends {stood} per step in {call}",
            zh="host 每迭代在 {call} 中阻塞 {stood}",
        ),
        change=Text(
            en="Do not read values from the device in every step: keep losses and counts as "
            "tensors and read them only when logging; use masks instead of ops whose output size "
            "depends on values.",
            zh="不要每个迭代都从设备读取数值：损失和计数保留为张量，写日志时再读取；用掩码代替输出大小"
            "取决于数值的算子。",
        ),
        search=partial(_claims, kind="blocking"),
        order=21,
        setting="training.log_every",
        view="host",
    ),
    Finding(
        name="pageable-copy",
        what=Text(
            en="The host is blocked {stood} per step in {call}",
            zh="host 每迭代在{call}中阻塞 {stood}",
        ),
        change=Text(
            en="Pin the memory and do not wait for the copy: DataLoader(pin_memory=True) and "
            ".to(device, non_blocking=True); create small tensors on the device, not from lists.",
            zh="锁定内存且不等待拷贝：DataLoader(pin_memory=True) 和 "
            ".to(device, non_blocking=True)；小张量直接在设备上创建，不要由列表生成。",
        ),
        search=partial(_claims, kind="copy"),
        order=21,
        view="host",
    ),
    Finding(
        name="host-work",
        what=Text(
            en="The device is idle {free} per step while the host is in {call}",
            zh="host 执行 {call} 期间，设备每迭代空闲 {free}",
        ),
        change=Text(
            en="Move this work out of the step: prepare it ahead in other processes, or compute it "
            "on the device.",
            zh="将这部分工作移出迭代：在其他进程中提前准备，或放到设备上计算。",
        ),
        search=partial(_claims, kind="covering"),
        order=24,
        view="host",
    ),
    Finding(
        name="collector",
        what=Text(
            en="Garbage collection takes {stood} of host time per step",
            zh="垃圾回收每迭代占用 host {stood}",
        ),
        change=Text(
            en="Run Python's garbage collector only between epochs (gc.freeze, gc.disable).",
            zh="让 Python 垃圾回收只在 epoch 之间运行（gc.freeze、gc.disable）。",
        ),
        search=partial(_claims, kind="collector"),
        order=22,
        view="host",
    ),
    Finding(
        name="launching",
        what=Text(
            en="Host-bound: ops are launched too slowly, and the device is idle {free} per step",
            zh="host 下发过慢：其间设备每迭代空闲 {free}",
        ),
        change=_LAUNCH_LESS,
        search=partial(_claims, kind="launching"),
        order=23,
        setting="training.compile",
        view="launches",
    ),
    Finding(
        name="memory-copies",
        what=Text(
            en="Uncovered memory copies: {bare} per step",
            zh="未被计算掩盖的内存拷贝：每迭代 {bare}",
        ),
        change=Text(
            en="Copy the next batch while this one is computed: with pinned memory, "
            "non_blocking=True and a separate stream; copy less data, in smaller dtypes.",
            zh="在计算当前 batch 时拷贝下一个 batch：锁页内存、non_blocking=True 和单独的流；"
            "减少拷贝量，使用更小的数据类型。",
        ),
        search=memory_copies,
        order=24,
        view="steps",
    ),
    Finding(
        name="waiting-ops",
        what=Text(
            en="Device idle although its next op was launched: {waits} per step",
            zh="下一个算子已下发而设备空闲：每迭代 {waits}",
        ),
        change=Text(
            en="Find what these ops wait for: an event of another stream, a copy or a collective "
            "(the ops that end just before they start), or another program on the card "
            "(nvidia-smi, npu-smi info). If nothing ends there, the cause is the device's own "
            "scheduling: fewer and larger ops leave fewer such gaps.",
            zh="找出这些算子在等待什么：其他流的事件、拷贝或集合通信（在其开始前刚结束的算子），"
            "或卡上的其他程序（nvidia-smi、npu-smi info）。若没有，则为设备自身的调度："
            "算子更少、更大，间隙也更少。",
        ),
        search=waiting_ops,
        order=24,
        view="host",
    ),
    Finding(
        name="free",
        what=Text(
            en="Device idle, cause unknown: {free} per step",
            zh="设备空闲，原因未知：每迭代 {free}",
        ),
        change=Text(en=f"{{record}}{_LAUNCH_LESS.en}", zh=f"{{record}}{_LAUNCH_LESS.zh}"),
        search=unexplained,
        order=25,
        setting="training.compile",
        view="launches",
    ),
)
